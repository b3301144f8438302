/**
 * The mean distance of a point whose 19 nearest are not all among the 20 laterally nearest positions, in f64, right but for the order of its
 * sum. What lies within the lateral distance of the next position is nearer than anything that was not looked at. So as many positions are
 * looked at as will most likely do, and more of them where they did not; nothing is kept in order, as only the sum counts.
 */
import { type f64, f64At, type i32, i32At, truncated, viewDoubles, viewSingles, viewWords } from "./linear-memory.js";
import {
  NEIGHBOURS,
  OFFSET_BOUNDS,
  OFFSET_COLUMNS,
  OFFSET_COUNT,
  OFFSET_LINES,
  OFFSET_STEPS,
  STRIDE,
  UNRESOLVED,
  XS,
  YS,
  ZS,
} from "./neighbour-search.js";

/** Entries of the offset table that are looked at at most: farther ones are for the search that passes over most of them. */
const MOST: i32 = 100;
/** Room for the squared distances (f64) that are no farther than what is surely near. */
export const WIDENING_BYTES: i32 = 8 * MOST;

/**
 * @param room WIDENING_BYTES of scratch
 * @param places index (i32) among the memory's f64 of the distance to every one of the first `known` entries, an even number, less the column
 * @param far how many of those are farther than the next entry lies laterally: the more, the more entries are looked at
 * @returns UNRESOLVED when the nearest are not among the entries that are looked at
 */
export function meanOfWidening(grid: i32, room: i32, places: i32, known: i32, far: i32, column: i32, line: i32): f64 {
  const singles = viewSingles();
  const doubles = viewDoubles();
  const words = viewWords();
  const columns = i32At(grid, OFFSET_COLUMNS) >> 2;
  const lines = i32At(grid, OFFSET_LINES) >> 2;
  const steps = i32At(grid, OFFSET_STEPS) >> 2;
  const hereX = (i32At(grid, XS) >> 2) + column;
  const hereY = (i32At(grid, YS) >> 2) + line;
  const here = (i32At(grid, ZS) >> 2) + line * i32At(grid, STRIDE) + column;
  const x = singles[hereX] as f64;
  const y = singles[hereY] as f64;
  const z = singles[here] as f64;
  const within = room >> 3;
  const firstPlace = places >> 2;
  const table = i32At(grid, OFFSET_COUNT);
  const most: i32 = table - 1 < MOST ? (table - 1) & -2 : MOST;
  let count: i32 = 0;
  let end = likelyEnd(known, far);
  if (end > most) end = most;
  while (end <= most) {
    const limit = f64At(i32At(grid, OFFSET_BOUNDS), end);
    let came: i32 = within;
    // Written always and counted when within: a branch would be taken at random. Squares, so that it need not wait for a root.
    for (let at: i32 = 0; at < known; at += 2) {
      const root = doubles[(words[firstPlace + at] as i32) + column] as f64;
      const opposite = doubles[(words[firstPlace + at + 1] as i32) + column] as f64;
      const squared = root * root;
      const squaredOpposite = opposite * opposite;
      doubles[came] = squared;
      came += Number(squared <= limit);
      doubles[came] = squaredOpposite;
      came += Number(squaredOpposite <= limit);
    }
    // Each entry is followed by the opposite one.
    for (let nth: i32 = known; nth < end; nth += 2) {
      const columnStep = words[columns + nth] as i32;
      const lineStep = words[lines + nth] as i32;
      const step = words[steps + nth] as i32;
      const dx = (singles[hereX + columnStep] as f64) - x;
      const dy = (singles[hereY + lineStep] as f64) - y;
      const dz = (singles[here + step] as f64) - z;
      const squared = dx * dx + dy * dy + dz * dz;
      doubles[came] = squared;
      came += Number(squared <= limit);
      const oppositeDx = (singles[hereX - columnStep] as f64) - x;
      const oppositeDy = (singles[hereY - lineStep] as f64) - y;
      const oppositeDz = (singles[here - step] as f64) - z;
      const opposite = oppositeDx * oppositeDx + oppositeDy * oppositeDy + oppositeDz * oppositeDz;
      doubles[came] = opposite;
      came += Number(opposite <= limit);
    }
    count = came - within;
    if (count >= NEIGHBOURS || end === most) break;
    end += (end >> 2) & -4;
    if (end > most) end = most;
  }
  if (count < NEIGHBOURS) return UNRESOLVED;
  return sumOfLeast(within, within + count) / (NEIGHBOURS + 1);
}

/**
 * How many entries of the table hold the 19 nearest, more likely than not: as many more than 19 as the share of the known ones that are near
 * tells, and a little more, as a look that was too short is done again. A multiple of four, as that many entries are equally far.
 */
function likelyEnd(known: i32, far: i32): i32 {
  const near: f64 = known - far;
  if (near < 4.0) return MOST;
  const share: f64 = (NEIGHBOURS * known) / near;
  return (truncated(share) + 5) & -4;
}

/** The sum of the roots of the 19 smallest of the values from `first` to `end`, which lose their order. */
function sumOfLeast(first: i32, end: i32): f64 {
  const doubles = viewDoubles();
  let last = end;
  while (last - first > NEIGHBOURS) {
    last--;
    // From the last on, as those that lie farther laterally are the farther ones mostly.
    let largest = last;
    for (let at = last - 1; at >= first; at--) {
      if ((doubles[at] as f64) > (doubles[largest] as f64)) largest = at;
    }
    doubles[largest] = doubles[last] as f64;
  }
  let sum: f64 = 0.0;
  let other: f64 = 0.0;
  for (let at = first; at + 1 < last; at += 2) {
    sum += Math.sqrt(doubles[at] as f64);
    other += Math.sqrt(doubles[at + 1] as f64);
  }
  return sum + other + Math.sqrt(doubles[last - 1] as f64);
}
