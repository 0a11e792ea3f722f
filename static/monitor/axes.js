// What each dimension means: items in order along it, and a line with all of them.

import { byId, called, make, thumbnail } from "./format.js";

const drawn = { key: "" };
const SVG = "http://www.w3.org/2000/svg";

export function draw(all, items) {
  const place = byId("axes-list");
  const rank = all.length ? all[0].length : 0;
  const shown = place.clientWidth < 560 ? 5 : place.clientWidth < 900 ? 8 : 11;
  const orders = Array.from({ length: rank }, (_, k) => all.map((row, i) => [row[k], i]).sort((one, other) => one[0] - other[0]));
  const picks = orders.map((order) => spread(order, Math.min(shown, items.length)));
  const key = JSON.stringify([picks, orders.map((order) => order.map(([value]) => value.toFixed(2)))]);
  if (key === drawn.key) return;
  drawn.key = key;
  if (!rank) {
    place.replaceChildren(make("p", { className: "empty" }, "There are no dimensions yet."));
    return;
  }
  place.replaceChildren(...orders.map((order, k) => strip(k, order, picks[k], items)));
}

// Both ends and evenly between them, by place in the order.
function spread(order, many) {
  return Array.from({ length: many }, (_, n) => order[Math.round((n * (order.length - 1)) / Math.max(1, many - 1))][1]);
}

function strip(k, order, picked, items) {
  const low = called(items[order[0][1]]);
  const high = called(items[order.at(-1)[1]]);
  return make("div", { className: "axis" },
    make("h3", {}, `Dimension ${k + 1}`),
    make("ol", { className: "ordered", "aria-label": `Items along dimension ${k + 1}, from ${low} to ${high}` }, ...picked.map((i) => make("li", {}, thumbnail(items[i], "medium")))),
    rug(order));
}

function rug(order) {
  const [least, most] = [order[0][0], order.at(-1)[0]];
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 1000 16");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", "rug");
  for (const [value] of order) {
    const at = 4 + (992 * (value - least)) / (most - least || 1);
    const line = document.createElementNS(SVG, "line");
    for (const [name, to] of Object.entries({ x1: at, x2: at, y1: 1, y2: 15 })) line.setAttribute(name, to);
    svg.append(line);
  }
  return svg;
}
