// Charts of one card each, drawn by Plot. Every chart carries its own words for those who cannot see it.
/* global Plot */

import { count, decimal, plural, share } from "./format.js";

export const COLOURS = ["blue", "orange", "green", "vermillion", "purple", "sky", "ochre", "ink"];
const colour = (at) => `var(--${COLOURS[at % COLOURS.length]})`;
const drawn = new WeakMap();

// Draws anew only if something changed; the old chart stays until the new one is ready.
export function draw(place, words, data, options) {
  const width = Math.max(220, Math.floor(place.clientWidth));
  const height = Math.max(90, Math.floor(place.clientHeight));
  const key = JSON.stringify([width, height, data]);
  if (drawn.get(place) === key) return;
  drawn.set(place, key);
  if (!data) {
    const empty = document.createElement("p");
    empty.className = "empty";
    empty.textContent = "No data yet.";
    place.replaceChildren(empty);
    return;
  }
  const chart = Plot.plot({
    className: "plot",
    width,
    height,
    marginLeft: 48,
    marginRight: 14,
    marginTop: 24,
    marginBottom: 36,
    style: { fontSize: "12px", fontFamily: "inherit", background: "transparent", color: "inherit", overflow: "visible" },
    ...options(width),
  });
  // The chart as a whole speaks; its parts would only say "line" and "dot".
  for (const part of chart.querySelectorAll("[aria-label], [aria-description]")) {
    part.removeAttribute("aria-label");
    part.removeAttribute("aria-description");
  }
  chart.setAttribute("role", "img");
  chart.setAttribute("aria-label", words);
  place.replaceChildren(chart);
}

export const percent = (one) => `${Math.round(100 * one)} %`;
export const grid = { stroke: "currentColor", strokeOpacity: 0.1 };
const answersAxis = { label: "answers", labelAnchor: "right", ticks: 5, tickSize: 0, tickFormat: count, nice: true };
// An axis with its name, and its unit where there is one.
export const scale = (label, more) => ({ label, labelAnchor: "top", labelArrow: "none", ticks: 4, tickSize: 0, ...more });

export function evidence(place, data) {
  // Guessing is far off as soon as held-out answers tell it apart; it would flatten the rest.
  const rows = data.evidence.filter((one) => one.rank > 0 || data.rank === 0 || one.worse < 3 * one.error);
  const words = rows.length
    ? `Prediction error by number of dimensions ${data.compared}: ${rows.map((one) => `${one.rank}: ${decimal(one.worse, 4)} plus or minus ${decimal(one.error, 4)}`).join("; ")}.`
    : "No data yet.";
  const mine = (one) => (one.rank === data.rank ? "var(--vermillion)" : "var(--blue)");
  draw(place, words, rows.length ? [rows, data.rank] : null, () => ({
    x: { type: "point", domain: rows.map((one) => one.rank), label: "dimensions", labelAnchor: "center", tickSize: 0 },
    y: scale("log-loss difference (nats per answer)", { grid: false, nice: true, zero: true }),
    marks: [
      Plot.gridY({ ...grid, ticks: 4 }),
      Plot.ruleY([0], { stroke: "currentColor", strokeOpacity: 0.5 }),
      Plot.ruleX(rows, { x: "rank", y1: (one) => one.worse - one.error, y2: (one) => one.worse + one.error, stroke: mine, strokeWidth: 3, strokeLinecap: "round", strokeOpacity: 0.55 }),
      Plot.dot(rows, { x: "rank", y: "worse", r: (one) => (one.rank === data.rank ? 7 : 5), fill: mine, stroke: "var(--card)", strokeWidth: 1.5 }),
    ],
    r: { type: "identity" },
  }));
}

export function ranks(place, data) {
  const { answers, rank, audit } = data.history;
  const rows = answers.map((at, i) => ({ at, rank: rank[i], audit: audit[i] }));
  const audits = rows.filter((one) => one.audit);
  const changes = rows.filter((one, i) => i === 0 || one.rank !== rows[i - 1].rank);
  const words = rows.length
    ? `Number of dimensions: ${changes.map((one) => `${one.rank} from ${plural(one.at, "answer")}`).join(", ")}; ${plural(audits.length, "audit")}.`
    : "No model yet.";
  const top = Math.max(3, ...rank) + 0.5;
  draw(place, words, rows.length ? data.history : null, () => ({
    x: answersAxis,
    y: { ...scale("dimensions"), domain: [-0.2, top], ticks: Array.from({ length: Math.floor(top) + 1 }, (_, i) => i), tickFormat: "d", tickSize: 0 },
    marks: [
      Plot.gridY(Array.from({ length: Math.floor(top) + 1 }, (_, i) => i), grid),
      Plot.line(rows, { x: "at", y: "rank", curve: "step-after", stroke: "var(--blue)", strokeWidth: 2.5 }),
      Plot.dot(audits, { x: "at", y: "rank", r: audits.length > 20 ? 2.5 : 4, fill: "var(--card)", stroke: "var(--blue)", strokeWidth: 2 }),
    ],
  }));
}

