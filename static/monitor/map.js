// The map of items: its controls, the selected item and its details; plane.js and line.js draw it.
/* global d3 */

import { byId, called, count, decimal, make, plural, reduced, say, thumbnail } from "./format.js";
import { coordinates as coordinatesOf, interval, neighbours, towards } from "./geometry.js";
import * as line from "./line.js";
import { interactive } from "./marks.js";
import * as plane from "./plane.js";

const state = { rank: -1, chosen: null, pointed: null, active: 0, known: null, items: [], points: [], again: () => null };
const principal = () => byId("frame").value === "principal";
const place = () => byId("map-chart");

export const coordinates = (data) => coordinatesOf(data, principal());
export const chosen = () => state.chosen;

// Calls `again` when another item is selected.
export function listen(again) {
  state.again = again;
}

function offerAxes(rank) {
  if (state.rank === rank) return;
  state.rank = rank;
  for (const [id, first] of [["axis-x", 0], ["axis-y", 1]]) {
    const select = byId(id);
    const before = Math.min(Number(select.value || first), rank - 1);
    select.replaceChildren(...Array.from({ length: Math.max(rank, 1) }, (_, k) => make("option", { value: String(k) }, `dimension ${k + 1}`)));
    select.value = String(Math.max(0, before));
    select.disabled = rank < 2;
  }
  if (rank >= 2 && byId("axis-x").value === byId("axis-y").value) byId("axis-y").value = byId("axis-x").value === "0" ? "1" : "0";
  byId("axis-y").closest("label").hidden = rank === 1;
  for (const button of document.querySelectorAll("[data-zoom]")) button.disabled = rank < 2;
  for (const button of document.querySelectorAll("[data-save]")) button.disabled = rank < 1;
}

export function magnify(factor) {
  plane.magnify(place(), factor);
}

export function draw(data, items, atOnce = false) {
  offerAxes(data.rank);
  place().classList.toggle("as-line", data.rank === 1);
  state.known = data;
  if (!state.items.length && items.length)
    byId("item").append(...items.map((item, i) => make("option", { value: String(i) }, called(item))));
  state.items = items;
  if (data.rank === 0) {
    place().replaceChildren(make("p", { className: "empty" }, "No map: no dimensions are reported."));
    say(byId("map-message"), "");
    plane.forget();
    return inspect();
  }
  const [a, b] = [Number(byId("axis-x").value), Number(byId("axis-y").value)];
  const all = coordinates(data);
  const fresh = !place().querySelector("svg");
  const ease = fresh || atOnce || reduced() ? 0 : 900;
  const move = (selection) => (ease ? selection.transition().duration(ease).ease(d3.easeCubicInOut) : selection);
  const every = byId("ellipses").checked;
  const shown = new Set(every ? items.keys() : [state.chosen, state.pointed].filter((one) => one !== null));
  const drawn = data.rank === 1 ? onLine(data, all, shown, move) : onPlane(data, all, { a, b }, every, shown, move);
  drawn.svg.attr("role", "group");
  drawn.svg.node().classList.add("map");
  state.points = drawn.points;
  const seen = drawn.drawn.marks.data().map((row) => row.i);
  if (!seen.includes(state.active)) state.active = seen[0] ?? 0;
  interactive(drawn.drawn, {
    active: state.active,
    chosen: state.chosen,
    spoken: (row) => `${called(row.item)}: ${(data.rank === 1 ? [0] : [a, b]).map((k) => `dimension ${k + 1} ${decimal(all[row.i][k], 2)}`).join(", ")}`,
    point,
    choose,
    key,
  });
  inspect(all);
}

function onLine(data, all, shown, move) {
  const values = all.map((row) => row[0]);
  const halves = data.covariance ? values.map((_, i) => interval(data, i, principal(), 0)) : null;
  const drawn = line.draw(place(), { values, items: state.items, chosen: state.chosen, label: "Dimension 1 (model units)", height: place().clientHeight, filled: true, halves, shown: [...shown], pointed: state.pointed, move });
  drawn.svg.attr("aria-label", `${plural(state.items.length, "item")} along one dimension.`);
  say(byId("map-message"), `Each item is above its coordinate; height has no meaning. ${unfit(drawn.missing, "enlarge the map")}`.trim());
  return drawn;
}

