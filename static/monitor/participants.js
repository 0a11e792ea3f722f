// The table of participants; sorting, search and filters survive updates.

import { byId, count, make, say, share } from "./format.js";

const FIRST = 12;
const MORE = 100;
const view = { filter: "all", search: "", sort: "", descending: false, shown: FIRST, key: "", data: null, steers: false, open: null };
const STAGES = { consent: "reading consent", instructions: "reading instructions", practice: "practising", trials: "answering", feedback: "writing a comment", finished: "finished", declined: "declined", expired: "expired" };
const FILTERS = {
  all: () => true,
  flagged: (one) => one.flags.length > 0,
  here: (one) => one.here,
  excluded: (one) => one.excluded,
};
const part = ([good, all]) => (all ? good / all : null);
// What each column is sorted by; null comes last whichever way it is sorted.
const KEYS = {
  id: (one) => one.id,
  done: (one) => one.done,
  flags: (one) => one.flags.length + (one.excluded ? 0.5 : 0),
  catch: (one) => part(one.catch),
  repeats: (one) => part(one.repeats),
  place: (one) => one.place?.[1] ?? null,
  feedback: (one) => one.feedback.toLowerCase() || null,
};

export const stage = (one) => (one.here || !["consent", "instructions", "practice", "trials"].includes(one.stage) ? STAGES[one.stage] : "did not finish");
export const known = (one) => one.external?.split("=").at(-1) ?? "";
export const milliseconds = (value) => (value == null ? "–" : value < 10000 ? `${(value / 1000).toFixed(1)} s` : `${Math.round(value / 1000)} s`);

export function start(steers, open) {
  view.steers = steers;
  view.open = open;
  const again = (changes) => {
    Object.assign(view, { shown: FIRST }, changes);
    draw(view.data);
  };
  for (const button of document.querySelectorAll("[data-filter]"))
    button.addEventListener("click", () => {
      for (const one of document.querySelectorAll("[data-filter]")) one.setAttribute("aria-pressed", String(one === button));
      again({ filter: button.dataset.filter });
    });
  byId("participant-search").addEventListener("input", (event) => again({ search: event.target.value.trim().toLowerCase() }));
  for (const button of document.querySelectorAll("#participants .sort"))
    button.addEventListener("click", () => {
      const name = button.closest("th").dataset.sort;
      // Ascending, descending, and back to flagged participants first.
      if (view.sort !== name) again({ sort: name, descending: false });
      else again(view.descending ? { sort: "", descending: false } : { descending: true });
    });
  byId("more-participants").addEventListener("click", () => {
    const before = view.shown;
    view.shown += MORE;
    draw(view.data);
    document.querySelectorAll("#participant-rows .open")[before]?.focus();
  });
  byId("participant-rows").addEventListener("click", (event) => {
    const button = event.target.closest(".open");
    if (button) view.open(Number(button.dataset.participant));
  });
}

function matches(one, names) {
  if (!view.search) return true;
  const texts = [`p${one.id}`, one.external ?? "", one.feedback, one.excluded ? "excluded" : "", one.simulated ? "simulated" : "", ...one.flags.map((flag) => names[flag])];
  // A number, with or without P, is a participant's name: P1 does not match P12.
  if (/^p?\d+$/.test(view.search) && one.id === Number(view.search.replace("p", ""))) return true;
  if (/^p\d+$/.test(view.search)) return known(one).toLowerCase() === view.search;
  return texts.some((text) => text.toLowerCase().includes(view.search));
}

function sorted(rows) {
  if (!view.sort) return rows;
  const key = KEYS[view.sort] ?? ((one) => one[view.sort]);
  const sign = view.descending ? -1 : 1;
  return rows.map((one) => [key(one), one]).sort(([a, one], [b, other]) => {
    if (a == null || b == null) return (a == null) - (b == null) || one.id - other.id;
    return sign * (a < b ? -1 : a > b ? 1 : 0) || one.id - other.id;
  }).map(([, one]) => one);
}

