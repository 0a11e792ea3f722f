// The map of items: pictures or words where the answers put them, moving gently between versions.
/* global d3 */

import { byId, called, count, decimal, make, pictured, reduced, say, thumbnail } from "./format.js";

const CERTAIN = Math.sqrt(5.991); // 95 % of a normal distribution in the plane
const NEAREST = 6;
const MOST_ZOOM = 8;
const chart = { rank: -1, frame: null, chosen: null, known: null, items: [], zoom: null, behaviour: null };

// Positions and covariances of the two axes shown; `turn` brings them to principal axes.
function framed(data, principal) {
  const turn = principal ? data.turn : null;
  const rotate = (row) => (turn ? turn[0].map((_, k) => row.reduce((sum, value, m) => sum + value * turn[m][k], 0)) : row);
  return data.positions.map(rotate);
}

function covariance(triangle, rank, principal, turn, a, b) {
  const at = (i, j) => triangle[Math.min(i, j) * rank - (Math.min(i, j) * (Math.min(i, j) - 1)) / 2 + Math.abs(i - j)];
  const entry = (k, l) => {
    if (!principal) return at(k, l);
    let sum = 0;
    for (let i = 0; i < rank; i++) for (let j = 0; j < rank; j++) sum += turn[i][k] * at(i, j) * turn[j][l];
    return sum;
  };
  return [entry(a, a), entry(a, b), entry(b, b)];
}

function ellipse([xx, xy, yy]) {
  const mean = (xx + yy) / 2;
  const root = Math.sqrt(Math.max(0, ((xx - yy) / 2) ** 2 + xy * xy));
  return {
    long: CERTAIN * Math.sqrt(Math.max(0, mean + root)),
    short: CERTAIN * Math.sqrt(Math.max(0, mean - root)),
    angle: (Math.atan2(2 * xy, xx - yy) / 2) * (180 / Math.PI),
  };
}

export function coordinates(data) {
  return framed(data, byId("frame").value === "principal");
}

function offerAxes(rank) {
  if (chart.rank === rank) return;
  chart.rank = rank;
  for (const [id, first] of [["axis-x", 0], ["axis-y", 1]]) {
    const select = byId(id);
    const before = Math.min(Number(select.value || first), rank - 1);
    select.replaceChildren(...Array.from({ length: Math.max(rank, 1) }, (_, k) => make("option", { value: String(k) }, `dimension ${k + 1}`)));
    select.value = String(Math.max(0, before));
    select.disabled = rank < 2;
  }
  if (rank >= 2 && byId("axis-x").value === byId("axis-y").value) byId("axis-y").value = byId("axis-x").value === "0" ? "1" : "0";
}

// The frame of the drawing changes only when it must: otherwise everything would always move a little.
function steady(points, width, height, key) {
  const [xs, ys] = [d3.extent(points, (one) => one[0]), d3.extent(points, (one) => one[1])];
  const room = 0.86;
  const unit = Math.min((room * width) / (xs[1] - xs[0] || 1), (room * height) / (ys[1] - ys[0] || 1));
  const wanted = { unit, x: (xs[0] + xs[1]) / 2, y: (ys[0] + ys[1]) / 2, key };
  const old = chart.frame;
  const fits = old && old.key === key && unit < 1.3 * old.unit && points.every(([x, y]) =>
    Math.abs(x - old.x) * old.unit < 0.48 * width && Math.abs(y - old.y) * old.unit < 0.48 * height);
  if (!fits) chart.frame = wanted;
  return chart.frame;
}

// Ctrl and wheel, two fingers, or the buttons; dragging moves what was magnified.
function zoomable(svg, width, height) {
  chart.zoom ??= d3.zoomIdentity;
  chart.behaviour = d3.zoom()
    .scaleExtent([1, MOST_ZOOM])
    .translateExtent([[0, 0], [width, height]])
    .extent([[0, 0], [width, height]])
    .filter((event) => (event.type === "wheel" ? event.ctrlKey : event.touches ? event.touches.length > 1 : event.type === "mousedown" && chart.zoom.k > 1))
    .on("zoom", (event) => {
      if (chart.zoom === event.transform) return;
      chart.zoom = event.transform;
      requestAnimationFrame(() => draw(chart.known, chart.items, true));
    });
  svg.call(chart.behaviour).on("dblclick.zoom", null);
}

