// Charts that only a report has: collection over time and response quality.
/* global Plot, d3 */

import { draw, grid, percent, scale } from "../monitor/charts.js";
import { count, plural } from "../monitor/format.js";

const MINUTE_MS = 60000;
const DAY_MS = 86400000;
const EVENTS = { pause: "paused", resume: "resumed", stop: "stopped", reopen: "reopened", start: "started", exclude: "excluded", restore: "restored" };

export function collected(place, data) {
  const rows = data.at.map((at, i) => ({ at: new Date(at), answers: data.answers[i] }));
  const events = data.events.map((one) => ({ ...one, at: new Date(one.at) }));
  const description = rows.length ? `Answers over time: ${count(data.answers.at(-1))} from ${rows[0].at.toUTCString()} to ${rows.at(-1).at.toUTCString()}.` : "No answers yet.";
  const span = rows.length ? rows.at(-1).at - rows[0].at : 0;
  const format = span < 5 * MINUTE_MS ? "%H:%M:%S" : span < 2 * DAY_MS ? "%H:%M" : "%-d %b";
  draw(place, description, rows.length ? data : null, () => ({
    marginRight: 24,
    x: { type: "utc", label: "time (UTC)", labelArrow: "none", ticks: 5, tickSize: 0, tickFormat: d3.utcFormat(format) },
    y: scale("answers collected", { zero: true, nice: true }),
    marks: [
      Plot.gridY({ ...grid, ticks: 4 }),
      Plot.ruleY([0], { stroke: "currentColor", strokeOpacity: 0.5 }),
      Plot.areaY(rows, { x: "at", y: "answers", fill: "var(--blue)", fillOpacity: 0.12 }),
      Plot.line(rows, { x: "at", y: "answers", stroke: "var(--blue)", strokeWidth: 2.5 }),
      Plot.ruleX(events, { x: "at", stroke: "currentColor", strokeOpacity: 0.25, strokeDasharray: "3 3" }),
      Plot.dot(events, { x: "at", y: "answers", r: 4.5, fill: "var(--vermillion)", stroke: "var(--card)", strokeWidth: 1.5, title: (one) => `${EVENTS[one.kind]} at ${plural(one.answers, "answer")}` }),
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
  for (const one of rows)
    for (const name of Object.keys(SHARES)) {
      if (one[name] == null) continue;
      const state = one.excluded ? "excluded" : one.flags.includes(name) ? "flagged" : "not flagged";
      const value = Math.round(one[name] / STEP) * STEP;
      const key = `${name} ${value} ${state}`;
      if (!dots.has(key)) dots.set(key, { measure: SHARES[name], value, state, count: 0 });
      dots.get(key).count += 1;
    }
  const order = ["not flagged", "flagged", "excluded"];
  return [...dots.values()].sort((one, other) => order.indexOf(one.state) - order.indexOf(other.state) || other.count - one.count);
}

export function participants(place, rows, kind) {
  if (kind.label === "triplet") SHARES.side = "left option chosen";
  const dots = gathered(rows);
  const measures = Object.values(SHARES).filter((name) => dots.some((one) => one.measure === name));
  const fill = { "not flagged": "var(--blue)", flagged: "var(--vermillion)", excluded: "var(--card)" };
  const most = Math.max(1, ...dots.map((one) => one.count));
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
        r: (one) => 3.5 + 10 * Math.sqrt((one.count - 1) / most),
        fill: (one) => fill[one.state],
        fillOpacity: (one) => (one.state === "excluded" ? 0.6 : 0.75),
        stroke: (one) => (one.state === "excluded" ? "var(--vermillion)" : "var(--card)"),
        strokeWidth: (one) => (one.state === "excluded" ? 2 : 1),
        title: (one) => `${one.measure} ${Math.round(100 * one.value)} %: ${plural(one.count, "participant")}, ${one.state}`,
      }),
    ],
  }));
}