export function draw(data) {
  if (!data) return;
  view.data = data;
  const found = sorted(data.rows.filter((one) => FILTERS[view.filter](one) && matches(one, data.names)));
  const shown = found.slice(0, view.shown);
  const order = view.sort ? "" : ", flagged and latest first";
  const of = data.rows.length < data.all ? ` (of ${count(data.all)}; the export has all)` : "";
  say(byId("participant-count"), found.length ? `${count(shown.length)} of ${count(found.length)} shown${order}${of}` : `${view.search ? "No participant matches" : "No participants"}${of}`);
  const more = byId("more-participants");
  more.hidden = shown.length === found.length;
  say(more, `Show ${count(Math.min(MORE, found.length - shown.length))} more`);
  for (const head of document.querySelectorAll("#participants th[data-sort]")) {
    const is = head.dataset.sort === view.sort;
    if (is) head.setAttribute("aria-sort", view.descending ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  }
  const key = JSON.stringify(shown);
  if (key === view.key) return;
  view.key = key;
  const held = document.activeElement?.dataset;
  const focused = held?.participant && `#participant-rows [data-participant="${held.participant}"][data-part="${held.part}"]`;
  byId("participant-rows").replaceChildren(...shown.map((one) => row(one, data)));
  if (focused) document.querySelector(focused)?.focus({ preventScroll: true });
  say(byId("about-flags"), data.about_flags);
  if (!byId("rules").childElementCount)
    byId("rules").append(...Object.entries(data.rules).flatMap(([name, text]) => [make("dt", {}, chip(data.names[name])), make("dd", {}, text)]));
}

const chip = (name, text) => make("span", { className: "flag", title: text }, name);
const fraction = ([good, all]) => (all ? `${good}/${all}` : "–");

// The option that was chosen most often by its place; of triplets, always the left one.
const place = (one, sides) => (one.place == null ? "–" : sides ? share(one.place[1]) : `${share(one.place[1])} (${one.place[0]})`);

function row(one, { names, sides, several }) {
  const marked = (...flags) => (flags.some((flag) => one.flags.includes(flag)) ? "marked" : "");
  const cell = (text, ...flags) => make("td", { className: `number ${marked(...flags)}` }, text);
  const made = make("tr", { className: one.excluded ? "excluded" : "" },
    make("th", { scope: "row" },
      make("button", { type: "button", className: `link open ${one.here ? "here" : ""}`, "aria-label": `Details of P${one.id}`, "aria-haspopup": "dialog", data: { participant: String(one.id), part: "open" } }, `P${one.id}`),
      one.external ? make("small", { title: one.external }, known(one)) : null),
    make("td", { className: "going" }, make("progress", { max: one.trials, value: one.done, "aria-label": `${one.done} of ${one.trials} trials` }), make("small", {}, `${one.done}/${one.trials} · ${stage(one)}`)),
    make("td", { className: "flags" }, ...one.flags.map((flag, at) => chip(names[flag], one.evidence[at])), one.excluded ? make("span", { className: "flag out" }, "excluded") : null, one.simulated ? make("span", { className: "flag bot" }, "simulated") : null),
    cell(fraction(one.catch), "catch"),
    cell(several ? share(one.overlap) : fraction(one.repeats), "consistency"),
    cell(place(one, sides), "side"),
    cell(milliseconds(one.median_ms), "implausible"),
    cell(share(one.fast), "fast"),
    cell(share(one.blurred), "blurred"),
    cell(share(one.agreement), "agreement", "guessing"));
  if (view.steers)
    made.append(make("td", { className: "comment", title: one.feedback }, make("bdi", {}, one.feedback || "–")), make("td", {}, act(one, "act")));
  return made;
}

// The button that excludes or restores a participant; controls.js asks for confirmation.
export function act(one, place) {
  const name = one.excluded ? "restore" : "exclude";
  const label = one.excluded ? "Restore" : "Exclude";
  return make("button", {
    type: "button",
    className: place === "act" ? "link" : one.excluded ? "main" : "main strong",
    "aria-label": `${label} P${one.id}`,
    data: { dialog: name, participant: String(one.id), part: place, name: `P${one.id}`, act: `participants/${one.id}/${name}` },
  }, label);
}