export function magnify(factor) {
  const svg = d3.select(byId("map-chart")).select("svg");
  if (svg.empty()) return;
  if (factor) svg.call(chart.behaviour.scaleBy, factor);
  else svg.call(chart.behaviour.transform, d3.zoomIdentity);
}

export function draw(data, items, atOnce = false) {
  const place = byId("map-chart");
  offerAxes(data.rank);
  chart.known = data;
  if (!chart.items.length && items.length) {
    byId("item").append(...items.map((item, i) => make("option", { value: String(i) }, called(item))));
    byId("ellipses").checked = items.length <= 80;
  }
  chart.items = items;
  if (data.rank === 0) {
    place.replaceChildren(make("p", { className: "empty" }, "There is no map yet."));
    say(byId("map-words"), "");
    chart.frame = null;
    return inspect();
  }
  const principal = byId("frame").value === "principal";
  const [a, b] = [Number(byId("axis-x").value), Number(byId("axis-y").value)];
  const all = framed(data, principal);
  // With one dimension the height means nothing; it only keeps items apart.
  const points = all.map((row, i) => [row[a], data.rank > 1 ? row[b] : ((i * 0.618034) % 1) - 0.5]);
  const width = Math.max(280, place.clientWidth);
  const height = Math.round(Math.min(width, Math.max(320, 0.72 * innerHeight)));
  const frame = steady(points, width, height, `${width} ${height} ${a} ${b} ${principal} ${data.rank}`);
  const zoom = chart.zoom ?? d3.zoomIdentity;
  const unit = frame.unit * zoom.k;
  const x = (value) => zoom.applyX(width / 2 + (value - frame.x) * frame.unit);
  const y = (value) => zoom.applyY(height / 2 - (value - frame.y) * frame.unit);
  const size = Math.max(14, Math.min(46, 0.62 * Math.sqrt((width * height) / items.length)));

  let svg = d3.select(place).select("svg");
  const fresh = svg.empty();
  if (fresh) {
    place.replaceChildren();
    svg = d3.select(place).append("svg").attr("role", "img").attr("class", "map");
    for (const layer of ["cross", "near", "ellipses", "marks"]) svg.append("g").attr("class", layer);
  }
  if (fresh || svg.attr("width") !== String(width)) zoomable(svg, width, height);
  svg.attr("viewBox", `0 0 ${width} ${height}`).attr("width", width).attr("height", height);
  const one = data.rank > 1 ? `dimensions ${a + 1} and ${b + 1}` : "the only dimension; height has no meaning";
  svg.attr("aria-label", `Map of ${items.length} items, ${one}.`);
  svg.select(".cross").selectAll("line").data([[0, y(0), width, y(0)], [x(0), 0, x(0), height]]).join("line")
    .attr("x1", (d) => d[0]).attr("y1", (d) => d[1]).attr("x2", (d) => d[2]).attr("y2", (d) => d[3]);

  const ease = fresh || atOnce || reduced() ? 0 : 900;
  const move = (selection) => (ease ? selection.transition().duration(ease).ease(d3.easeCubicInOut) : selection);
  const rows = points.map((point, i) => ({ i, item: items[i], x: x(point[0]), y: y(point[1]) }));
  const showAll = byId("ellipses").checked;
  const shaped = data.spread && data.rank > 1 ? rows.filter((row) => showAll || row.i === chart.chosen) : [];
  move(
    svg.select(".ellipses").selectAll("ellipse").data(shaped, (row) => row.i).join((enter) => enter.append("ellipse").attr("transform", (row) => `translate(${row.x},${row.y})`))
      .classed("chosen", (row) => row.i === chart.chosen),
  ).each(function (row) {
    row.shape = ellipse(covariance(data.spread[row.i], data.rank, principal, data.turn, a, b));
  }).attr("rx", (row) => row.shape.long * unit).attr("ry", (row) => row.shape.short * unit)
    .attr("transform", (row) => `translate(${row.x},${row.y}) rotate(${-row.shape.angle})`);

  const marks = svg.select(".marks").selectAll("g.item").data(rows, (row) => row.i).join((enter) => {
    const group = enter.append("g").attr("class", "item").attr("transform", (row) => `translate(${row.x},${row.y})`);
    group.append("title").text((row) => called(row.item));
    group.filter((row) => pictured(row.item)).append("image").attr("href", (row) => row.item.address).attr("preserveAspectRatio", "xMidYMid meet");
    group.filter((row) => !pictured(row.item)).append("circle").attr("r", 3.5);
    group.filter((row) => !pictured(row.item)).append("text").text((row) => short(row.item)).attr("x", 6).attr("dy", "0.32em");
    return group;
  });
  marks.classed("chosen", (row) => row.i === chart.chosen)
    .on("click", (_, row) => choose(row.i))
    .on("pointerenter", function () { d3.select(this).classed("hovered", true).raise(); })
    .on("pointerleave", function () { d3.select(this).classed("hovered", false); });
  keepApart(marks, rows, size);
  const own = (row) => (row.crowded ? 0.5 * size : size);
  marks.select("image").attr("width", own).attr("height", own).attr("x", (row) => -own(row) / 2).attr("y", (row) => -own(row) / 2);
  move(marks).attr("transform", (row) => `translate(${row.x},${row.y})`);
  linkNeighbours(svg, rows, all, ease);
  const far = data.rank > 2 ? " Other dimensions are not seen here: items that look close may lie apart in them." : "";
  say(byId("map-words"), data.rank > 1 ? `Left to right: dimension ${a + 1}; bottom to top: dimension ${b + 1}.${far}` : "One dimension, left to right; height has no meaning.");
  inspect(all);
}

