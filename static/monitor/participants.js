// The table of participants; sorting, search and filters survive updates.

import { byId, count, make, say, share } from "./format.js";

const FIRST = 12;
const MORE = 100;
const view = { filter: "all", search: "", sort: "", descending: false, shown: FIRST, key: "", data: null, steers: false, open: null };
const STAGES = { consent: "reading consent", instructions: "reading instructions", practice: "practising", trials: "answering", feedback: "writing a comment", finished: "finished", declined: "declined", expired: "expired" };
const FILTERS = {
  all: () => true,
  flagged: (participant) => participant.flags.length > 0,
  here: (participant) => participant.here,
  excluded: (participant) => participant.excluded,
};
const part = ([good, all]) => (all ? good / all : null);
// What each column is sorted by; null comes last whichever way it is sorted.
const KEYS = {
  id: (participant) => participant.id,
  done: (participant) => participant.done,
  flags: (participant) => participant.flags.length + (participant.excluded ? 0.5 : 0),
  catch: (participant) => part(participant.catch),
  repeats: (participant) => part(participant.repeats),
  place: (participant) => participant.place?.[1] ?? null,
  feedback: (participant) => participant.feedback.toLowerCase() || null,
};

export const stage = (participant) => (participant.here || !["consent", "instructions", "practice", "trials"].includes(participant.stage) ? STAGES[participant.stage] : "did not finish");
export const known = (participant) => participant.external?.split("=").at(-1) ?? "";
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
      for (const filter of document.querySelectorAll("[data-filter]")) filter.setAttribute("aria-pressed", String(filter === button));
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

function matches(participant, names) {
  if (!view.search) return true;
  const texts = [`p${participant.id}`, participant.external ?? "", participant.feedback, participant.excluded ? "excluded" : "", participant.simulated ? "simulated" : "", ...participant.flags.map((flag) => names[flag])];
  // A number, with or without P, is a participant's name: P1 does not match P12.
  if (/^p?\d+$/.test(view.search) && participant.id === Number(view.search.replace("p", ""))) return true;
  if (/^p\d+$/.test(view.search)) return known(participant).toLowerCase() === view.search;
  return texts.some((text) => text.toLowerCase().includes(view.search));
}

function sorted(rows) {
  if (!view.sort) return rows;
  const key = KEYS[view.sort] ?? ((participant) => participant[view.sort]);
  const sign = view.descending ? -1 : 1;
  return rows.map((participant) => [key(participant), participant]).sort(([a, participant], [b, other]) => {
    if (a == null || b == null) return (a == null) - (b == null) || participant.id - other.id;
    return sign * (a < b ? -1 : a > b ? 1 : 0) || participant.id - other.id;
  }).map(([, participant]) => participant);
}

export function draw(data) {
  if (!data) return;
  view.data = data;
  const found = sorted(data.rows.filter((participant) => FILTERS[view.filter](participant) && matches(participant, data.names)));
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
  byId("participant-rows").replaceChildren(...shown.map((participant) => row(participant, data)));
  if (focused) document.querySelector(focused)?.focus({ preventScroll: true });
  say(byId("about-flags"), data.about_flags);
  if (!byId("rules").childElementCount)
    byId("rules").append(...Object.entries(data.rules).flatMap(([name, text]) => [make("dt", {}, chip(data.names[name])), make("dd", {}, text)]));
}

const chip = (name, text) => make("span", { className: "flag", title: text }, name);
const fraction = ([good, all]) => (all ? `${good}/${all}` : "–");

// The option that was chosen most often by its place; of triplets, always the left one.
const place = (participant, sides) => (participant.place == null ? "–" : sides ? share(participant.place[1]) : `${share(participant.place[1])} (${participant.place[0]})`);

function row(participant, { names, sides, several }) {
  const marked = (...flags) => (flags.some((flag) => participant.flags.includes(flag)) ? "marked" : "");
  const cell = (text, ...flags) => make("td", { className: `number ${marked(...flags)}` }, text);
  const made = make("tr", { className: participant.excluded ? "excluded" : "" },
    make("th", { scope: "row" },
      make("button", { type: "button", className: `link open ${participant.here ? "here" : ""}`, "aria-label": `Details of P${participant.id}`, "aria-haspopup": "dialog", data: { participant: String(participant.id), part: "open" } }, `P${participant.id}`),
      participant.external ? make("small", { title: participant.external }, known(participant)) : null),
    make("td", { className: "going" }, make("progress", { max: participant.trials, value: participant.done, "aria-label": `${participant.done} of ${participant.trials} trials` }), make("small", {}, `${participant.done}/${participant.trials} · ${stage(participant)}`)),
    make("td", { className: "flags" }, ...participant.flags.map((flag, at) => chip(names[flag], participant.evidence[at])), participant.excluded ? make("span", { className: "flag out" }, "excluded") : null, participant.simulated ? make("span", { className: "flag bot" }, "simulated") : null),
    cell(fraction(participant.catch), "catch"),
    cell(several ? share(participant.overlap) : fraction(participant.repeats), "consistency"),
    cell(place(participant, sides), "side"),
    cell(milliseconds(participant.median_ms), "implausible"),
    cell(share(participant.fast), "fast"),
    cell(share(participant.blurred), "blurred"),
    cell(share(participant.agreement), "agreement", "guessing"));
  if (view.steers)
    made.append(make("td", { className: "comment", title: participant.feedback }, make("bdi", {}, participant.feedback || "–")), make("td", {}, act(participant, "act")));
  return made;
}

// The button that excludes or restores a participant; controls.js asks for confirmation.
export function act(participant, place) {
  const name = participant.excluded ? "restore" : "exclude";
  const label = participant.excluded ? "Restore" : "Exclude";
  return make("button", {
    type: "button",
    className: place === "act" ? "link" : participant.excluded ? "main" : "main strong",
    "aria-label": `${label} P${participant.id}`,
    data: { dialog: name, participant: String(participant.id), part: place, name: `P${participant.id}`, act: `participants/${participant.id}/${name}` },
  }, label);
}
