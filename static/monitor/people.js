// The table of participants: quality, flags, and who is left out.

import { byId, count, make, say, share } from "./format.js";

const FIRST = 12;
const view = { filter: "all", all: false, key: "", data: null, steers: false };
const STAGES = { consent: "reading consent", instructions: "reading", practice: "practising", trials: "answering", feedback: "last words", finished: "finished", declined: "declined", expired: "ended" };
const FILTERS = {
  all: () => true,
  flagged: (one) => one.flags.length > 0,
  here: (one) => one.here,
  excluded: (one) => one.excluded,
};

export function start(steers) {
  view.steers = steers;
  for (const button of document.querySelectorAll("[data-filter]"))
    button.addEventListener("click", () => {
      view.filter = button.dataset.filter;
      for (const one of document.querySelectorAll("[data-filter]")) one.setAttribute("aria-pressed", String(one === button));
      draw(view.data);
    });
  byId("more-people").addEventListener("click", () => {
    view.all = true;
    draw(view.data);
  });
}

export function draw(data) {
  if (!data) return;
  view.data = data;
  const rows = data.rows.filter(FILTERS[view.filter]);
  const shown = view.all ? rows : rows.slice(0, FIRST);
  say(byId("people-count"), `${count(shown.length)} of ${count(view.filter === "all" ? data.all : rows.length)} shown, flagged and latest first`);
  byId("more-people").hidden = shown.length === rows.length;
  const key = JSON.stringify(shown);
  if (key === view.key) return;
  view.key = key;
  const held = document.activeElement?.dataset?.person;
  byId("people-rows").replaceChildren(...shown.map((one) => row(one, data)));
  if (held) document.querySelector(`[data-person="${held}"]`)?.focus();
  if (!byId("rules").childElementCount)
    byId("rules").append(...Object.entries(data.rules).flatMap(([name, words]) => [make("dt", {}, chip(data.names[name])), make("dd", {}, words)]));
}

const chip = (name, words) => make("span", { className: "flag", title: words }, name);
const part = ([good, all]) => (all ? `${good}/${all}` : "–");
const milliseconds = (value) => (value == null ? "–" : value < 10000 ? `${(value / 1000).toFixed(1)} s` : `${Math.round(value / 1000)} s`);

function row(one, { names, rules }) {
  const marked = (name) => (one.flags.includes(name) ? "marked" : "");
  const cell = (text, name) => make("td", { className: `number ${marked(name)}` }, text);
  const stage = one.here || !["consent", "instructions", "practice", "trials"].includes(one.stage) ? STAGES[one.stage] : "left";
  const made = make("tr", { className: one.excluded ? "excluded" : "" },
    make("th", { scope: "row" }, make("span", { className: one.here ? "here" : "" }, `№ ${one.id}`), one.external ? make("small", { title: one.external }, one.external.split("=").at(-1)) : null),
    make("td", { className: "going" }, make("progress", { max: one.trials, value: one.done, "aria-label": `${one.done} of ${one.trials} questions` }), make("small", {}, `${one.done}/${one.trials} · ${stage}`)),
    cell(part(one.catch), "catch"),
    cell(part(one.repeats), "consistency"),
    cell(share(one.left), "side"),
    cell(milliseconds(one.median_ms), "implausible"),
    cell(share(one.fast), "fast"),
    cell(share(one.blurred), "blurred"),
    cell(share(one.agreement), "agreement"),
    make("td", { className: "flags" }, ...one.flags.map((flag) => chip(names[flag], rules[flag])), one.excluded ? make("span", { className: "flag out" }, "excluded") : null));
  if (view.steers) {
    const act = one.excluded ? "restore" : "exclude";
    made.append(make("td", {}, make("button", {
      type: "button",
      className: "link",
      "aria-label": `${act === "exclude" ? "Exclude" : "Restore"} participant ${one.id}`,
      data: { dialog: act, person: String(one.id), act: `participants/${one.id}/${act}` },
    }, act === "exclude" ? "Exclude" : "Restore")));
  }
  return made;
}
