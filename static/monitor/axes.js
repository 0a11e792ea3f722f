// Items along each dimension, one line per dimension, to help name them.

import { byId, make } from "./format.js";
import { shapesKnown } from "./labels.js";
import * as line from "./line.js";

const drawn = { key: "" };

export function draw(all, items, chosen, choose) {
  const place = byId("axes-list");
  const rank = all.length ? all[0].length : 0;
  const paper = document.documentElement.classList.contains("for-paper");
  const key = JSON.stringify([place.clientWidth, paper, shapesKnown(), chosen, all.map((row) => row.map((value) => value.toFixed(3)))]);
  if (key === drawn.key) return;
  drawn.key = key;
  if (!rank) {
    place.replaceChildren(make("p", { className: "empty" }, "No dimensions yet"));
    return;
  }
  while (place.querySelectorAll(".axis").length > rank) place.lastElementChild.remove();
  if (!place.querySelector(".axis")) place.replaceChildren();
  for (let k = 0; k < rank; k++) strip(place, k, all.map((row) => row[k]), items, chosen, choose, paper);
}

function strip(place, k, values, items, chosen, choose, paper) {
  let own = place.querySelectorAll(".axis")[k];
  if (!own) {
    own = make("div", { className: "axis" }, make("h3", {}, `Dimension ${k + 1}`), make("div", { className: "strip" }));
    place.append(own);
  }
  const height = paper ? 200 : place.clientWidth < 560 ? 460 : 300;
  const { svg, drawn: shown } = line.draw(own.lastElementChild, { values, items, chosen, height, paper, label: `Dimension ${k + 1} (model units)` });
  svg.attr("role", "img").attr("aria-label", line.spoken(values, items, `Items along dimension ${k + 1}`));
  for (const selection of Object.values(shown)) selection.on("click", (_, row) => choose(row.i));
}
