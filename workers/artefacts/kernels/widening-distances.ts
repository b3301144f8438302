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
/** Room for distances of the known entries that are no farther than the next entry, and for squares of others that are near (f64). */
const SURE: i32 = 0;
const OTHERS: i32 = 8 * (NEIGHBOURS + 1);
export const WIDENING_BYTES: i32 = OTHERS + 8 * (MOST + 1);

/**
 * @param room WIDENING_BYTES of scratch
 * @param places index (i32) among the memory's f64 of the distance to every one of the first `known` entries, an even number, less the column
 * @param sureLimit how far the next entry lies laterally at least: known ones within it, fewer than 19, are among the nearest
 * @param far how many of the known lie farther: the more, the more entries are looked at
 * @returns UNRESOLVED when the nearest are not among the entries that are looked at
 */
export function meanOfWidening(
  grid: i32,
  room: i32,
  places: i32,
  known: i32,
  sureLimit: f64,
  far: i32,
  column: i32,
  line: i32,
): f64 {
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
  const sure = (room + SURE) >> 3;
  const others = (room + OTHERS) >> 3;
  const firstPlace = places >> 2;
  const table = i32At(grid, OFFSET_COUNT);
  const most: i32 = table - 1 < MOST ? (table - 1) & -2 : MOST;
  const needed: i32 = NEIGHBOURS - (known - far);
  let otherEnd: i32 = others;
  let end = likelyEnd(known, far);
  if (end > most) end = most;
  while (end <= most) {
    const limit = f64At(i32At(grid, OFFSET_BOUNDS), end);
    let sureEnd: i32 = sure;
    otherEnd = others;
    // Written always and counted where it belongs: a branch would be taken at random. Squares, so that it need not wait for a root.
    for (let at: i32 = 0; at < known; at++) {
      const root = doubles[(words[firstPlace + at] as i32) + column] as f64;
      const squared = root * root;
      const isSure: i32 = Number(root <= sureLimit);
      doubles[sureEnd] = root;
      doubles[otherEnd] = squared;
      sureEnd += isSure;
      // Where both limits are the same, the one's rounding must not take back what the other counts.
      otherEnd += Number(squared <= limit) & (1 - isSure);
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
      doubles[otherEnd] = squared;
      otherEnd += Number(squared <= limit);
      const oppositeDx = (singles[hereX - columnStep] as f64) - x;
      const oppositeDy = (singles[hereY - lineStep] as f64) - y;
      const oppositeDz = (singles[here - step] as f64) - z;
      const opposite = oppositeDx * oppositeDx + oppositeDy * oppositeDy + oppositeDz * oppositeDz;
      doubles[otherEnd] = opposite;
      otherEnd += Number(opposite <= limit);
    }
    if (otherEnd - others >= needed || end === most) break;
    end += (end >> 2) & -4;
    if (end > most) end = most;
  }
  if (otherEnd - others < needed) return UNRESOLVED;
  const sum = sumOf(sure, sure + known - far);
  return (sum + rootsOfLeast(others, otherEnd - others, needed)) / (NEIGHBOURS + 1);
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

function sumOf(first: i32, end: i32): f64 {
  const doubles = viewDoubles();
  let sum: f64 = 0.0;
  for (let at = first; at < end; at++) sum += doubles[at] as f64;
  return sum;
}

/** Of `count` values from `first` on, which lose their order, the sum of the roots of the `least` smallest: without the others, or of them alone. */
function rootsOfLeast(first: i32, count: i32, least: i32): f64 {
  const doubles = viewDoubles();
  let end = first + count;
  let sum: f64 = 0.0;
  if (count - least <= least) {
    for (let left = count - least; left > 0; left--) {
      end--;
      let largest = end;
      for (let at = first; at < end; at++) {
        if ((doubles[at] as f64) > (doubles[largest] as f64)) largest = at;
      }
      doubles[largest] = doubles[end] as f64;
    }
    for (let at = first; at < end; at++) sum += Math.sqrt(doubles[at] as f64);
    return sum;
  }
  for (let left = least; left > 0; left--) {
    end--;
    let smallest = end;
    for (let at = first; at < end; at++) {
      if ((doubles[at] as f64) < (doubles[smallest] as f64)) smallest = at;
    }
    sum += Math.sqrt(doubles[smallest] as f64);
    doubles[smallest] = doubles[end] as f64;
  }
  return sum;
}