export function accuracy(place, data) {
  const { answers, value, low, high } = data.history;
  const rows = answers.map((at, i) => ({ at, value: value[i], low: low[i], high: high[i] }));
  const last = rows.at(-1);
  const lines = [{ y: data.chance, words: "chance" }];
  if (data.ceiling != null) lines.push({ y: data.ceiling, words: `noise ceiling, ${share(data.ceiling)}` });
  draw(place, data.words, rows.length ? [data.history, data.ceiling] : null, () => ({
    marginRight: 56,
    x: answersAxis,
    y: scale("random questions predicted correctly", { domain: [Math.min(0.35, ...low), 1], tickFormat: percent, ticks: 5 }),
    marks: [
      Plot.gridY({ ...grid, ticks: 5 }),
      Plot.ruleY(lines, { y: "y", stroke: "currentColor", strokeOpacity: 0.75, strokeDasharray: "4 4" }),
      Plot.text(lines, { y: "y", text: "words", frameAnchor: "left", dy: -8, dx: 4, textAnchor: "start", fill: "currentColor", stroke: "var(--card)", strokeWidth: 4 }),
      Plot.areaY(rows, { x: "at", y1: "low", y2: "high", fill: "var(--green)", fillOpacity: 0.2 }),
      Plot.line(rows, { x: "at", y: "value", stroke: "var(--green)", strokeWidth: 2.5 }),
      Plot.dot([last], { x: "at", y: "value", r: 5, fill: "var(--green)", stroke: "var(--card)", strokeWidth: 1.5 }),
      Plot.text([last], { x: "at", y: "value", text: (one) => share(one.value), dx: 10, textAnchor: "start", fontWeight: 700, fontSize: 13 }),
    ],
  }));
}

export function spectrum(place, data) {
  const { answers, shares } = data.history;
  const rows = answers.flatMap((at, i) => shares[i].map((value, k) => ({ at, value, k, n: i })));
  const end = answers.at(-1);
  const ends = data.shares.map((value, k) => ({ at: end, value, k }));
  // Numbers at the ends of lines that lie close are pushed apart.
  const gap = 0.1 * Math.max(1e-9, ...rows.map((one) => one.value));
  const labels = ends.map((one) => ({ ...one })).sort((one, other) => other.value - one.value);
  for (let i = 1; i < labels.length; i++) labels[i].value = Math.min(labels[i].value, labels[i - 1].value - gap);
  draw(place, data.words, rows.length ? [data.shares, data.history] : null, () => ({
    marginRight: 34,
    x: answersAxis,
    y: scale("share of the variance", { zero: true, nice: true, tickFormat: percent }),
    marks: [
      Plot.gridY({ ...grid, ticks: 4 }),
      Plot.ruleY([0], { stroke: "currentColor", strokeOpacity: 0.5 }),
      Array.from(new Set(rows.map((one) => one.k)), (k) => stretches(rows.filter((one) => one.k === k)).map((part) =>
        Plot.line(part, { x: "at", y: "value", stroke: colour(k), strokeWidth: 2.5 }))),
      Plot.dot(ends, { x: "at", y: "value", r: 5, fill: (one) => colour(one.k), stroke: "var(--card)", strokeWidth: 1.5 }),
      Plot.text(labels, { x: "at", y: "value", text: (one) => `${one.k + 1}`, dx: 12, fontWeight: 700, fontSize: 13 }),
    ],
    color: { type: "identity" },
  }));
}

// A line is not drawn through models that did not have its dimension.
function stretches(rows) {
  const parts = [];
  rows.forEach((row, i) => {
    if (i === 0 || row.n !== rows[i - 1].n + 1) parts.push([]);
    parts.at(-1).push(row);
  });
  return parts;
}

export function spark(place, counts) {
  const some = counts.some((one) => one > 0);
  const words = some ? "Answers in each of the last 60 minutes." : "No answers in the last hour.";
  draw(place, words, some ? counts : null, (width) => ({
    width,
    height: 34,
    margin: 1,
    marginLeft: 1,
    marginRight: 1,
    marginTop: 1,
    marginBottom: 1,
    x: { axis: null, domain: [0, 60] },
    y: { axis: null },
    marks: [Plot.rectY(counts.map((value, i) => ({ value, i: i + 60 - counts.length })), { x1: "i", x2: (one) => one.i + 0.8, y: "value", fill: "var(--blue)", fillOpacity: 0.75 })],
  }));
}
