/** Distance of a z to a range of z. It is infinite for a range without points. */
export function gapToRange(z: f64, lowest: f64, highest: f64): f64 {
  if (z < lowest) return lowest - z;
  return z > highest ? z - highest : 0;
}

/**
 * A little more than rounding to f32 can change a squared distance: five roundings, and an absolute part for tiny
 * numbers.
 */
const CAUTION: f64 = 1.000001;
const LEAST: f64 = 1e-36;

/**
 * A limit of squared distances for comparing with f32 distances, in four lanes. What exceeds it is farther than the
 * limit.
 */
export function roundedUp(limit: f64): v128 {
  return f32x4.splat(<f32>(limit * CAUTION + LEAST));
}

/**
 * The next range of z, from `first` to `last`, that may be nearer to `z` than the root of `limit`; above `last` if
 * there is none. It may stop at a range that is a little too far. It checks four at a time.
 */
export function nextWithin(lowest: usize, highest: usize, first: i32, last: i32, z: f64, limit: f64): i32 {
  const zs = f32x4.splat(<f32>z);
  const limits = roundedUp(limit);
  const zero = f32x4.splat(0);
  for (let nth = first; nth <= last; nth += 4) {
    const below = f32x4.sub(v128.load(lowest + (nth << 2)), zs);
    const above = f32x4.sub(zs, v128.load(highest + (nth << 2)));
    const gap = f32x4.pmax(f32x4.pmax(below, above), zero);
    const hits = i32x4.bitmask(f32x4.le(f32x4.mul(gap, gap), limits));
    if (hits !== 0) return nth + ctz(hits);
  }
  return last + 1;
}
