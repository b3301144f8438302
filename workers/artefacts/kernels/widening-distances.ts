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
  OFFSET_STEPS,
  STRIDE,
  UNRESOLVED,
  ZS,
} from "./neighbour-search.js";

/** Entries of the offset table that are looked at at most: farther ones are for the search that passes over most of them. */
export const MOST: i32 = 100;
/**
 * Room (f64) for distances of the known entries that are no farther than the next entry, for squares of all others that were looked at, and for
 * those of them that are near.
 */
const SURE: i32 = 0;
const LOOKED_AT: i32 = 8 * (NEIGHBOURS + 1);
const OTHERS: i32 = LOOKED_AT + 8 * (MOST + 3);
export const WIDENING_BYTES: i32 = OTHERS + 8 * (MOST + 1);

/**
 * @param room WIDENING_BYTES of scratch
 * @param places index (i32) among the memory's f64 of the distance to every one of the first `known` entries, a multiple of four, less the column
 * @param sureLimit how far the next entry lies laterally at least: known ones within it, fewer than 19, are among the nearest
 * @param far how many of the known lie farther: the more, the more entries are looked at
 * @param squares index among the f64 of this column's squared lateral difference to the one that every pair of entries lies on, `pitch` from pair to pair
 * @param lines index among the f64 of the same for lines: for the first of every pair and for the opposite one, one after the other
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
  squares: i32,
  pitch: i32,
  lines: i32,
): f64 {
  const singles = viewSingles();
  const doubles = viewDoubles();
  const words = viewWords();
  const columns = i32At(grid, OFFSET_COLUMNS) >> 2;
  const steps = i32At(grid, OFFSET_STEPS) >> 2;
  const here = (i32At(grid, ZS) >> 2) + line * i32At(grid, STRIDE) + column;
  const z = singles[here] as f64;
  const sure = (room + SURE) >> 3;
  const lookedAt = (room + LOOKED_AT) >> 3;
  const others = (room + OTHERS) >> 3;
  const firstPlace = places >> 2;
  const table = i32At(grid, OFFSET_COUNT);
  const most: i32 = table - 1 < MOST ? (table - 1) & -4 : MOST;
  const needed: i32 = NEIGHBOURS - (known - far);
  // Written always and counted where it belongs: a branch would be taken at random. Squares, so that it need not wait for a root. Here and below four at
  // a time: what JavaScript checks of an array it checks once in each turn.
  let sureEnd: i32 = sure;
  let lookedAtEnd: i32 = lookedAt;
  for (let at: i32 = 0; at < known; at += 4) {
    const one = doubles[(words[firstPlace + at] as i32) + column] as f64;
    const other = doubles[(words[firstPlace + at + 1] as i32) + column] as f64;
    const third = doubles[(words[firstPlace + at + 2] as i32) + column] as f64;
    const fourth = doubles[(words[firstPlace + at + 3] as i32) + column] as f64;
    const isOne: i32 = Number(one <= sureLimit);
    const isOther: i32 = Number(other <= sureLimit);
    const isThird: i32 = Number(third <= sureLimit);
    const isFourth: i32 = Number(fourth <= sureLimit);
    doubles[sureEnd] = one;
    doubles[lookedAtEnd] = one * one;
    sureEnd += isOne;
    lookedAtEnd += 1 - isOne;
    doubles[sureEnd] = other;
    doubles[lookedAtEnd] = other * other;
    sureEnd += isOther;
    lookedAtEnd += 1 - isOther;
    doubles[sureEnd] = third;
    doubles[lookedAtEnd] = third * third;
    sureEnd += isThird;
    lookedAtEnd += 1 - isThird;
    doubles[sureEnd] = fourth;
    doubles[lookedAtEnd] = fourth * fourth;
    sureEnd += isFourth;
    lookedAtEnd += 1 - isFourth;
  }
  let otherEnd: i32 = others;
  let nth: i32 = known;
  let square = squares + (known >> 1) * pitch;
  let end = likelyEnd(known, far);
  if (end > most) end = most;
  while (end <= most) {
    // Each entry is followed by the opposite one.
    for (; nth < end; nth += 4) {
      const first = words[steps + nth] as i32;
      const second = words[steps + nth + 2] as i32;
      const next = square + pitch;
      const oneDz = (singles[here + first] as f64) - z;
      const otherDz = (singles[here - first] as f64) - z;
      const thirdDz = (singles[here + second] as f64) - z;
      const fourthDz = (singles[here - second] as f64) - z;
      const one = (doubles[square] as f64) + (doubles[lines + nth] as f64);
      const other = (doubles[square - (words[columns + nth] as i32)] as f64) + (doubles[lines + nth + 1] as f64);
      const third = (doubles[next] as f64) + (doubles[lines + nth + 2] as f64);
      const fourth = (doubles[next - (words[columns + nth + 2] as i32)] as f64) + (doubles[lines + nth + 3] as f64);
      doubles[lookedAtEnd] = one + oneDz * oneDz;
      doubles[lookedAtEnd + 1] = other + otherDz * otherDz;
      doubles[lookedAtEnd + 2] = third + thirdDz * thirdDz;
      doubles[lookedAtEnd + 3] = fourth + fourthDz * fourthDz;
      lookedAtEnd += 4;
      square = next + pitch;
    }
    // Up to three more, which do not count.
    doubles[lookedAtEnd] = Infinity;
    doubles[lookedAtEnd + 1] = Infinity;
    doubles[lookedAtEnd + 2] = Infinity;
    // A look that was too short goes on from here.
    const limit = f64At(i32At(grid, OFFSET_BOUNDS), end);
    otherEnd = others;
    for (let at = lookedAt; at < lookedAtEnd; at += 4) {
      const one = doubles[at] as f64;
      const other = doubles[at + 1] as f64;
      const third = doubles[at + 2] as f64;
      const fourth = doubles[at + 3] as f64;
      doubles[otherEnd] = one;
      otherEnd += Number(one <= limit);
      doubles[otherEnd] = other;
      otherEnd += Number(other <= limit);
      doubles[otherEnd] = third;
      otherEnd += Number(third <= limit);
      doubles[otherEnd] = fourth;
      otherEnd += Number(fourth <= limit);
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
 * tells, and a little more, as a look that was too short looks through all once more. A multiple of four, as that many entries are equally far.
 */
function likelyEnd(known: i32, far: i32): i32 {
  const near: f64 = known - far;
  if (near < 4.0) return MOST;
  const share: f64 = (NEIGHBOURS * known) / near;
  return (truncated(share) + 3) & -4;
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
