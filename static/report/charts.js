// Charts that only a report has: collection over time and response quality.
/* global Plot, d3 */

import { draw, grid, percent, scale } from "../monitor/charts.js";
import { count, plural } from "../monitor/format.js";

const TIME_WIDTH = 130; // pixels of a label on the time axis, with the space around it
const MINUTE_MS = 60000;
const DAY_MS = 86400000;
const EVENTS = { pause: "paused", resume: "resumed", stop: "stopped", reopen: "reopened", start: "started", exclude: "excluded", restore: "restored" };

export function collected(place, data) {
  const rows = data.at.map((at, i) => ({ at: new Date(at), answers: data.answers[i] }));
  const events = data.events.map((event) => ({ ...event, at: new Date(event.at) }));
  const description = rows.length ? `Answers over time: ${count(data.answers.at(-1))} from ${rows[0].at.toUTCString()} to ${rows.at(-1).at.toUTCString()}.` : "No answers yet.";
  const span = rows.length ? rows.at(-1).at - rows[0].at : 0;
  const format = span < 5 * MINUTE_MS ? "%H:%M:%S" : span < 2 * DAY_MS ? "%H:%M" : "%-d %b";
  draw(place, description, rows.length ? data : null, (width) => ({
    marginRight: 24,
    x: { type: "utc", label: "time (UTC)", labelArrow: "none", ticks: Math.max(2, Math.floor(width / TIME_WIDTH)), tickSize: 0, tickFormat: d3.utcFormat(format) },
    y: scale("answers collected", { zero: true, nice: true }),
    marks: [
      Plot.gridY({ ...grid, ticks: 4 }),
      Plot.ruleY([0], { stroke: "currentColor", strokeOpacity: 0.5 }),
      Plot.areaY(rows, { x: "at", y: "answers", fill: "var(--blue)", fillOpacity: 0.12 }),
      Plot.line(rows, { x: "at", y: "answers", stroke: "var(--blue)", strokeWidth: 2.5 }),
      Plot.ruleX(events, { x: "at", stroke: "currentColor", strokeOpacity: 0.25, strokeDasharray: "3 3" }),
      Plot.dot(events, { x: "at", y: "answers", r: 4.5, fill: "var(--vermillion)", stroke: "var(--card)", strokeWidth: 1.5, title: (event) => `${EVENTS[event.kind]} at ${plural(event.answers, "answer")}` }),
    ],
  }));
}

const SHARES = {
  catch: "catch trials correct",
  consistency: "repeat consistency",
  agreement: "agreement with map",
  side: "most frequent place",
};

// Participants with nearly the same share are drawn as one dot, whose area grows with their number.
const STEP = 0.025;

function gathered(rows) {
  const dots = new Map();
  for (const participant of rows)
    for (const name of Object.keys(SHARES)) {
      if (participant[name] == null) continue;
      const state = participant.excluded ? "excluded" : participant.flags.includes(name) ? "flagged" : "not flagged";
      const value = Math.round(participant[name] / STEP) * STEP;
      const key = `${name} ${value} ${state}`;
      if (!dots.has(key)) dots.set(key, { measure: SHARES[name], value, state, count: 0 });
      dots.get(key).count += 1;
    }
  const order = ["not flagged", "flagged", "excluded"];
  return [...dots.values()].sort((dot, other) => order.indexOf(dot.state) - order.indexOf(other.state) || other.count - dot.count);
}

export function participants(place, rows, kind) {
  if (kind.label === "triplet") SHARES.side = "left option chosen";
  const dots = gathered(rows);
  const measures = Object.values(SHARES).filter((name) => dots.some((dot) => dot.measure === name));
  const fill = { "not flagged": "var(--blue)", flagged: "var(--vermillion)", excluded: "var(--card)" };
  const most = Math.max(1, ...dots.map((dot) => dot.count));
  const description = `Response quality of ${plural(rows.length, "participant")}; the numbers are in the table of participants.`;
  draw(place, description, dots.length ? rows : null, () => ({
    height: 48 + 44 * measures.length,
    marginLeft: 132,
    marginRight: 24,
    marginTop: 6,
    x: { domain: [0, 1], tickFormat: percent, ticks: 5, tickSize: 0, label: "share of each participant’s answers", labelAnchor: "right", labelArrow: "none" },
    fy: { domain: measures, label: null, axis: "left", padding: 0.12 },
    r: { type: "identity" },
    color: { type: "identity" },
    marks: [
      Plot.frame({ stroke: "none", fill: "currentColor", fillOpacity: 0.035, rx: 6 }),
      Plot.gridX({ ...grid, ticks: 5 }),
      Plot.dot(dots, {
        x: "value",
        fy: "measure",
        r: (dot) => 3.5 + 10 * Math.sqrt((dot.count - 1) / most),
        fill: (dot) => fill[dot.state],
        fillOpacity: (dot) => (dot.state === "excluded" ? 0.6 : 0.75),
        stroke: (dot) => (dot.state === "excluded" ? "var(--vermillion)" : "var(--card)"),
        strokeWidth: (dot) => (dot.state === "excluded" ? 2 : 1),
        title: (dot) => `${dot.measure} ${Math.round(100 * dot.value)} %: ${plural(dot.count, "participant")}, ${dot.state}`,
      }),
    ],
  }));
}
