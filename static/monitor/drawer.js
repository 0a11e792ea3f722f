// One participant in detail: flags with their evidence, the session, and how excluding them would change the results.
/* global Plot */

import { draw, grid } from "./charts.js";
import { byId, called, clock, count, make, plural, say } from "./format.js";
import { act, known, milliseconds, stage } from "./participants.js";

const shown = { id: null, row: "", address: "", steers: false, items: () => [], rows: [], data: null, running: null };
const FAR_MS = 90000;

export function start(address, steers, items) {
  Object.assign(shown, { address, steers, items });
  const drawer = byId("drawer");
  drawer.querySelector("[data-close-drawer]").addEventListener("click", () => drawer.close());
  // A click outside the drawer closes it.
  drawer.addEventListener("click", (event) => event.target === drawer && drawer.close());
  drawer.addEventListener("close", () => {
    shown.id = null;
    shown.running?.abort();
  });
  byId("drawer-effect-form")?.addEventListener("submit", (event) => {
    event.preventDefault();
    compare(new FormData(event.target));
  });
  drawer.querySelector("[data-cancel-effect]")?.addEventListener("click", () => shown.running?.abort());
  addEventListener("resize", () => drawer.open && shown.data && charts(shown.data));
}

export async function open(id) {
  Object.assign(shown, { id, row: "", data: null });
  byId("drawer-effect")?.replaceChildren();
  say(byId("drawer-title"), `P${id}`);
  if (!byId("drawer").open) byId("drawer").showModal();
  byId("drawer").querySelector(".drawer-body").scrollTop = 0;
  update(shown.rows);
}

// Called with every update; the drawer follows when the participant's row has changed.
export async function update(rows) {
  shown.rows = rows;
  const row = rows.find((one) => one.id === shown.id);
  const key = JSON.stringify(row);
  if (shown.id === null || key === shown.row) return;
  shown.row = key;
  const { id } = shown;
  const problem = byId("drawer-problem");
  try {
    const reply = await fetch(`${shown.address}participants/${id}`, { headers: { "X-Monitor": "1" }, cache: "no-store" });
    if (!reply.ok) throw new Error(reply.status === 404 ? `There is no participant P${id}.` : `The server rejected the request (status ${reply.status}).`);
    const data = await reply.json();
    if (shown.id !== id) return;
    shown.data = data;
    problem.hidden = true;
    render(data, row);
  } catch (error) {
    // The next update tries again.
    shown.row = "";
    say(problem, error instanceof TypeError ? "Can’t reach the server; retrying." : error.message);
    problem.hidden = false;
  }
}

function render(data, row) {
  const state = [row ? stage(row) : data.stage, data.excluded && "excluded", data.simulated && "simulated"].filter(Boolean).join(", ");
  say(byId("drawer-lead"), [known(data), `${count(data.done)} of ${plural(data.trials, "trial")}`, state].filter(Boolean).join(" · "));
  byId("drawer-comment-section").hidden = !data.comment;
  say(byId("drawer-comment"), data.comment);
  const raised = data.tests.filter((one) => one.raised);
  byId("drawer-flags").replaceChildren(...(raised.length ? raised.map(statement) : [make("li", {}, "No flags.")]));
  byId("drawer-tests").replaceChildren(...(data.tests.length ? data.tests.map(statement) : [make("li", {}, "No answers yet.")]));
  facts(data);
  charts(data);
  checks(data);
  log(data.decisions);
  if (!shown.steers) return;
  const held = document.activeElement?.closest("#drawer-choices");
  byId("drawer-choices").replaceChildren(act(data, "drawer"));
  if (held) byId("drawer-choices").firstElementChild.focus();
  const what = data.excluded ? "restored" : "excluded";
  say(byId("drawer-effect-lead"), `Cross-validates the model with and without the answers of P${data.id} to show what would change if they were ${what}. It runs in the background and takes from seconds to minutes; the study itself is not affected.`);
}

const statement = (one) => make("li", { className: one.raised ? "raised" : "" }, make("span", { className: one.raised ? "flag" : "flag out" }, one.name), " ", one.statement);

