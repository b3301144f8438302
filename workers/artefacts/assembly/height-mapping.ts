/** `mapHeights`, `lowestOf` and `highestOf` of kernels/sample-mapping.ts for several positions at a time. */

// @ts-nocheck: AssemblyScript

import { f32At, setU16 } from "./linear-memory.js";

export function mapHeights(zs: i32, count: i32, lowest: f64, steps: f64, samples: i32): void {
  const lows = f64x2.splat(lowest);
  const factors = f64x2.splat(steps);
  let at = 0;
  for (; at + 8 <= count; at += 8) {
    const z = <usize>(zs + (at << 2));
    const left = samplesOf(v128.load(z), lows, factors);
    const right = samplesOf(v128.load(z, 16), lows, factors);
    const bytes = v128.shuffle<i8>(left, right, 1, 0, 5, 4, 9, 8, 13, 12, 17, 16, 21, 20, 25, 24, 29, 28);
    v128.store(<usize>(samples + (at << 1)), bytes);
  }
  for (; at < count; at++) {
    const z = f32At(zs, at);
    let sample = 0;
    if (z != Infinity) sample = min(<i32>((z - lowest) * steps + 1.5), 65_535);
    setU16(samples, at, (sample >> 8) | ((sample & 255) << 8));
  }
}

@inline function samplesOf(z: v128, lows: v128, factors: v128): v128 {
  const low = i32x4.trunc_sat_f64x2_s_zero(stepsOf(f64x2.promote_low_f32x4(z), lows, factors));
  const upper = f64x2.promote_low_f32x4(v128.shuffle<i32>(z, z, 2, 3, 2, 3));
  const high = i32x4.trunc_sat_f64x2_s_zero(stepsOf(upper, lows, factors));
  const samples = i32x4.min_s(v128.shuffle<i64>(low, high, 0, 2), i32x4.splat(65_535));
  return v128.andnot(samples, f32x4.eq(z, f32x4.splat(Infinity)));
}

@inline function stepsOf(z: v128, lows: v128, factors: v128): v128 {
  return f64x2.add(f64x2.mul(f64x2.sub(z, lows), factors), f64x2.splat(1.5));
}

export function lowestOf(zs: i32, count: i32, before: f64): f64 {
  let lowest = f32x4.splat(<f32>before);
  let at = 0;
  for (; at + 4 <= count; at += 4) lowest = f32x4.pmin(lowest, v128.load(<usize>(zs + (at << 2))));
  let least = <f64>min(
    min(f32x4.extract_lane(lowest, 0), f32x4.extract_lane(lowest, 1)),
    min(f32x4.extract_lane(lowest, 2), f32x4.extract_lane(lowest, 3)),
  );
  for (; at < count; at++) least = min(least, f32At(zs, at));
  return least;
}

export function highestOf(zs: i32, count: i32, before: f64): f64 {
  const infinity = f32x4.splat(Infinity);
  const none = f32x4.splat(-Infinity);
  let highest = f32x4.splat(<f32>before);
  let at = 0;
  for (; at + 4 <= count; at += 4) {
    const z = v128.load(<usize>(zs + (at << 2)));
    highest = f32x4.pmax(highest, v128.bitselect(none, z, f32x4.eq(z, infinity)));
  }
  let most = <f64>max(
    max(f32x4.extract_lane(highest, 0), f32x4.extract_lane(highest, 1)),
    max(f32x4.extract_lane(highest, 2), f32x4.extract_lane(highest, 3)),
  );
  for (; at < count; at++) {
    const z = f32At(zs, at);
    if (z != Infinity) most = max(most, z);
  }
  return most;
}
