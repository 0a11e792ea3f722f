// A report: draws the pictures from the numbers that the page carries. Without it, tables tell the same.

import { byId, count, say } from "../monitor/format.js";
import * as pictures from "../monitor/pictures.js";
import * as charts from "./charts.js";

const data = JSON.parse(byId("data").textContent);
const slider = byId("moment");

const show = () => draw(false);

function draw(atOnce) {
  const moment = slider ? data.moments[Number(slider.value)] : null;
  pictures.draw(data.shown, data.items, show, moment?.map ?? data.shown.map, atOnce);
  if (moment) say(byId("moment-words"), `${count(moment.answers)} answers`);
  charts.collected(byId("collected-chart"), data.collected);
  charts.people(byId("people-chart"), data.people);
}

async function copy(button) {
  const place = byId(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(place.innerText);
    say(button, "Copied");
  } catch {
    getSelection().selectAllChildren(place);
    say(button, "Selected: copy it with your keyboard");
  }
}

// Numbers behind pictures are folded away once there are pictures; on paper other parts unfold.
function unfolded() {
  return [...document.querySelectorAll("details:not(.numbers, .explained, [open])")];
}

// Pictures are drawn once more as wide as the paper: shrunk ones could not be read.
const opened = [];
addEventListener("beforeprint", () => {
  opened.push(...unfolded());
  for (const one of opened) one.open = true;
  document.documentElement.classList.add("for-paper");
  draw(true);
});
addEventListener("afterprint", () => {
  for (const one of opened.splice(0)) one.open = false;
  document.documentElement.classList.remove("for-paper");
  draw(true);
});

for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", () => copy(button));
}
slider?.addEventListener("input", show);
pictures.listen(show);
document.documentElement.classList.add("drawn");
for (const one of document.querySelectorAll("details.numbers")) one.open = false;
show();
document.body.dataset.drawn = "";
