/** kernels/point-packing.ts by one overlapping store of 16 bytes a point, without branches: what is left out is overwritten. */

// @ts-nocheck: AssemblyScript

export function packPoints(
  xs: i32,
  y: f64,
  zs: i32,
  count: i32,
  mask: i32,
  firstBit: i32,
  intensities: i32,
  scratch: i32,
  out: i32,
): i32 {
  const template = f32x4.replace_lane(f32x4.splat(0), 1, <f32>y);
  const infinity: f32 = Infinity;
  const size = intensities == 0 ? 12 : 13;
  let to = <usize>out;
  for (let at = 0; at < count; at++) {
    const z = load<f32>(<usize>(zs + (at << 2)));
    let vertex = f32x4.replace_lane(template, 0, load<f32>(<usize>(xs + (at << 2))));
    vertex = f32x4.replace_lane(vertex, 2, z);
    if (intensities != 0) vertex = i32x4.replace_lane(vertex, 3, load<u8>(<usize>(intensities + at)));
    v128.store(to, vertex);
    let takes = z != infinity ? size : 0;
    if (mask != 0) {
      const bit = firstBit + at;
      takes &= -((load<u8>(<usize>(mask + (bit >>> 3))) >> (bit & 7)) & 1);
    }
    to += takes;
  }
  return <i32>to - out;
}

export function countPoints(zs: i32, count: i32, mask: i32, firstBit: i32): i32 {
  const infinity: f32 = Infinity;
  let points = 0;
  for (let at = 0; at < count; at++) {
    let takes = load<f32>(<usize>(zs + (at << 2))) != infinity ? 1 : 0;
    if (mask != 0) {
      const bit = firstBit + at;
      takes &= (load<u8>(<usize>(mask + (bit >>> 3))) >> (bit & 7)) & 1;
    }
    points += takes;
  }
  return points;
}
