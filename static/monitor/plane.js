// Two dimensions of the map: marks at the estimated positions, labels that do not overlap, axes with numbers.
/* global d3 */

import { ellipse } from "./geometry.js";
import { boxOf, shapesKnown, STYLES } from "./labels.js";
import { drawMarks, LAYERS } from "./marks.js";
import { leader, offsetsOf } from "./placing.js";

const MARGIN = { left: 40, right: 14, top: 14, bottom: 40 };
const MAX_ZOOM = 8;
const [LARGEST, SMALLEST] = [64, 14];
// Images shrink until their mean shift is at most this share of their size.
const MAX_SHIFT = 0.4;
// A name farther from its mark than this no longer seems to belong to it.
const MAX_LEADER = 90;
const STEPS = 9;
// With more items than this, generous styles never fit.
const MANY = 250;
const view = { frame: null, zoom: null, behaviour: null, offsets: new Map(), key: "", places: "", best: null, moving: false };

// The frame changes only when it must, so that the map does not keep shifting slightly.
function steady(points, extents, width, height, key) {
  const [xs, ys] = [d3.extent(extents.flatMap((extent) => extent.x)), d3.extent(extents.flatMap((extent) => extent.y))];
  const room = 0.88;
  const unit = Math.min((room * width) / (xs[1] - xs[0] || 1), (room * height) / (ys[1] - ys[0] || 1));
  const wanted = { unit, x: (xs[0] + xs[1]) / 2, y: (ys[0] + ys[1]) / 2, key };
  const old = view.frame;
  const fits = old && old.key === key && unit < 1.3 * old.unit && points.every(([x, y]) =>
    Math.abs(x - old.x) * old.unit < 0.47 * width && Math.abs(y - old.y) * old.unit < 0.47 * height);
  if (!fits) view.frame = wanted;
  return view.frame;
}

// Ellipses must be visible as a whole, but very uncertain items must not shrink the rest of the map.
function reach(points, shapes) {
  const [xs, ys] = [d3.extent(points, (point) => point[0]), d3.extent(points, (point) => point[1])];
  const most = 0.35 * Math.max(xs[1] - xs[0], ys[1] - ys[0]);
  return points.map(([x, y], i) => {
    const [dx, dy] = [Math.min(most, shapes[i]?.halfWidth ?? 0), Math.min(most, shapes[i]?.halfHeight ?? 0)];
    return { x: [x - dx, x + dx], y: [y - dy, y + dy] };
  });
}

// Zooms by Ctrl and wheel, by two fingers, or by the buttons; dragging pans a zoomed map.
function zoomable(svg, width, height, again) {
  view.zoom ??= d3.zoomIdentity;
  view.behaviour = d3.zoom()
    .scaleExtent([1, MAX_ZOOM])
    .translateExtent([[0, 0], [width, height]])
    .extent([[0, 0], [width, height]])
    .filter((event) => (event.type === "wheel" ? event.ctrlKey : event.touches ? event.touches.length > 1 : event.type === "mousedown" && view.zoom.k > 1))
    .on("zoom", (event) => {
      if (view.zoom === event.transform) return;
      Object.assign(view, { zoom: event.transform, moving: Boolean(event.sourceEvent) });
      requestAnimationFrame(again);
    })
    .on("end", () => {
      if (!view.moving) return;
      Object.assign(view, { moving: false, key: "" });
      requestAnimationFrame(again);
    });
  svg.call(view.behaviour).on("dblclick.zoom", null);
}

export function magnify(place, factor) {
  const svg = d3.select(place).select("svg.plane");
  if (svg.empty()) return;
  if (factor) svg.call(view.behaviour.scaleBy, factor);
  else svg.call(view.behaviour.transform, d3.zoomIdentity);
}

export function forget() {
  view.frame = null;
}

// Boxes and offsets in one style, from generous (0) to tight; the last styles allow long leaders instead.
function styled(rows, n, width, height, before) {
  const largest = Math.max(SMALLEST, Math.min(LARGEST, 0.62 * Math.sqrt((width * height) / rows.length)));
  const style = { ...STYLES[Math.min(n, STYLES.length - 1)], size: Math.max(SMALLEST, largest * 0.86 ** n) };
  const boxes = rows.map((row) => ({ ...boxOf(row.item, style), x: row.x - MARGIN.left, y: row.y - 4 }));
  for (const box of boxes) box.beside = box.text !== null;
  const offsets = offsetsOf(boxes, width, height, before, MAX_LEADER * (1 + 0.5 * Math.max(0, n - STYLES.length + 1)));
  const shifts = offsets.filter((offset, i) => offset && !boxes[i].beside).map((offset) => Math.hypot(...offset) / style.size);
  return { n, boxes, offsets, missing: offsets.filter((offset) => !offset).length, shift: d3.mean(shifts) ?? 0 };
}

// The most generous style in which every label has room; if there is none, the one with the fewest missing.
function search(rows, width, height) {
  let best = null;
  for (let n = rows.length > MANY ? STYLES.length - 1 : 0; n < (rows.length > MANY ? STYLES.length : STEPS); n++) {
    const found = styled(rows, n, width, height, []);
    if (!best || found.missing < best.missing || (found.missing === best.missing && found.shift < best.shift)) best = found;
    if (!best.missing && best.shift <= MAX_SHIFT) break;
  }
  return best;
}

