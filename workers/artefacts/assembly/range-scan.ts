/** kernels/range-scan.ts for four at a time. */

// @ts-nocheck: AssemblyScript

@inline export function gapToRange(z: f64, lowest: f64, highest: f64): f64 {
  if (z < lowest) return lowest - z;
  return z > highest ? z - highest : 0.0;
}

/** Gaps and limit are rounded to f32: two roundings of a square are less than this. */
const CAUTION: f64 = 1.000001;

export function nextWithin(lowest: i32, highest: i32, first: i32, last: i32, z: f64, limit: f64): i32 {
  const zs = f32x4.splat(<f32>z);
  const limits = f32x4.splat(<f32>(limit * CAUTION));
  const zero = f32x4.splat(0);
  for (let nth = first; nth <= last; nth += 4) {
    const below = f32x4.sub(v128.load(<usize>(lowest + (nth << 2))), zs);
    const above = f32x4.sub(zs, v128.load(<usize>(highest + (nth << 2))));
    const gap = f32x4.pmax(f32x4.pmax(below, above), zero);
    const hits = i32x4.bitmask(f32x4.le(f32x4.mul(gap, gap), limits));
    if (hits != 0) return nth + ctz(hits);
  }
  return last + 1;
}

@inline export function nextLevel(points: i32, first: i32, last: i32, z: f64, limit: f64): i32 {
  return nextWithin(points, points, first, last, z, limit);
}

export function nextNear(px: i32, py: i32, pz: i32, first: i32, end: i32, x: f64, y: f64, z: f64, limit: f64): i32 {
  // An f32 that has overflowed is no reason to pass over anything.
  const limits = f32x4.splat(limit > 1e38 ? Infinity : <f32>(limit * CAUTION));
  const xs = f32x4.splat(<f32>x);
  const ys = f32x4.splat(<f32>y);
  const zs = f32x4.splat(<f32>z);
  for (let nth = first; nth < end; nth += 4) {
    const at = <usize>(nth << 2);
    const dx = f32x4.sub(v128.load(<usize>px + at), xs);
    const dy = f32x4.sub(v128.load(<usize>py + at), ys);
    const dz = f32x4.sub(v128.load(<usize>pz + at), zs);
    const squares = f32x4.add(f32x4.add(f32x4.mul(dx, dx), f32x4.mul(dy, dy)), f32x4.mul(dz, dz));
    const hits = i32x4.bitmask(f32x4.le(squares, limits));
    if (hits != 0) return nth + ctz(hits);
  }
  return end;
}
