import { type f64, type i32, viewSingles } from "./linear-memory.js";

/** Distance of a z to a range of z; infinite for one without points. */
export function gapToRange(z: f64, lowest: f64, highest: f64): f64 {
  if (z < lowest) return lowest - z;
  return z > highest ? z - highest : 0.0;
}

/**
 * The next tile's range of z, from `first` to `last`, that may be nearer to `z` than the root of `limit`; more than `last` when there is none.
 * May stop at one that is a little too far. assembly/range-scan.ts is the same for four at a time.
 */
export function nextWithin(lowest: i32, highest: i32, first: i32, last: i32, z: f64, limit: f64): i32 {
  const singles = viewSingles();
  const low = lowest >> 2;
  const high = highest >> 2;
  for (let nth = first; nth <= last; nth++) {
    const below = (singles[low + nth] as f64) - z;
    const above = z - (singles[high + nth] as f64);
    if ((below <= 0.0 || below * below <= limit) && (above <= 0.0 || above * above <= limit)) return nth;
  }
  return last + 1;
}

/** As `nextWithin`, of points by their own z. */
export function nextLevel(points: i32, first: i32, last: i32, z: f64, limit: f64): i32 {
  const singles = viewSingles();
  const zs = points >> 2;
  for (let nth = first; nth <= last; nth++) {
    const dz = (singles[zs + nth] as f64) - z;
    if (dz * dz <= limit) return nth;
  }
  return last + 1;
}

/**
 * The next point, from `first` to before `end`, whose squared distance may be less than `limit`; `end` or more when there is none. One at a time
 * whoever asks finds out as soon as this would.
 */
export function nextNear(
  _px: i32,
  _py: i32,
  _pz: i32,
  first: i32,
  _end: i32,
  _x: f64,
  _y: f64,
  _z: f64,
  _limit: f64,
): i32 {
  return first;
}