function short(item) {
  const words = called(item);
  return words.length > 22 ? `${words.slice(0, 21)}…` : words;
}

// Words that would lie on others are left out: the dot stays, and the word comes back on hovering.
// Pictures that would hide others are drawn small, on top.
function keepApart(marks, rows, size) {
  const taken = [];
  for (const row of rows) {
    const half = 0.32 * size;
    const box = pictured(row.item)
      ? [row.x - half, row.y - half, row.x + half, row.y + half]
      : [row.x - 4, row.y - 8, row.x + 10 + 7 * short(row.item).length, row.y + 8];
    row.crowded = taken.some((t) => box[0] < t[2] && t[0] < box[2] && box[1] < t[3] && t[1] < box[3]);
    if (!row.crowded) taken.push(box);
  }
  marks.classed("crowded", (row) => row.crowded);
  const above = (row) => (row.i === chart.chosen ? 2 : pictured(row.item) === row.crowded ? 1 : 0);
  marks.sort((one, other) => above(one) - above(other) || one.i - other.i);
}

function neighbours(all, i) {
  return all.map((row, j) => ({ j, far: Math.hypot(...row.map((value, k) => value - all[i][k])) }))
    .filter((one) => one.j !== i).sort((one, other) => one.far - other.far).slice(0, NEAREST);
}

function linkNeighbours(svg, rows, all, ease) {
  const near = chart.chosen === null || !rows[chart.chosen] ? [] : neighbours(all, chart.chosen);
  const from = rows[chart.chosen];
  const lines = svg.select(".near").selectAll("line").data(near, (one) => one.j).join("line");
  (ease ? lines.transition().duration(ease) : lines)
    .attr("x1", () => from.x).attr("y1", () => from.y).attr("x2", (one) => rows[one.j].x).attr("y2", (one) => rows[one.j].y);
}

export function choose(i) {
  chart.chosen = chart.chosen === i ? null : i;
  byId("item").value = chart.chosen === null ? "" : String(chart.chosen);
  draw(chart.known, chart.items);
}

function inspect(all = []) {
  const place = byId("inspector");
  const i = chart.chosen;
  if (i === null || !all[i]) {
    place.replaceChildren(make("p", { className: "lead" }, "Click an item to see what lies near it and how often it was asked about."));
    return;
  }
  const item = chart.items[i];
  const [anchor, option] = chart.known.asked[i] ?? [0, 0];
  const list = neighbours(all, i).map(({ j, far }) => {
    const button = make("button", { type: "button" }, thumbnail(chart.items[j], "small"), make("span", {}, called(chart.items[j])), make("small", {}, decimal(far, 2)));
    button.addEventListener("click", () => choose(j));
    return make("li", {}, button);
  });
  const key = JSON.stringify([i, anchor, option, neighbours(all, i)]);
  if (place.dataset.key === key && place.childElementCount > 1) return;
  place.dataset.key = key;
  place.replaceChildren(
    thumbnail(item, "large"),
    make("h3", {}, called(item)),
    make("p", { className: "lead" }, `Asked about ${count(anchor)} times, offered as an answer ${count(option)} times.`),
    make("h4", {}, "Nearest, with distance"),
    make("ol", { className: "nearest" }, ...list),
  );
}
