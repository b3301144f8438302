/** kernels/point-packing.ts by one overlapping store of 16 bytes a point, four points a step, without branches: what is left out is overwritten. */

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
  const ys = f32x4.splat(<f32>y);
  const infinity = f32x4.splat(Infinity);
  const size = intensities == 0 ? 12 : 13;
  let to = <usize>out;
  for (let at = 0; at < count; at += 4) {
    const x = v128.load(<usize>(xs + (at << 2)));
    const z = v128.load(<usize>(zs + (at << 2)));
    let light = i32x4.splat(0);
    if (intensities != 0) light = v128.load32_zero(<usize>(intensities + at));
    light = i32x4.extend_low_i16x8_u(i16x8.extend_low_i8x16_u(light));
    // What lies behind the last is none of the line's.
    let taken = i32x4.bitmask(f32x4.ne(z, infinity)) & (count - at < 4 ? (1 << (count - at)) - 1 : 15);
    if (mask != 0) {
      const bit = firstBit + at;
      taken &= load<u16>(<usize>(mask + (bit >>> 3))) >> (bit & 7);
    }
    const lowXy = v128.shuffle<i32>(x, ys, 0, 4, 1, 5);
    const lowZ = v128.shuffle<i32>(z, light, 0, 4, 1, 5);
    const highXy = v128.shuffle<i32>(x, ys, 2, 6, 3, 7);
    const highZ = v128.shuffle<i32>(z, light, 2, 6, 3, 7);
    v128.store(to, v128.shuffle<i64>(lowXy, lowZ, 0, 2));
    to += <usize>(size & -(taken & 1));
    v128.store(to, v128.shuffle<i64>(lowXy, lowZ, 1, 3));
    to += <usize>(size & -((taken >> 1) & 1));
    v128.store(to, v128.shuffle<i64>(highXy, highZ, 0, 2));
    to += <usize>(size & -((taken >> 2) & 1));
    v128.store(to, v128.shuffle<i64>(highXy, highZ, 1, 3));
    to += <usize>(size & -((taken >> 3) & 1));
  }
  return <i32>to - out;
}

export function countPoints(zs: i32, count: i32, mask: i32, firstBit: i32): i32 {
  const infinity = f32x4.splat(Infinity);
  let points = 0;
  for (let at = 0; at < count; at += 4) {
    const z = v128.load(<usize>(zs + (at << 2)));
    let taken = i32x4.bitmask(f32x4.ne(z, infinity)) & (count - at < 4 ? (1 << (count - at)) - 1 : 15);
    if (mask != 0) {
      const bit = firstBit + at;
      taken &= load<u16>(<usize>(mask + (bit >>> 3))) >> (bit & 7);
    }
    points += popcnt(taken);
  }
  return points;
}
