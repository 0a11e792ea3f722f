// How items are shown on a map: images in their proportions, others by name, as large as there is room.

import { called, hasImage } from "./format.js";

const shapes = new Map(); // of images: width / height, once they are loaded
const together = { items: [], starts: new Map() };
const [NARROWEST, WIDEST] = [0.4, 2.5];
const canvas = document.createElement("canvas").getContext("2d");
let family = "";
let round = 0;

// Changes when the shapes of more images have become known, so that earlier drawings are out of date.
export const shapesKnown = () => round;

// Registers the items that are drawn together; calls `again` once the shapes of their images are known.
export function introduce(items, again) {
  if (together.items !== items) Object.assign(together, { items, starts: new Map() });
  const wanted = items.filter((item) => hasImage(item) && !shapes.has(item.address));
  if (!wanted.length) return;
  const loaded = wanted.map((item) => {
    shapes.set(item.address, 1);
    const image = new Image();
    image.src = item.address;
    return image.decode().then(() => shapes.set(item.address, image.naturalWidth / image.naturalHeight || 1), () => null);
  });
  Promise.all(loaded).then(() => {
    round += 1;
    again();
  });
}

const shapeOf = (item) => Math.max(NARROWEST, Math.min(WIDEST, shapes.get(item.address) ?? 1));
const SIGNS = { audio: "♪ ", video: "▸ " };

const fullName = (item) => (SIGNS[item.kind] ?? "") + called(item);
const cut = (name, most) => `${[...name].slice(0, most - 1).join("").trimEnd()}…`;

// How many names have the same beginning when cut to `most` characters.
function startsAt(most) {
  if (!together.starts.has(most)) {
    const counts = new Map();
    for (const item of together.items) {
      const start = cut(fullName(item), most);
      counts.set(start, (counts.get(start) ?? 0) + 1);
    }
    together.starts.set(most, counts);
  }
  return together.starts.get(most);
}

// Long names are cut at the end, or in the middle where other names begin the same way.
function named(item, most) {
  const name = fullName(item);
  const letters = [...name];
  if (letters.length <= most) return name;
  const short = cut(name, most);
  if ((startsAt(most).get(short) ?? 1) < 2) return short;
  const end = Math.floor((most - 1) / 2);
  return `${letters.slice(0, most - 1 - end).join("").trimEnd()}…${letters.slice(-end).join("").trimStart()}`;
}

// Boxes of equal area for images of `size`, and of text in `font` pixels with at most `most` characters for others.
export function boxOf(item, { size, font, most }) {
  if (hasImage(item)) {
    const root = Math.sqrt(shapeOf(item));
    return { item, w: size * root, h: size / root, text: null, font };
  }
  family ||= getComputedStyle(document.body).fontFamily;
  canvas.font = `${font}px ${family}`;
  const text = named(item, most);
  return { item, text, font, w: canvas.measureText(text).width + 4, h: Math.round(1.25 * font) };
}

// From generous to tight; the first that fits is taken.
export const STYLES = [
  { font: 13, most: 30 }, { font: 13, most: 22 }, { font: 12, most: 18 }, { font: 12, most: 14 }, { font: 11, most: 12 }, { font: 11, most: 9 },
];
