// The pictures that the monitor and a report have in common: dimensions, criteria, accuracy, spectrum, map, axes.

import * as axes from "./axes.js";
import * as charts from "./charts.js";
import { byId, make, say } from "./format.js";
import * as map from "./map.js";

// `shown` is the map to be drawn, if it is not the newest.
export function draw(data, items, shown = data.map) {
  words("dimensions", data.dimensions.words);
  charts.evidence(byId("evidence-chart"), data.dimensions);
  charts.ranks(byId("rank-chart"), data.dimensions);
  stopping(data.stopping);
  words("accuracy", data.accuracy.words);
  charts.accuracy(byId("accuracy-chart"), data.accuracy);
  words("spectrum", data.spectrum.words);
  charts.spectrum(byId("spectrum-chart"), data.spectrum);
  map.draw(shown, items);
  axes.draw(map.coordinates(data.map), items);
}

// Calls `again` whenever the reader asks for another view, or the window has another size.
export function listen(again) {
  for (const id of ["axis-x", "axis-y", "frame", "ellipses"]) byId(id).addEventListener("change", again);
  for (const button of document.querySelectorAll("[data-zoom]")) button.addEventListener("click", () => map.magnify(Number(button.dataset.zoom)));
  byId("item").addEventListener("change", (event) => event.target.value !== "" && map.choose(Number(event.target.value)));
  let waiting = 0;
  addEventListener("resize", () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(again);
  });
}

const words = (id, text) => say(byId(id).querySelector("[data-words]"), text);

function stopping(data) {
  words("stopping", data.missing);
  const list = byId("criteria");
  const key = JSON.stringify(data.criteria);
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  list.replaceChildren(...data.criteria.map((one) => {
    const full = one.passed ? 1 : Math.max(0.02, Math.min(0.97, one.value == null || !one.threshold ? 0 : one.value / one.threshold));
    return make("li", { className: one.passed ? "met" : "open" },
      make("strong", {}, make("span", { className: "sign", "aria-hidden": "true" }, one.passed ? "✓" : "…"), one.title, make("span", { className: "unseen" }, one.passed ? ": met" : ": not met yet")),
      make("progress", { max: 1, value: full, "aria-label": one.title }),
      make("small", {}, one.words));
  }));
}
