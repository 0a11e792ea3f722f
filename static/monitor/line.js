// Items along one axis: each above its coordinate, in as many rows as are needed to keep all legible.
/* global d3 */

import { called, decimal } from "./format.js";
import { boxOf, STYLES } from "./labels.js";
import { drawMarks, LAYERS } from "./marks.js";
import { rowsOf } from "./placing.js";

const SIZES = [58, 48, 40, 32, 26, 22];
const NARROW = 720; // pixels: here the tightest style is better than a drawing as high as the page
// Print is sharp enough for smaller type (6 points), and a page must hold several dimensions.
const ON_PAPER = [{ size: 20, font: 9, most: 10 }, { size: 18, font: 8, most: 9 }];
const EDGE = 14;
const BELOW = 38; // numbers and the axis's name

// The most generous style whose rows fit into `height`; if none does, the tightest, and as high as it must be.
function laidOut(xs, items, width, height, paper) {
  const styles = SIZES.map((size, n) => ({ size, ...STYLES[n] }));
  if (paper) styles.push(...ON_PAPER);
  else if (width >= NARROW) styles.pop();
  let found = null;
  for (const style of styles) {
    const boxes = items.map((item) => boxOf(item, style));
    const lefts = boxes.map(({ w }, i) => Math.max(2, Math.min(width - 2 - w, xs[i] - w / 2)));
    const { rows, count } = rowsOf(lefts.map((left, i) => ({ left, right: left + boxes[i].w })));
    const step = Math.max(...boxes.map(({ h }) => h)) + (ON_PAPER.includes(style) ? 1 : 3);
    found = { boxes, lefts, rows, step, high: count * step + 16 };
    if (found.high <= height) break;
  }
  return found;
}

// `halves`: half of each item's interval, or null. Returns the marks and names of the items, so that callers can add listeners.
export function draw(place, { values, items, chosen, label, height, filled = false, paper = false, halves = null, shown = [], pointed = null, move = (mark) => mark }) {
  const width = Math.max(240, Math.floor(place.clientWidth));
  const [least, most] = d3.extent(values);
  const range = most - least || 1;
  const wide = halves ? Math.min(0.25 * range, Math.max(...halves)) : 0;
  const x = d3.scaleLinear([least - wide, most === least ? least + 1 : most + wide], [EDGE, width - EDGE]);
  const xs = values.map(x);
  const { boxes, lefts, rows, step, high } = laidOut(xs, items, width, height - BELOW, paper);
  // Where the height is fixed, names in rows that do not fit are shown only while their marks are pointed at.
  const last = filled ? Math.floor((height - BELOW - 16) / step) : Infinity;
  const used = Math.min(high, last * step + 16);
  const all = filled ? height : high + BELOW;
  const base = Math.round((all - BELOW - used) / 2 + used);
  let svg = d3.select(place).select("svg.line");
  if (svg.empty()) {
    place.replaceChildren();
    svg = d3.select(place).append("svg").attr("class", "line");
    for (const layer of ["scale", ...LAYERS]) svg.append("g").attr("class", layer);
  }
  svg.attr("viewBox", `0 0 ${width} ${all}`).attr("width", width).attr("height", all);
  scale(svg.select(".scale"), x, width, base, label);
  const placed = items.map((item, i) => {
    const { w, h } = boxes[i];
    const [dx, dy] = [lefts[i] + w / 2 - xs[i], -(10 + step * rows[i] + step / 2)];
    const row = { i, item, x: xs[i], y: base, box: boxes[i], aside: [dx, 8 + h / 2] };
    return rows[i] < last ? { ...row, offset: [dx, dy], end: [Math.max(dx - w / 2, Math.min(0, dx + w / 2)), dy + h / 2] } : row;
  });
  move(svg.select(".ellipses").selectAll("rect").data(halves ? placed.filter((row) => shown.includes(row.i)) : [], (row) => row.i).join("rect"))
    .attr("class", (row) => (row.i === chosen ? "chosen" : null)).attr("rx", 3).attr("height", 10).attr("y", base - 5)
    .attr("x", (row) => x(values[row.i] - halves[row.i])).attr("width", (row) => x(values[row.i] + halves[row.i]) - x(values[row.i] - halves[row.i]));
  const missing = placed.filter((row) => !row.offset).length;
  return { svg, missing, drawn: drawMarks(svg, placed, { chosen, pointed, move }), points: placed.map((row) => [row.x, row.y]) };
}

function scale(layer, x, width, base, label) {
  layer.selectAll("line.base").data([0]).join("line").attr("class", "base").attr("x1", 2).attr("x2", width - 2).attr("y1", base).attr("y2", base);
  const ticks = x.ticks(Math.max(3, Math.min(9, Math.round(width / 110))));
  const format = x.tickFormat(ticks.length);
  layer.selectAll("line.tick").data(ticks).join("line").attr("class", "tick").attr("x1", x).attr("x2", x).attr("y1", base).attr("y2", base + 6);
  layer.selectAll("text.tick").data(ticks).join("text").attr("class", "tick").attr("x", x).attr("y", base + 18).attr("text-anchor", "middle").text(format);
  layer.selectAll("text.title").data([label]).join("text").attr("class", "title").attr("x", width - 2).attr("y", base + 33).attr("text-anchor", "end").text(`${label} →`);
}

// Text alternative of a line: every item in order.
export function spoken(values, items, what) {
  const order = items.map((item, i) => [values[i], called(item)]).sort((first, other) => first[0] - other[0]);
  return `${what}, from low to high: ${order.map(([value, name]) => `${name} ${decimal(value, 1)}`).join(", ")}.`;
}
