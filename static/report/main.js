// The report's script: draws the charts from the data in the page. Without scripts, tables have the same numbers.

import { byId, plural, say } from "../monitor/format.js";
import * as figures from "../monitor/figures.js";
import * as charts from "./charts.js";
import * as paper from "./paper.js";

const data = JSON.parse(byId("data").textContent);
const slider = byId("moment");

const show = () => draw(false);

function draw(atOnce) {
  const moment = slider ? data.snapshots[Number(slider.value)] : null;
  figures.draw(data.shown, data.items, show, moment?.map ?? data.shown.map, atOnce);
  if (moment) say(byId("moment-label"), plural(moment.answers, "answer"));
  charts.collected(byId("collected-chart"), data.collected);
  charts.participants(byId("participants-chart"), data.participants, data.kind);
}

async function copy(button) {
  const place = byId(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(place.innerText);
    say(button, "Copied");
  } catch {
    getSelection().selectAllChildren(place);
    say(button, "Selected; copy it with your keyboard");
  }
}

// Tables behind charts are collapsed once these are drawn; all other parts are expanded for printing.
function unfolded() {
  return [...document.querySelectorAll("details:not(.numbers, .explained, [open])")];
}

// Charts are redrawn at the width of the paper: scaled down, they would be illegible.
const opened = [];
addEventListener("beforeprint", () => {
  opened.push(...unfolded());
  for (const details of opened) details.open = true;
  paper.prepare(() => draw(true));
});
addEventListener("afterprint", () => {
  for (const details of opened.splice(0)) details.open = false;
  paper.restore();
  draw(true);
});

for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", () => copy(button));
}
slider?.addEventListener("input", show);
figures.listen(show);
document.documentElement.classList.add("drawn");
for (const details of document.querySelectorAll("details.numbers")) details.open = false;
show();
document.body.dataset.drawn = "";