// A style is kept while it fits, so that labels do not change size whenever an item moves a little. While the reader drags
// or zooms there is no time to try others.
function labelled(rows, width, height, key) {
  const inside = [width - MARGIN.left - 4, height - MARGIN.bottom - 4];
  const places = JSON.stringify(rows.map((row) => [row.i, Math.round(row.x), Math.round(row.y)]));
  const same = view.best && view.key === key;
  if (same && view.places === places) return view.best;
  let best = null;
  if (same || (view.best && view.moving)) {
    best = styled(rows, view.best.n, ...inside, rows.map((row) => view.offsets.get(row.i)));
    if (!view.moving && (best.missing > view.best.missing || best.shift > Math.max(1.2 * MAX_SHIFT, view.best.shift))) best = null;
  }
  best ??= search(rows, ...inside);
  Object.assign(view, { key, places, best });
  return best;
}

// `shown`: items whose ellipses are drawn. Returns the marks and names of the items and how many names did not fit.
export function draw(place, { data, points, items, a, b, principal, chosen, pointed, shown, all, move, again }) {
  const [width, height] = [Math.max(260, Math.floor(place.clientWidth)), Math.max(240, Math.floor(place.clientHeight))];
  const shapes = points.map((_, i) => ellipse(data, i, principal, a, b));
  const inner = { width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom };
  const frame = steady(points, reach(points, all ? shapes : []), inner.width, inner.height, `${width} ${height} ${a} ${b} ${principal} ${data.rank} ${all}`);
  let svg = d3.select(place).select("svg.plane");
  if (svg.empty()) {
    place.replaceChildren();
    svg = d3.select(place).append("svg").attr("class", "plane");
    for (const layer of ["scale", "cross", "near", ...LAYERS]) svg.append("g").attr("class", layer);
  }
  const size = `0 0 ${width} ${height}`;
  if (svg.attr("viewBox") !== size) zoomable(svg, width, height, again);
  svg.attr("viewBox", size).attr("width", width).attr("height", height);
  const zoom = view.zoom;
  const x = d3.scaleLinear([frame.x - 1, frame.x + 1], [-1, 1].map((side) => zoom.applyX(MARGIN.left + inner.width / 2 + side * frame.unit)));
  const y = d3.scaleLinear([frame.y - 1, frame.y + 1], [1, -1].map((side) => zoom.applyY(MARGIN.top + inner.height / 2 + side * frame.unit)));
  const unit = frame.unit * zoom.k;
  scales(svg, x, y, width, height, a, b);

  const rows = points.map((point, i) => ({ i, item: items[i], x: x(point[0]), y: y(point[1]), shape: shapes[i] }));
  const visible = rows.filter((row) => row.x > MARGIN.left && row.x < width - 4 && row.y > 4 && row.y < height - MARGIN.bottom);
  const { boxes, offsets, missing } = visible.length
    ? labelled(visible, width, height, `${width} ${height} ${a} ${b} ${frame.unit} ${zoom.k} ${shapesKnown()} ${items.length}`)
    : { boxes: [], offsets: [], missing: 0 };
  view.offsets = new Map(visible.map((row, n) => [row.i, offsets[n]]));
  visible.forEach((row, n) => Object.assign(row, { box: boxes[n], aside: [(row.x + boxes[n].w + 10 > width ? -1 : 1) * (boxes[n].w / 2 + 6), 0], offset: offsets[n], end: offsets[n] && leader(offsets[n], boxes[n].w, boxes[n].h) }));
  move(svg.select(".ellipses").selectAll("ellipse").data(rows.filter((row) => row.shape && shown.has(row.i)), (row) => row.i)
    .join((enter) => enter.append("ellipse").attr("transform", (row) => `translate(${row.x},${row.y})`))
    .classed("chosen", (row) => row.i === chosen).classed("pointed", (row) => row.i === pointed))
    .attr("rx", (row) => row.shape.long * unit).attr("ry", (row) => row.shape.short * unit)
    .attr("transform", (row) => `translate(${row.x},${row.y}) rotate(${-row.shape.angle})`);
  const drawn = drawMarks(svg, visible, { chosen, pointed, move });
  return { svg, drawn, missing, rows, points: rows.map((row) => [row.x, row.y]) };
}

function scales(svg, x, y, width, height, a, b) {
  const [right, bottom] = [width - 4, height - MARGIN.bottom];
  svg.select(".cross").selectAll("line").data([[MARGIN.left, y(0), right, y(0)], [x(0), 4, x(0), bottom]].filter(([x1, y1]) => x1 >= MARGIN.left && x1 <= right && y1 >= 4 && y1 <= bottom)).join("line")
    .attr("x1", (d) => d[0]).attr("y1", (d) => d[1]).attr("x2", (d) => d[2]).attr("y2", (d) => d[3]);
  const layer = svg.select(".scale");
  layer.selectAll("rect").data([0]).join("rect").attr("x", MARGIN.left).attr("y", 4).attr("width", right - MARGIN.left).attr("height", bottom - 4).attr("rx", 6);
  const across = d3.scaleLinear([x.invert(MARGIN.left), x.invert(right)], [MARGIN.left, right]);
  const up = d3.scaleLinear([y.invert(bottom), y.invert(4)], [bottom, 4]);
  const [xs, ys] = [across.ticks(Math.round(width / 110)), up.ticks(Math.round(height / 80))];
  layer.selectAll("text.x").data(xs).join("text").attr("class", "tick x").attr("x", x).attr("y", bottom + 15).attr("text-anchor", "middle").text(across.tickFormat(xs.length));
  layer.selectAll("text.y").data(ys).join("text").attr("class", "tick y").attr("x", MARGIN.left - 6).attr("y", y).attr("dy", "0.32em").attr("text-anchor", "end").text(up.tickFormat(ys.length));
  layer.selectAll("text.title").data([`Dimension ${a + 1} (model units) →`, `Dimension ${b + 1} (model units) →`]).join("text").attr("class", "title").attr("text-anchor", "end")
    .attr("transform", (_, n) => (n ? `translate(11,4) rotate(-90)` : `translate(${right},${height - 6})`)).text((text) => text);
}
