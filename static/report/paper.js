// Prepares the page for printing: the layout of paper, with figures as high as fills its pages.

const PAGE = 267; // millimetres between the margins of A4, as in report.css
const WIDTH = 182;
const PER_MM = 96 / 25.4;
const HOLE = 0.1; // share of a page that may stay empty at its end
const SMALLEST = 0.7; // of a figure's usual height
const LARGEST = 2;
const root = document.documentElement;
const narrow = (text) => PER_MM * WIDTH <= Number(/^\(max-width: (\d+)px\)$/.exec(text)?.[1]);
const resizable = () => [...document.querySelectorAll(".chart:not(.own-height), .card:not(.without-map) #map-chart")].filter((chart) => !chart.querySelector(".empty"));
const changed = [];

// Styles for print, and for windows as narrow as paper, apply on the screen, too: what is measured there is what is printed.
function styleAsPrinted() {
  for (const sheet of document.styleSheets)
    for (const rule of sheet.cssRules)
      if (rule.media && (rule.media.mediaText === "print" || narrow(rule.media.mediaText))) {
        changed.push([rule.media, rule.media.mediaText]);
        rule.media.mediaText = "all";
      }
}

// The browser breaks columns as it breaks pages. Returns the lower end of each page's content, and the page of an element.
function pages() {
  const left = document.body.getBoundingClientRect().left;
  const top = document.body.getBoundingClientRect().top;
  const step = 2 * PER_MM * WIDTH;
  const pageOf = (box) => Math.max(0, Math.floor((box.left - left + 1) / step));
  const ends = [];
  for (const element of document.querySelectorAll(".chart, #map-chart, .card *:not(svg *, :has(> *)), .card :is(tr, p, li)"))
    for (const box of element.getClientRects()) {
      if (!box.height) continue;
      const page = pageOf(box);
      ends[page] = Math.max(ends[page] ?? 0, box.bottom - top);
    }
  return { ends, pageOf: (element) => pageOf(element.getBoundingClientRect()) };
}

const heightOf = (chart) => chart.getBoundingClientRect().height;
const setHeight = (chart, height) => (chart.style.height = height == null ? "" : `${height}px`);

// A figure that does not fit at the end of a page is made lower, if that helps; otherwise those that are there are made higher.
function fillPage(page) {
  const hole = PAGE * PER_MM - (pages().ends[page] ?? 0);
  if (hole < HOLE * PAGE * PER_MM) return;
  const charts = resizable();
  const { pageOf } = pages();
  const next = charts.find((chart) => pageOf(chart) === page + 1);
  if (next) {
    const row = sideBySide(charts, next);
    const usual = heightOf(next);
    for (let part = 0.95; part >= SMALLEST; part -= 0.05) {
      for (const chart of row) setHeight(chart, part * usual);
      if (pages().pageOf(next) === page) return;
    }
    for (const chart of row) setHeight(chart, null);
  }
  const there = charts.filter((chart) => pageOf(chart) === page);
  const rows = [];
  for (const chart of there) if (!rows.flat().includes(chart)) rows.push(sideBySide(charts, chart));
  const usual = rows.map((row) => heightOf(row[0]));
  // Less than the whole hole, where the margins below would push a figure to the next page.
  for (const part of [0.95, 0.85, 0.7, 0.5, 0.3, 0]) {
    rows.forEach((row, k) => {
      for (const chart of row) setHeight(chart, Math.min(LARGEST * usual[k], usual[k] + (part * hole) / rows.length));
    });
    const now = pages();
    if (there.every((chart) => now.pageOf(chart) === page)) return;
  }
}

function sideBySide(charts, chart) {
  const { top } = chart.getBoundingClientRect();
  const pair = chart.closest(".pair, .halves");
  const beside = (other) =>
    other.closest(".pair, .halves") === pair && Math.abs(other.getBoundingClientRect().top - top) < 60;
  return charts.filter((other) => other === chart || (pair && beside(other)));
}

// Lays the page out as on paper; `draw` redraws the charts at their new sizes.
export function prepare(draw) {
  styleAsPrinted();
  root.classList.add("for-paper");
  draw();
  root.classList.add("measured");
  const count = pages().ends.length;
  for (let page = 0; page < count; page++) fillPage(page);
  root.classList.remove("measured");
  draw();
}

export function restore() {
  for (const [media, text] of changed.splice(0)) media.mediaText = text;
  for (const chart of resizable()) setHeight(chart, null);
  root.classList.remove("for-paper");
}
