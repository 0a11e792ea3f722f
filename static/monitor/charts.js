// The charts of the cards, drawn by Plot. Each has a text alternative for screen readers.
/* global Plot, d3 */

import { count, decimal, plural, share } from "./format.js";

export const COLOURS = ["blue", "orange", "green", "vermillion", "purple", "sky", "ochre", "ink"];
const colour = (at) => `var(--${COLOURS[at % COLOURS.length]})`;
const drawn = new WeakMap();
const MARGIN = { top: 24, bottom: 36 };
const LABEL_SPACING = 15; // pixels between tick labels, which are 12 pixels high

// Redraws only if something changed; the old chart stays until the new one is ready. `options` gets the chart's size.
export function draw(place, description, data, options) {
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
    marginTop: MARGIN.top,
    marginBottom: MARGIN.bottom,
    style: { fontSize: "12px", fontFamily: "inherit", background: "transparent", color: "inherit", overflow: "visible" },
    ...options(width, height),
  });
  // Screen readers read the description of the whole chart; its parts would only add "line" and "dot".
  for (const part of chart.querySelectorAll("[aria-label], [aria-description]")) {
    part.removeAttribute("aria-label");
    part.removeAttribute("aria-description");
  }
  chart.setAttribute("role", "img");
  chart.setAttribute("aria-label", description);
  place.replaceChildren(chart);
}

export const percent = (value) => `${Math.round(100 * value)} %`;
export const grid = { stroke: "currentColor", strokeOpacity: 0.1 };
const answersAxis = { label: "answers", labelAnchor: "right", ticks: 5, tickSize: 0, tickFormat: count, nice: true };
// A y axis with its name, and its unit where there is one.
export const scale = (label, more) => ({ label, labelAnchor: "top", labelArrow: "none", ticks: 4, tickSize: 0, ...more });

const roomFor = (height) => Math.max(1, height - MARGIN.top - MARGIN.bottom);

// A rounded domain that holds the values, with as many round ticks, up to four, as their labels have room for.
function ticksFor(values, height) {
  const y = d3.scaleLinear(d3.extent(values), [0, roomFor(height)]).nice();
  const domain = y.domain();
  for (let many = 4; many > 0; many--) {
    const ticks = y.ticks(many);
    if (ticks.length > 1 && y(ticks[1]) - y(ticks[0]) >= LABEL_SPACING) return { domain, ticks };
  }
  return { domain, ticks: [...new Set(domain)] };
}

export function evidence(place, data) {
  // Once guessing is clearly worse, its loss is so much higher that it would flatten all other differences.
  const rows = data.evidence.filter((row) => row.rank > 0 || data.rank === 0 || row.difference < 3 * row.error);
  const description = rows.length
    ? `Prediction error by number of dimensions ${data.compared}: ${rows.map((row) => `${row.rank}: ${decimal(row.difference, 4)} plus or minus ${decimal(row.error, 4)}`).join("; ")}.`
    : "No data yet.";
  const mine = (row) => (row.rank === data.rank ? "var(--vermillion)" : "var(--blue)");
  const values = [0, ...rows.flatMap((row) => [row.difference - row.error, row.difference + row.error])];
  draw(place, description, rows.length ? [rows, data.rank] : null, (_, height) => {
    const { domain, ticks } = ticksFor(values, height);
    return {
      x: { type: "point", domain: rows.map((row) => row.rank), label: "dimensions", labelAnchor: "center", tickSize: 0 },
      y: scale("log-loss difference (nats per answer)", { grid: false, domain, ticks }),
      marks: [
        Plot.gridY(ticks, grid),
        Plot.ruleY([0], { stroke: "currentColor", strokeOpacity: 0.5 }),
        Plot.ruleX(rows, { x: "rank", y1: (row) => row.difference - row.error, y2: (row) => row.difference + row.error, stroke: mine, strokeWidth: 3, strokeLinecap: "round", strokeOpacity: 0.55 }),
        Plot.dot(rows, { x: "rank", y: "difference", r: (row) => (row.rank === data.rank ? 7 : 5), fill: mine, stroke: "var(--card)", strokeWidth: 1.5 }),
      ],
      r: { type: "identity" },
    };
  });
}

export function ranks(place, data) {
  const { answers, rank, audit } = data.history;
  const rows = answers.map((at, i) => ({ at, rank: rank[i], audit: audit[i] }));
  const audits = rows.filter((row) => row.audit);
  const changes = rows.filter((row, i) => i === 0 || row.rank !== rows[i - 1].rank);
  const description = rows.length
    ? `Number of dimensions: ${changes.map((row) => `${row.rank} from ${plural(row.at, "answer")}`).join(", ")}; ${plural(audits.length, "audit")}.`
    : "No model yet.";
  const [low, high] = [-0.2, Math.max(3, ...rank) + 0.5];
  draw(place, description, rows.length ? data.history : null, (_, height) => {
    const step = Math.ceil((LABEL_SPACING * (high - low)) / roomFor(height));
    return {
      x: answersAxis,
      y: { ...scale("dimensions"), domain: [low, high], ticks: d3.range(0, high, step), tickFormat: "d" },
      marks: [
        Plot.gridY(d3.range(0, high), grid),
        Plot.line(rows, { x: "at", y: "rank", curve: "step-after", stroke: "var(--blue)", strokeWidth: 2.5 }),
        Plot.dot(audits, { x: "at", y: "rank", r: audits.length > 20 ? 2.5 : 4, fill: "var(--card)", stroke: "var(--blue)", strokeWidth: 2 }),
      ],
    };
  });
}

