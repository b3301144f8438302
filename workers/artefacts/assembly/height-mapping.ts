/** `mapHeights` and `boundRaws` of kernels/sample-mapping.ts for several positions at a time. */

// @ts-nocheck: AssemblyScript

import { f32At, f64At, i32At, setF64, setU16 } from "./linear-memory.js";

export function mapHeights(
  raw: i32,
  isSingle: i32,
  zs: i32,
  count: i32,
  scale: f64,
  offset: f64,
  lowest: f64,
  steps: f64,
  samples: i32,
): void {
  const scales = f64x2.splat(scale);
  const offsets = f64x2.splat(offset);
  const lows = f64x2.splat(lowest);
  const factors = f64x2.splat(steps);
  let at = 0;
  for (; at + 8 <= count; at += 8) {
    const values = <usize>(raw + (at << 2));
    const z = <usize>(zs + (at << 2));
    const left = samplesOf(v128.load(values), isSingle, v128.load(z), scales, offsets, lows, factors);
    const right = samplesOf(v128.load(values, 16), isSingle, v128.load(z, 16), scales, offsets, lows, factors);
    const bytes = v128.shuffle<i8>(left, right, 1, 0, 5, 4, 9, 8, 13, 12, 17, 16, 21, 20, 25, 24, 29, 28);
    v128.store(<usize>(samples + (at << 1)), bytes);
  }
  for (; at < count; at++) {
    let sample = 0;
    if (f32At(zs, at) != Infinity) {
      sample = min(<i32>((rawAt(raw, isSingle, at) * scale + offset - lowest) * steps + 1.5), 65_535);
    }
    setU16(samples, at, (sample >> 8) | ((sample & 255) << 8));
  }
}

@inline function samplesOf(
  values: v128,
  isSingle: i32,
  z: v128,
  scales: v128,
  offsets: v128,
  lows: v128,
  factors: v128,
): v128 {
  const upper = v128.shuffle<i32>(values, values, 2, 3, 2, 3);
  const low = lowDoubles(values, isSingle);
  const high = lowDoubles(upper, isSingle);
  const samples = v128.shuffle<i64>(
    i32x4.trunc_sat_f64x2_s_zero(stepsOf(low, scales, offsets, lows, factors)),
    i32x4.trunc_sat_f64x2_s_zero(stepsOf(high, scales, offsets, lows, factors)),
    0,
    2,
  );
  return v128.andnot(i32x4.min_s(samples, i32x4.splat(65_535)), f32x4.eq(z, f32x4.splat(Infinity)));
}

@inline function stepsOf(values: v128, scales: v128, offsets: v128, lows: v128, factors: v128): v128 {
  const z = f64x2.add(f64x2.mul(values, scales), offsets);
  return f64x2.add(f64x2.mul(f64x2.sub(z, lows), factors), f64x2.splat(1.5));
}

@inline function rawAt(raw: i32, isSingle: i32, at: i32): f64 {
  return isSingle ? f32At(raw, at) : <f64>i32At(raw, at);
}

export function boundRaws(raw: i32, isSingle: i32, zs: i32, count: i32, bounds: i32): void {
  let lowest = f64x2.splat(f64At(bounds, 0));
  let highest = f64x2.splat(f64At(bounds, 1));
  let at = 0;
  for (; at + 4 <= count; at += 4) {
    const values = v128.load(<usize>(raw + (at << 2)));
    const isNone = f32x4.eq(v128.load(<usize>(zs + (at << 2))), f32x4.splat(Infinity));
    const isLowNone = v128.shuffle<i32>(isNone, isNone, 0, 0, 1, 1);
    const isHighNone = v128.shuffle<i32>(isNone, isNone, 2, 2, 3, 3);
    const low = lowDoubles(values, isSingle);
    const high = lowDoubles(v128.shuffle<i32>(values, values, 2, 3, 2, 3), isSingle);
    lowest = f64x2.pmin(lowest, v128.bitselect(f64x2.splat(Infinity), low, isLowNone));
    lowest = f64x2.pmin(lowest, v128.bitselect(f64x2.splat(Infinity), high, isHighNone));
    highest = f64x2.pmax(highest, v128.bitselect(f64x2.splat(-Infinity), low, isLowNone));
    highest = f64x2.pmax(highest, v128.bitselect(f64x2.splat(-Infinity), high, isHighNone));
  }
  let least = min(f64x2.extract_lane(lowest, 0), f64x2.extract_lane(lowest, 1));
  let most = max(f64x2.extract_lane(highest, 0), f64x2.extract_lane(highest, 1));
  for (; at < count; at++) {
    if (f32At(zs, at) == Infinity) continue;
    least = min(least, rawAt(raw, isSingle, at));
    most = max(most, rawAt(raw, isSingle, at));
  }
  setF64(bounds, 0, least);
  setF64(bounds, 1, most);
}

/** The lower two of four 32-bit values. */
@inline function lowDoubles(values: v128, isSingle: i32): v128 {
  return isSingle ? f64x2.promote_low_f32x4(values) : f64x2.convert_low_i32x4_s(values);
}
