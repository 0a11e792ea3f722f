// Positions and uncertainty of items on the axes that are shown: pure functions.

const CERTAIN_PLANE = Math.sqrt(5.991); // 95 % of a normal distribution in the plane
const CERTAIN_LINE = 1.96; // and on a line
const NEAREST = 6;

// Items × rank; principal axes have the strongest dimension first.
export function coordinates(data, principal) {
  if (!principal) return data.positions;
  const turn = data.turn;
  return data.positions.map((row) => turn[0].map((_, k) => row.reduce((sum, value, m) => sum + value * turn[m][k], 0)));
}

// `[xx, xy, yy]` of one item on two axes; `triangle` has its covariance row by row.
function covariance(triangle, { rank, turn }, principal, a, b) {
  const at = (i, j) => triangle[Math.min(i, j) * rank - (Math.min(i, j) * (Math.min(i, j) - 1)) / 2 + Math.abs(i - j)];
  const entry = (k, l) => {
    if (!principal) return at(k, l);
    let sum = 0;
    for (let i = 0; i < rank; i++) for (let j = 0; j < rank; j++) sum += turn[i][k] * at(i, j) * turn[j][l];
    return sum;
  };
  return [entry(a, a), entry(a, b), entry(b, b)];
}

// The 95 % ellipse of item i on axes a and b; null where the uncertainty is not known.
export function ellipse(data, i, principal, a, b) {
  if (!data.covariance) return null;
  const [xx, xy, yy] = covariance(data.covariance[i], data, principal, a, b);
  const mean = (xx + yy) / 2;
  const root = Math.sqrt(Math.max(0, ((xx - yy) / 2) ** 2 + xy * xy));
  return {
    long: CERTAIN_PLANE * Math.sqrt(Math.max(0, mean + root)),
    short: CERTAIN_PLANE * Math.sqrt(Math.max(0, mean - root)),
    angle: (Math.atan2(2 * xy, xx - yy) / 2) * (180 / Math.PI),
    halfWidth: CERTAIN_PLANE * Math.sqrt(Math.max(0, xx)),
    halfHeight: CERTAIN_PLANE * Math.sqrt(Math.max(0, yy)),
  };
}

// Half of item i's 95 % interval on one axis; null where the uncertainty is not known.
export function interval(data, i, principal, a) {
  return data.covariance ? CERTAIN_LINE * Math.sqrt(Math.max(0, covariance(data.covariance[i], data, principal, a, a)[0])) : null;
}

export function neighbours(all, i) {
  return all.map((row, j) => ({ j, far: Math.hypot(...row.map((value, k) => value - all[i][k])) }))
    .filter((neighbour) => neighbour.j !== i).sort((neighbour, other) => neighbour.far - other.far).slice(0, NEAREST);
}

// The item that an arrow key moves the focus to: near `from`, and in that direction.
export function towards(points, from, [dx, dy]) {
  let [best, least] = [null, Infinity];
  points.forEach(([x, y], i) => {
    const [across, along] = [(x - points[from][0]) * dy - (y - points[from][1]) * dx, (x - points[from][0]) * dx + (y - points[from][1]) * dy];
    const cost = along + 2 * Math.abs(across);
    if (i !== from && along > 0 && cost < least) [best, least] = [i, cost];
  });
  return best;
}
