// Charts shared by the monitor and the report: dimensions, criteria, accuracy, spectrum, map, axes.

import * as axes from "./axes.js";
import * as charts from "./charts.js";
import { byId, make, say } from "./format.js";
import { introduce } from "./labels.js";
import * as map from "./map.js";
import { save } from "./save.js";

// `shown` is the map to draw, if not the latest; `again` redraws everything; `atOnce`: without animation.
export function draw(data, items, again, shown = data.map, atOnce = false) {
  introduce(items, again);
  fitScreen();
  describe("dimensions", data.dimensions.message);
  say(byId("compared"), data.dimensions.compared);
  charts.evidence(byId("evidence-chart"), data.dimensions);
  charts.ranks(byId("rank-chart"), data.dimensions);
  stopping(data.stopping);
  describe("accuracy", data.accuracy.message);
  charts.accuracy(byId("accuracy-chart"), data.accuracy);
  describe("spectrum", data.spectrum.message);
  charts.spectrum(byId("spectrum-chart"), data.spectrum);
  byId("map").classList.toggle("without-map", data.map.rank === 0);
  map.draw(shown, items, atOnce);
  axes.draw(map.coordinates(data.map), items, map.chosen(), map.choose);
}

// Fits the evidence and the map into the screen below the headline, where that is possible.
function fitScreen() {
  const grid = document.querySelector(".monitor .grid");
  if (!grid) return;
  const room = `${Math.floor(innerHeight - (grid.getBoundingClientRect().top + scrollY) - 16)}px`;
  if (grid.style.getPropertyValue("--room") !== room) grid.style.setProperty("--room", room);
}

// Calls `again` when another view is selected or the window is resized.
export function listen(again) {
  for (const id of ["axis-x", "axis-y", "frame", "ellipses"]) byId(id).addEventListener("change", again);
  map.listen(again);
  byId("enlarge").addEventListener("click", () => {
    const large = byId("map").classList.toggle("enlarged");
    byId("enlarge").setAttribute("aria-pressed", String(large));
    again();
    byId("map").scrollIntoView({ block: large ? "start" : "nearest" });
  });
  for (const button of document.querySelectorAll("[data-zoom]")) button.addEventListener("click", () => map.magnify(Number(button.dataset.zoom)));
  for (const button of document.querySelectorAll("[data-save]")) button.addEventListener("click", () => keep(button));
  byId("item").addEventListener("change", (event) => map.choose(event.target.value === "" ? null : Number(event.target.value)));
  let waiting = 0;
  addEventListener("resize", () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(again);
  });
}

async function keep(button) {
  const note = byId("save-note");
  try {
    const [x, y] = ["axis-x", "axis-y"].map((id) => Number(byId(id).value) + 1);
    const svg = byId("map-chart").querySelector("svg");
    const axesShown = svg.classList.contains("line") ? `${x}` : `${x}-${y}`;
    await save(svg, button.dataset.save, `${document.body.dataset.study}-map-${axesShown}`, `${document.title}: ${svg.getAttribute("aria-label")}`);
    say(note, "");
  } catch (error) {
    say(note, `The map could not be saved: ${error.message}`);
  }
}

const describe = (id, text) => say(byId(id).querySelector("[data-message]"), text);

function stopping(data) {
  describe("stopping", data.missing);
  say(byId("rule"), data.about_rule ? `Rule “${data.rule}”: ${data.about_rule}` : `Rule “${data.rule}”.`);
  const list = byId("criteria");
  const key = JSON.stringify(data.criteria);
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  list.replaceChildren(...data.criteria.map((one) => {
    const full = one.passed ? 1 : Math.max(0.02, Math.min(0.97, one.value == null || !one.threshold ? 0 : one.value / one.threshold));
    return make("li", { className: one.passed ? "met" : "open" },
      make("strong", {}, make("span", { className: "sign", "aria-hidden": "true" }, one.passed ? "✓" : "…"), one.title, make("span", { className: "unseen" }, one.passed ? ": met" : ": not met yet")),
      make("progress", { max: 1, value: full, "aria-label": one.title }),
      make("small", {}, one.message));
  }));
}
