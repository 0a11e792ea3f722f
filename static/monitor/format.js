// Shared helpers: numbers, times, elements.

export const reduced = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

const whole = new Intl.NumberFormat("en");
export const count = (value) => (value == null ? "–" : whole.format(Math.round(value)));
// `1 audit`, `2 audits`.
export const plural = (number, singular, more = `${singular}s`) => `${count(number)} ${number === 1 ? singular : more}`;
export const share = (value) => (value == null ? "–" : `${Math.round(100 * value)} %`);
export const decimal = (value, digits = 1) => (value == null ? "–" : value.toFixed(digits));

export function seconds(value) {
  if (value == null) return "–";
  return value < 1 ? `${Math.round(1000 * value)} ms` : `${value.toFixed(1)} s`;
}

// `400 to 1,100`; `up to 1,100` where the lower end is negligible.
export function range([low, high]) {
  if (low === high) return count(high);
  return 20 * low <= high ? `up to ${count(high)}` : `${count(low)} to ${count(high)}`;
}

export function bytes(value) {
  if (value == null) return "–";
  const units = ["B", "kB", "MB", "GB"];
  let at = 0;
  while (value >= 1000 && at < units.length - 1) {
    value /= 1000;
    at += 1;
  }
  return `${value < 10 && at ? value.toFixed(1) : Math.round(value)} ${units[at]}`;
}

export function clock(at) {
  const when = new Date(at);
  const today = new Date().toDateString() === when.toDateString();
  const day = today ? "" : `${when.toLocaleDateString(undefined, { day: "numeric", month: "short" })}, `;
  return day + when.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
}

export const byId = (id) => document.getElementById(id);

// An element with properties, attributes (keys with a dash, or role) and children.
export function make(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (value == null) continue;
    if (key.includes("-") || key === "role" || key === "scope") made.setAttribute(key, value);
    else if (key === "data") Object.assign(made.dataset, value);
    else made[key] = value;
  }
  made.append(...children.filter((child) => child != null && child !== ""));
  return made;
}

// Sets text only when it differs, so that screen readers do not repeat it. A number is not separated from its percent sign.
export function say(element, text) {
  const kept = text.replaceAll(" %", "\u00a0%");
  if (element.textContent !== kept) element.textContent = kept;
}

// The name of an item; texts are their own names.
export function called(item) {
  if (item.kind !== "text") return item.label;
  return item.text.length > 60 ? `${item.text.slice(0, 59)}…` : item.text;
}

// Whether an item has an image to show; a report may omit images.
export const hasImage = (item) => item.kind === "image" && item.address != null;

// An item as participants saw it: its image, or its text.
export function thumbnail(item, size = "") {
  if (hasImage(item))
    return make("img", { src: item.address, alt: item.label, title: item.label, className: `thumb ${size}` });
  const sign = { audio: "♪ ", video: "▸ " }[item.kind] ?? "";
  const name = item.kind === "text" ? item.text : item.label;
  return make("span", { className: `word ${size}`, title: item.label }, sign + name);
}
