/** Maps heights of 32 bits (f32 where `isSingle` is 1, else i32) to the samples of a PNG, several at a time. */
import { f32At, f64At, i32At, setF64 } from "../linear-memory";

/**
 * Maps z to samples 1..65535 in big-endian order: linear from `lowest` on, `steps` a mm, rounded to nearest. A position
 * without a measurement gets 0.
 *
 * z is f64 here, because heights far from zero would lose their steps in f32. `zs` are the decoder's z, and only say
 * where there is a measurement.
 */
export function mapHeights(
  raw: usize,
  isSingle: i32,
  zs: usize,
  count: i32,
  scale: f64,
  offset: f64,
  lowest: f64,
  steps: f64,
  samples: usize,
): void {
  const scales = f64x2.splat(scale);
  const offsets = f64x2.splat(offset);
  const lows = f64x2.splat(lowest);
  const factors = f64x2.splat(steps);
  let at = 0;
  for (; at + 8 <= count; at += 8) {
    const values = raw + (at << 2);
    const z = zs + (at << 2);
    const left = samplesOf(v128.load(values), isSingle, v128.load(z), scales, offsets, lows, factors);
    const right = samplesOf(v128.load(values, 16), isSingle, v128.load(z, 16), scales, offsets, lows, factors);
    const bytes = v128.shuffle<i8>(left, right, 1, 0, 5, 4, 9, 8, 13, 12, 17, 16, 21, 20, 25, 24, 29, 28);
    v128.store(samples + (at << 1), bytes);
  }
  for (; at < count; at++) {
    let sample = 0;
    if (f32At(zs, at) !== Infinity) {
      sample = min(<i32>((rawAt(raw, isSingle, at) * scale + offset - lowest) * steps + 1.5), 65_535);
    }
    store<u16>(samples + (at << 1), bswap<u16>(<u16>sample));
  }
}

function samplesOf(values: v128, isSingle: i32, z: v128, scales: v128, offsets: v128, lows: v128, factors: v128): v128 {
  const upper = v128.shuffle<i32>(values, values, 2, 3, 2, 3);
  const low = stepsOf(lowDoubles(values, isSingle), scales, offsets, lows, factors);
  const high = stepsOf(lowDoubles(upper, isSingle), scales, offsets, lows, factors);
  const samples = v128.shuffle<i64>(i32x4.trunc_sat_f64x2_s_zero(low), i32x4.trunc_sat_f64x2_s_zero(high), 0, 2);
  return v128.andnot(i32x4.min_s(samples, i32x4.splat(65_535)), f32x4.eq(z, f32x4.splat(Infinity)));
}

function stepsOf(values: v128, scales: v128, offsets: v128, lows: v128, factors: v128): v128 {
  const z = f64x2.add(f64x2.mul(values, scales), offsets);
  return f64x2.add(f64x2.mul(f64x2.sub(z, lows), factors), f64x2.splat(1.5));
}

/** Replaces the two f64 at `bounds` by the lowest and the highest of them and of the raw values that have a z. */
export function boundRaws(raw: usize, isSingle: i32, zs: usize, count: i32, bounds: usize): void {
  let lowest = f64x2.splat(f64At(bounds, 0));
  let highest = f64x2.splat(f64At(bounds, 1));
  let at = 0;
  for (; at + 4 <= count; at += 4) {
    const values = v128.load(raw + (at << 2));
    const isNone = f32x4.eq(v128.load(zs + (at << 2)), f32x4.splat(Infinity));
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
    if (f32At(zs, at) === Infinity) continue;
    least = min(least, rawAt(raw, isSingle, at));
    most = max(most, rawAt(raw, isSingle, at));
  }
  setF64(bounds, 0, least);
  setF64(bounds, 1, most);
}

function rawAt(raw: usize, isSingle: i32, at: i32): f64 {
  return isSingle !== 0 ? f32At(raw, at) : <f64>i32At(raw, at);
}

/** The lower two of four 32-bit values. */
function lowDoubles(values: v128, isSingle: i32): v128 {
  return isSingle !== 0 ? f64x2.promote_low_f32x4(values) : f64x2.convert_low_i32x4_s(values);
}
