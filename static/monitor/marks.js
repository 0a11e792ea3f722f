// Items on a map: a mark at the estimated position, an image or name on it or beside it, and a leader between the two.

import { called } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";
const at = (row) => `translate(${row.x},${row.y})`;
const beside = (row) => `translate(${row.x + (row.offset ?? row.aside)[0]},${row.y + (row.offset ?? row.aside)[1]})`;
// From bottom to top: ellipses above images, which are often larger. Screen readers get an item's full name; the visible one may be cut.
export const LAYERS = ["names", "ellipses", "pins", "marks"];

// `rows`: `{ i, item, x, y, box, aside, offset, end }` each; `offset` is the position of the label's centre relative to
// the mark (none: there is no room, and it is shown at `aside` while its mark is pointed at), `end` where its leader ends.
// `move` wraps a selection whose changes are animated.
export function drawMarks(svg, rows, { chosen, pointed, move }) {
  const names = svg.select(".names").attr("aria-hidden", "true").selectAll("g.name").data(rows, (row) => row.i).join((enter) => enter.append("g").attr("class", "name").attr("transform", beside));
  const pins = svg.select(".pins").selectAll("g.pin").data(rows, (row) => row.i).join((enter) => {
    const pin = enter.append("g").attr("class", "pin").attr("transform", at);
    pin.append("line").attr("x2", 0).attr("y2", 0);
    pin.append("circle").attr("r", (row) => (row.box.text === null ? 2.5 : 3.5));
    return pin;
  });
  const marks = svg.select(".marks").selectAll("g.item").data(rows, (row) => row.i).join((enter) => {
    const mark = enter.append("g").attr("class", "item").attr("transform", at);
    mark.append("title").text((row) => called(row.item));
    mark.append("circle").attr("r", 6);
    return mark;
  });
  for (const selection of [names, pins, marks])
    selection.classed("chosen", (row) => row.i === chosen).classed("pointed", (row) => row.i === pointed).classed("crowded", (row) => !row.offset);
  pins.classed("centred", (row) => row.box.text === null && row.offset && Math.hypot(...row.offset) < 4);
  names.each(function (row) {
    fill(this, row);
  });
  move(names).attr("transform", beside);
  move(pins).attr("transform", at);
  move(marks).attr("transform", at);
  move(pins.select("line")).attr("x2", (row) => row.end?.[0] ?? 0).attr("y2", (row) => row.end?.[1] ?? 0);
  return { marks, names };
}

function fill(label, { item, box: { w, h, font, text } }) {
  const kind = text === null ? "image" : "text";
  if (label.lastChild?.nodeName !== kind) {
    const title = document.createElementNS(SVG, "title");
    title.textContent = called(item);
    label.replaceChildren(title, document.createElementNS(SVG, kind));
  }
  const own = label.lastChild;
  if (text !== null && own.textContent !== text) own.textContent = text;
  const wanted = text === null
    ? { href: item.address, x: -w / 2, y: -h / 2, width: w, height: h }
    : { "font-size": font, "text-anchor": "middle", dy: "0.35em" };
  for (const [name, value] of Object.entries(wanted)) if (own.getAttribute(name) !== String(value)) own.setAttribute(name, value);
}

// Makes marks focusable (one by Tab, all by arrow keys), hoverable and selectable.
export function interactive({ marks, names }, { active, chosen, spoken, point, choose, key }) {
  for (const selection of [marks, names])
    selection.on("click", (event, row) => choose(row.i)).on("pointerenter", (event, row) => point(row.i)).on("pointerleave", () => point(null));
  marks.attr("role", "button")
    .attr("tabindex", (row) => (row.i === active ? 0 : -1))
    .attr("aria-label", spoken)
    .attr("aria-pressed", (row) => String(row.i === chosen))
    .attr("data-item", (row) => row.i)
    .on("focus", (event, row) => point(row.i))
    .on("blur", () => point(null))
    .on("keydown", (event, row) => key(event, row.i));
}
