// Places labels and images so that they do not overlap: pure geometry, no drawing.

const CELL = 3; // pixels; boxes keep at least this precision of distance from each other
const RING_STEP = 8;

// The rows of boxes on a line, `{ left, right }` each, so that none overlaps another: as few as there can be.
export function rowsOf(boxes, gap = 4) {
  const order = boxes.map((_, i) => i).sort((first, other) => boxes[first].left - boxes[other].left || first - other);
  const ends = [];
  const rows = new Array(boxes.length);
  for (const i of order) {
    let row = ends.findIndex((end) => end + gap <= boxes[i].left);
    if (row < 0) row = ends.push(0) - 1;
    ends[row] = boxes[i].right;
    rows[i] = row;
  }
  return { rows, count: ends.length };
}

// Keeps track of which parts of a drawing are occupied.
function board(width, height) {
  const [columns, lines] = [Math.ceil(width / CELL), Math.ceil(height / CELL)];
  const taken = new Uint8Array(columns * lines);
  const range = (left, top, w, h) => [
    Math.max(0, Math.floor(left / CELL)), Math.min(columns, Math.ceil((left + w) / CELL)),
    Math.max(0, Math.floor(top / CELL)), Math.min(lines, Math.ceil((top + h) / CELL)),
  ];
  return {
    free(left, top, w, h) {
      if (left < 0 || top < 0 || left + w > width || top + h > height) return false;
      const [x0, x1, y0, y1] = range(left, top, w, h);
      for (let y = y0; y < y1; y++) for (let x = x0; x < x1; x++) if (taken[y * columns + x]) return false;
      return true;
    },
    add(left, top, w, h, by) {
      const [x0, x1, y0, y1] = range(left, top, w, h);
      for (let y = y0; y < y1; y++) for (let x = x0; x < x1; x++) taken[y * columns + x] += by;
    },
  };
}

// Candidate positions of a box around its mark, nearest first, as offsets of its centre.
function* offsets({ w, h, beside }, reach) {
  if (!beside) yield [0, 0];
  else {
    const [x, y] = [w / 2 + 6, h / 2 + 5];
    yield* [[x, 0], [-x, 0], [0, -y], [0, y], [x, -y], [x, y], [-x, -y], [-x, y]];
  }
  for (let far = RING_STEP; far <= reach; far += RING_STEP) {
    const many = Math.max(8, Math.round(far / 4));
    for (let n = 0; n < many; n++) {
      const angle = (2 * Math.PI * n) / many;
      const [x, y] = beside ? [w / 2 + far, h / 2 + far] : [far, far];
      yield [x * Math.cos(angle), y * Math.sin(angle)];
    }
  }
}

// An offset for every box: `{ x, y, w, h, beside }`, with its mark at (x, y); null where there is no room for it.
// Boxes `beside` their marks (names) avoid all such marks; the others (images) cover their own. The offset `before` is
// kept while it is nearly as short as the best one, so that labels do not jump. Names are at most `longest` from their
// marks.
export function offsetsOf(boxes, width, height, before, longest, mark = 4) {
  const room = board(width, height);
  for (const box of boxes) if (box.beside) room.add(box.x - mark, box.y - mark, 2 * mark, 2 * mark, 1);
  return boxes.map((box, i) => {
    const fits = ([dx, dy]) => room.free(box.x + dx - box.w / 2, box.y + dy - box.h / 2, box.w, box.h);
    let found = null;
    for (const offset of offsets(box, box.beside ? longest : 0.6 * Math.max(width, height))) if (fits(offset)) { found = offset; break; }
    const old = before[i];
    if (found && old && Math.hypot(...old) < 1.3 * Math.hypot(...found) + 8 && fits(old)) found = old;
    if (found) room.add(box.x + found[0] - box.w / 2, box.y + found[1] - box.h / 2, box.w, box.h, 1);
    return found;
  });
}

// Where the leader from a mark to its box ends, or null where it would be too short to see.
export function leader([dx, dy], w, h) {
  const end = [Math.max(dx - w / 2, Math.min(0, dx + w / 2)), Math.max(dy - h / 2, Math.min(0, dy + h / 2))];
  return Math.hypot(...end) > 9 ? end : null;
}