function onPlane(data, all, { a, b }, every, shown, move) {
  const points = all.map((row) => [row[a], row[b]]);
  const again = () => draw(state.known, state.items, true);
  const drawn = plane.draw(place(), { data, points, items: state.items, a, b, principal: principal(), chosen: state.chosen, pointed: state.pointed, shown, all: every, move, again });
  drawn.svg.attr("aria-label", `Map of ${plural(state.items.length, "item")}, dimensions ${a + 1} and ${b + 1}.`);
  linkNeighbours(drawn.svg, drawn.rows, all, move);
  const notes = [];
  if (data.rank > 2) notes.push("Items that look close may be far apart on dimensions not shown.");
  if (drawn.missing) notes.push(unfit(drawn.missing, "zoom in or enlarge the map"));
  say(byId("map-message"), notes.join(" "));
  return drawn;
}

const unfit = (many, advice) => (many ? `${plural(many, "name does", "names do")} not fit: ${advice}.` : "");

function linkNeighbours(svg, rows, all, move) {
  const from = rows[state.chosen];
  const near = state.chosen === null || !from ? [] : neighbours(all, state.chosen);
  move(svg.select(".near").selectAll("line").data(near, (one) => one.j).join("line"))
    .attr("x1", () => from.x).attr("y1", () => from.y).attr("x2", (one) => rows[one.j].x).attr("y2", (one) => rows[one.j].y);
}

// An item shows its uncertainty while it is pointed at or has the focus.
function point(i) {
  if (state.pointed === i) return;
  state.pointed = i;
  requestAnimationFrame(() => draw(state.known, state.items, true));
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function key(event, i) {
  if (event.key === "Enter" || event.key === " ") choose(i);
  else if (event.key === "Escape") choose(null);
  else if (event.key in ARROWS) {
    const to = towards(state.points, i, ARROWS[event.key]);
    const group = to === null ? null : place().querySelector(`[data-item="${to}"]`);
    if (group) {
      place().querySelector(`[data-item="${i}"]`).setAttribute("tabindex", "-1");
      group.setAttribute("tabindex", "0");
      state.active = to;
      group.focus();
    }
  } else return;
  event.preventDefault();
}

export function choose(i) {
  state.chosen = state.chosen === i ? null : i;
  if (state.chosen !== null) state.active = state.chosen;
  byId("item").value = state.chosen === null ? "" : String(state.chosen);
  state.again();
}

function inspect(all = []) {
  const own = byId("inspector");
  const i = state.chosen;
  if (i === null || !all[i]) {
    own.replaceChildren(make("p", { className: "lead" }, "Select an item to see its nearest neighbours, its uncertainty and how often it appeared."));
    return;
  }
  const item = state.items[i];
  const [anchor, option] = state.known.asked[i] ?? [0, 0];
  const near = neighbours(all, i);
  const id = JSON.stringify([i, anchor, option, near]);
  if (own.dataset.key === id && own.childElementCount > 1) return;
  own.dataset.key = id;
  const list = near.map(({ j, far }) => {
    const button = make("button", { type: "button" }, thumbnail(state.items[j], "small"), make("span", { dir: "auto" }, called(state.items[j])), make("small", {}, decimal(far, 2)));
    button.addEventListener("click", () => choose(j));
    return make("li", {}, button);
  });
  own.replaceChildren(
    thumbnail(item, "large"),
    make("h3", { dir: "auto" }, called(item)),
    make("p", { className: "lead" }, `Anchor in ${plural(anchor, "question")}, option in ${count(option)}.`),
    make("h4", {}, "Nearest neighbours (distance)"),
    make("ol", { className: "nearest" }, ...list),
  );
}