export function accuracy(place, data) {
  const { answers, value, low, high } = data.history;
  const rows = answers.map((at, i) => ({ at, value: value[i], low: low[i], high: high[i] }));
  const last = rows.at(-1);
  const chance = data.chance >= 0.1 ? share(data.chance) : `${(100 * data.chance).toPrecision(2)} %`;
  const lines = [{ y: data.chance, label: data.chance === 0.5 ? "chance" : `chance, ${chance}` }];
  if (data.ceiling != null) lines.push({ y: data.ceiling, label: `noise ceiling, ${share(data.ceiling)}` });
  draw(place, data.message, rows.length ? [data.history, data.ceiling] : null, () => ({
    marginRight: 56,
    x: answersAxis,
    y: scale("random questions predicted correctly", { domain: [data.chance < 0.5 ? 0 : Math.min(0.35, ...low), 1], tickFormat: percent, ticks: 5 }),
    marks: [
      Plot.gridY({ ...grid, ticks: 5 }),
      Plot.ruleY(lines, { y: "y", stroke: "currentColor", strokeOpacity: 0.75, strokeDasharray: "4 4" }),
      Plot.areaY(rows, { x: "at", y1: "low", y2: "high", fill: "var(--green)", fillOpacity: 0.2 }),
      Plot.line(rows, { x: "at", y: "value", stroke: "var(--green)", strokeWidth: 2.5 }),
      Plot.dot([last], { x: "at", y: "value", r: 5, fill: "var(--green)", stroke: "var(--card)", strokeWidth: 1.5 }),
      Plot.text(lines, { y: "y", text: "label", frameAnchor: "left", dy: -8, dx: 4, textAnchor: "start", fill: "currentColor", stroke: "var(--card)", strokeWidth: 4 }),
      Plot.text([last], { x: "at", y: "value", text: (row) => share(row.value), dx: 10, textAnchor: "start", fontWeight: 700, fontSize: 13 }),
    ],
  }));
}

export function spectrum(place, data) {
  const { answers, shares, ruled_out: ruledOut = [] } = data.history;
  // Shares that a further dimension may have without having been noticed.
  const unnoticed = answers.map((at, i) => ({ at, value: ruledOut[i] ?? NaN }));
  const rows = answers.flatMap((at, i) => shares[i].map((value, k) => ({ at, value, k, n: i })));
  const ends = data.shares.map((value, k) => ({ at: answers.at(-1), value, k }));
  // Labels at the ends of lines that are close together are pushed apart.
  const gap = 0.1 * Math.max(1e-9, ...rows.map((row) => row.value));
  const labels = ends.map((end) => ({ ...end })).sort((a, b) => b.value - a.value);
  for (let i = 1; i < labels.length; i++) labels[i].value = Math.min(labels[i].value, labels[i - 1].value - gap);
  draw(place, data.message, rows.length ? [data.shares, data.history] : null, () => ({
    marginRight: 34,
    x: answersAxis,
    y: scale("share of the variance", { zero: true, nice: true, tickFormat: percent }),
    marks: [
      Plot.gridY({ ...grid, ticks: 4 }),
      Plot.areaY(unnoticed, { x: "at", y1: 0, y2: "value", curve: "step-after", fill: "currentColor", fillOpacity: 0.12 }),
      Plot.line(unnoticed, { x: "at", y: "value", curve: "step-after", stroke: "currentColor", strokeOpacity: 0.75, strokeDasharray: "4 4" }),
      Plot.ruleY([0], { stroke: "currentColor", strokeOpacity: 0.5 }),
      Array.from(new Set(rows.map((row) => row.k)), (k) => stretches(rows.filter((row) => row.k === k)).map((part) =>
        Plot.line(part, { x: "at", y: "value", stroke: colour(k), strokeWidth: 2.5 }))),
      Plot.dot(ends, { x: "at", y: "value", r: 5, fill: (end) => colour(end.k), stroke: "var(--card)", strokeWidth: 1.5 }),
      Plot.text(labels, { x: "at", y: "value", text: (label) => `${label.k + 1}`, dx: 12, fontWeight: 700, fontSize: 13 }),
    ],
    color: { type: "identity" },
  }));
}

// Splits a dimension's line where models in between did not have it.
function stretches(rows) {
  const parts = [];
  rows.forEach((row, i) => {
    if (i === 0 || row.n !== rows[i - 1].n + 1) parts.push([]);
    parts.at(-1).push(row);
  });
  return parts;
}

export function spark(place, counts) {
  const some = counts.some((value) => value > 0);
  const description = some ? "Answers in each of the last 60 minutes." : "No answers in the last hour.";
  if (!some) {
    drawn.delete(place);
    return place.replaceChildren();
  }
  draw(place, description, counts, (width) => ({
    width,
    height: place.clientHeight,
    margin: 1,
    marginLeft: 1,
    marginRight: 1,
    marginTop: 1,
    marginBottom: 1,
    x: { axis: null, domain: [0, 60] },
    y: { axis: null },
    marks: [Plot.rectY(counts.map((value, i) => ({ value, i: i + 60 - counts.length })), { x1: "i", x2: (bar) => bar.i + 0.8, y: "value", fill: "var(--blue)", fillOpacity: 0.75 })],
  }));
}
