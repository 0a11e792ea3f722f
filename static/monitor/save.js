// Saves drawings as self-contained files: light colours, embedded images, text of fixed width.

const STYLES = ["fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-linejoin", "stroke-dasharray", "paint-order", "font-family", "font-size", "font-weight", "text-anchor", "opacity"];
const SVG = "http://www.w3.org/2000/svg";
const PNG_SCALE = 3;

// A copy of an <svg> with its styles and images embedded.
async function standalone(svg, title) {
  const place = document.createElement("div");
  place.className = "on-paper unseen";
  place.setAttribute("aria-hidden", "true");
  const copy = svg.cloneNode(true);
  place.append(copy);
  svg.parentElement.append(place);
  try {
    const { width, height } = svg.viewBox.baseVal;
    const parts = [copy, ...copy.querySelectorAll("*")];
    // Read all styles before changing any: they depend on the classes of other elements.
    const looks = parts.map(looksOf);
    parts.forEach((element, n) => dress(element, looks[n]));
    // Other computers may have wider fonts; names must not grow beyond the space they have.
    for (const text of copy.querySelectorAll("text")) {
      const long = text.getComputedTextLength();
      if (long > 0) for (const [name, value] of Object.entries({ textLength: long.toFixed(1), lengthAdjust: "spacingAndGlyphs" })) text.setAttribute(name, value);
    }
    const paper = document.createElementNS(SVG, "rect");
    for (const [name, value] of Object.entries({ width, height, fill: "#fff" })) paper.setAttribute(name, value);
    const heading = document.createElementNS(SVG, "title");
    heading.textContent = title;
    copy.prepend(heading, paper);
    for (const [name, value] of Object.entries({ xmlns: SVG, width, height, role: "img" })) copy.setAttribute(name, value);
    await Promise.all([...copy.querySelectorAll("image")].map(embed));
    return { text: new XMLSerializer().serializeToString(copy), width, height };
  } finally {
    place.remove();
  }
}

function looksOf(element) {
  const found = getComputedStyle(element);
  return found.display === "none" ? null : STYLES.map((name) => [name, found.getPropertyValue(name)]);
}

function dress(element, looks) {
  if (!looks) return void element.remove();
  for (const name of [...element.getAttributeNames()]) if (/^(class|tabindex|role|style|aria-|data-)/.test(name)) element.removeAttribute(name);
  for (const [name, value] of looks) element.setAttribute(name, value);
}

async function embed(image) {
  const address = image.getAttribute("href");
  if (address.startsWith("data:")) return;
  const reply = await fetch(address);
  if (!reply.ok) throw new Error(`An image of the map could not be loaded (${reply.status}).`);
  image.setAttribute("href", await asDataURL(await reply.blob()));
}

function asDataURL(blob) {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.onerror = () => failed(reader.error);
    reader.readAsDataURL(blob);
  });
}

async function painted({ text, width, height }) {
  const image = new Image();
  image.src = await asDataURL(new Blob([text], { type: "image/svg+xml" }));
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [PNG_SCALE * width, PNG_SCALE * height];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

// Downloads the drawing as `name.kind`; kind is svg or png.
export async function save(svg, kind, name, title) {
  const made = await standalone(svg, title);
  const blob = kind === "png" ? await painted(made) : new Blob([made.text], { type: "image/svg+xml" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `${name}.${kind}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