function facts(data) {
  const answers = data.answers;
  const minutes = answers.length > 1 ? (answers.at(-1).at - answers[0].at) / 60000 : null;
  const times = answers.map((one) => one.ms).filter((one) => one != null).sort((a, b) => a - b);
  const middle = times.length ? (times[(times.length - 1) >> 1] + times[times.length >> 1]) / 2 : null;
  const rows = [
    ["Arrived", clock(data.arrived_at)],
    ["Last seen", clock(data.seen_at)],
    ["First to last answer", minutes == null ? "–" : minutes < 1.5 ? `${Math.round(60 * minutes)} s` : `${Math.round(minutes)} min`],
    ["Median response time", milliseconds(middle)],
  ];
  byId("drawer-facts").replaceChildren(...rows.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

const off = (one) => one.known === false || one.alike === false;
const kind = (one) => (one.purpose === "catch" ? "catch trial" : one.purpose === "repeat" ? "repeat" : "other");
const COLOURS = { "catch trial": "var(--orange)", repeat: "var(--purple)", other: "var(--blue)" };

function charts(data) {
  const timed = data.answers.filter((one) => one.ms != null && one.ms > 0);
  const [low, , high] = data.usual_ms ?? [];
  const band = data.usual_ms ? [{ low: low / 1000, high: high / 1000 }] : [];
  const floor = data.floor_ms / 1000;
  const all = timed.map((one) => one.ms / 1000).concat(floor, data.usual_ms ? [low / 1000, high / 1000] : []);
  const domain = [Math.min(...all) / 1.3, Math.max(...all) * 1.3];
  const ticks = [0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300].filter((one) => one >= domain[0] && one <= domain[1]);
  const fast = timed.filter((one) => one.ms < data.floor_ms).length;
  const text = `Response times of ${plural(timed.length, "trial")}; ${count(fast)} of them within ${data.floor_ms} ms.`;
  draw(byId("drawer-times"), text, timed.length ? [timed, data.usual_ms, floor] : null, () => ({
    height: 170,
    x: { label: "trial →", labelAnchor: "right", ticks: 6, tickSize: 0, tickFormat: "d", domain: [0, data.answers.length + 1] },
    y: { type: "log", label: null, domain, tickSize: 0, ticks, tickFormat: (one) => `${one} s` },
    color: { type: "identity" },
    marks: [
      Plot.rectY(band, { y1: "low", y2: "high", fill: "currentColor", fillOpacity: 0.08 }),
      Plot.gridY({ ...grid, ticks }),
      Plot.ruleY([floor], { stroke: "var(--vermillion)", strokeDasharray: "4 4" }),
      Plot.dot(timed, { x: "trial", y: (one) => one.ms / 1000, r: 3.5, fill: (one) => (one.ms < data.floor_ms ? "var(--vermillion)" : "var(--blue)"), fillOpacity: 0.85, title: (one) => `Trial ${one.trial}: ${milliseconds(one.ms)}` }),
    ],
  }));
  const from = data.answers[0]?.at;
  const rows = data.answers.map((one) => ({ minute: (one.at - from) / 60000, kind: kind(one), off: off(one), trial: one.trial }));
  const pauses = data.answers.filter((one, at) => at && one.at - data.answers[at - 1].at > FAR_MS).length;
  const timeline = rows.length ? `${plural(rows.length, "answer")} within ${plural(Math.ceil(rows.at(-1).minute), "minute")}, with ${plural(pauses, "pause")} of more than 90 seconds.` : "No answers yet.";
  draw(byId("drawer-timeline"), timeline, rows.length ? rows : null, () => ({
    height: 80,
    marginTop: 6,
    marginBottom: 36,
    x: { label: "minutes →", labelAnchor: "right", ticks: 6, tickSize: 0, nice: true, domain: [0, Math.max(1, rows.at(-1).minute)] },
    color: { type: "identity" },
    marks: [
      Plot.ruleX(rows.filter((one) => one.kind === "other"), { x: "minute", stroke: COLOURS.other, strokeWidth: 1.5, strokeOpacity: 0.5, insetTop: 12, title: (one) => `Trial ${one.trial}` }),
      Plot.ruleX(rows.filter((one) => one.kind !== "other"), { x: "minute", stroke: (one) => COLOURS[one.kind], strokeWidth: 3, title: (one) => `Trial ${one.trial}, ${one.kind}${one.off ? ": missed" : ""}` }),
    ],
  }));
}

function checks(data) {
  const rows = data.answers.filter((one) => kind(one) !== "other");
  const place = byId("drawer-checks");
  if (!rows.length) return void place.replaceChildren(make("p", { className: "lead" }, "None so far."));
  const items = shown.items();
  const name = (at) => (items[at] ? called(items[at]) : `item ${at}`);
  const result = (one) => {
    if (!one.chosen.length) return "no choice";
    if (one.purpose === "catch") return one.known ? "correct" : "wrong";
    if (one.alike == null) return "–";
    if (one.chosen.length > 1) return `${one.shared} of ${one.chosen.length} the same`;
    return one.alike ? "same answer" : "inconsistent";
  };
  place.replaceChildren(make("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": "Table of catch trials and repeats" }, make("table", {},
    make("thead", {}, make("tr", {}, ...["Trial", "Kind", "Anchor", "Options", "Chosen", "Result"].map((text) => make("th", { scope: "col" }, text)))),
    make("tbody", {}, ...rows.map((one) => make("tr", {},
      make("th", { scope: "row" }, String(one.trial)),
      make("td", {}, one.purpose === "catch" ? "catch trial" : one.repeats ? `repeat of trial ${one.repeats}` : "repeat"),
      make("td", { className: "item-name" }, one.anchor == null ? "–" : name(one.anchor)),
      make("td", { className: "item-name" }, one.options.map(name).join(" · ")),
      make("td", { className: "item-name" }, one.chosen.map(name).join(", ") || "–"),
      make("td", { className: off(one) ? "marked" : "" }, result(one))))))));
}

function log(decisions) {
  byId("drawer-log-section").hidden = !decisions.length;
  byId("drawer-log").replaceChildren(...decisions.toReversed().map((one) => make("li", {},
    make("time", { dateTime: new Date(one.at).toISOString() }, clock(one.at)),
    make("span", {}, make("b", {}, one.kind === "exclude" ? "Excluded" : "Restored"), one.who ? ` by ${one.who}` : "", one.reason ? `: “${one.reason}”` : ""))));
}

// ---- what would change --------------------------------------------------------------------------

async function compare(form) {
  const { id } = shown;
  const progress = byId("drawer-effect-progress");
  const [button, cancel] = byId("drawer-effect-form").querySelectorAll("button");
  const begun = Date.now();
  let message = "Starting";
  const tick = () => say(progress.querySelector("p"), `${message} … ${Math.round((Date.now() - begun) / 1000)} s`);
  const timer = setInterval(tick, 1000);
  shown.running = new AbortController();
  byId("drawer-effect").replaceChildren();
  Object.assign(progress.querySelector("progress"), { value: 0 });
  progress.hidden = cancel.hidden = false;
  button.disabled = true;
  tick();
  try {
    const reply = await fetch(`${shown.address}participants/${id}/effect`, { method: "POST", body: new URLSearchParams(form), headers: { "X-Monitor": "1" }, signal: shown.running.signal });
    if (!reply.ok) throw new Error((await reply.json().catch(() => ({}))).problem ?? `The server rejected the request (status ${reply.status}).`);
    let result = null;
    for await (const line of lines(reply.body)) {
      if (line.problem) throw new Error(line.problem);
      if (line.message) message = line.message;
      if (line.done != null) progress.querySelector("progress").value = line.done;
      if (line.effect) result = line.effect;
      tick();
    }
    if (!result) throw new Error("The comparison ended without a result. Please try again.");
    if (shown.id === id) byId("drawer-effect").replaceChildren(...effect(id, result));
  } catch (error) {
    if (error.name !== "AbortError" && shown.id === id)
      byId("drawer-effect").replaceChildren(make("p", { className: "wrong" }, error instanceof TypeError ? "Can’t reach the server." : error.message));
  } finally {
    clearInterval(timer);
    shown.running = null;
    progress.hidden = cancel.hidden = true;
    button.disabled = false;
  }
}

async function* lines(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = parts.pop();
    for (const one of parts) if (one) yield JSON.parse(one);
  }
}

function effect(id, { with: included, without, correlation, excluded }) {
  const [now, then] = excluded ? [without, included] : [included, without];
  const same = now.rank === then.rank;
  const what = excluded ? "Restoring" : "Excluding";
  const message = same ? `${what} P${id} would not change the number of dimensions.` : `${what} P${id} would change the number of dimensions from ${now.rank} to ${then.rank}.`;
  const percent = (value) => (value == null ? "–" : `${(100 * value).toFixed(1)} %`);
  const row = (name, read) => make("tr", {}, make("th", { scope: "row" }, name), make("td", { className: "number" }, read(included)), make("td", { className: "number" }, read(without)));
  return [
    make("p", {}, message, correlation == null ? "" : ` The inter-item distances of the two maps correlate at ${correlation.toFixed(2)}.`),
    make("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": `With and without P${id}` }, make("table", {},
      make("thead", {}, make("tr", {}, make("td", {}), ...[`with P${id}`, `without P${id}`].map((text) => make("th", { scope: "col", className: "number" }, text)))),
      make("tbody", {}, row("Answers", (fit) => count(fit.answers)), row("Number of dimensions", (fit) => String(fit.rank)), row("Held-out accuracy", (fit) => percent(fit.accuracy))))),
  ];
}
