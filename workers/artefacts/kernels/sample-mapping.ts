/** Heights and luminance into the samples of a PNG, bytes in big-endian order. */
import { f32At, type f64, f64At, type i32, i32At, setF64, setU8, setU16, truncated, u16At } from "./linear-memory.js";

/** 16-bit heights by a table of the sample of every raw value, its two bytes exchanged already. */
export function mapByTable(raw: i32, count: i32, table: i32, samples: i32): void {
  for (let at: i32 = 0; at < count; at++) setU16(samples, at, u16At(table, u16At(raw, at)));
}

/**
 * 32-bit heights (f32 where `isSingle` is 1, else i32) to 1..65535, linearly in z from `lowest`, `steps` a mm, rounded to nearest. z is f64: as f32
 * heights far from zero would lose their steps. `zs` are those of the decoder, and say only where there is a measurement; elsewhere it is 0.
 */
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
  for (let at: i32 = 0; at < count; at++) {
    let sample: i32 = 0;
    if (f32At(zs, at) !== Infinity) {
      const value = isSingle !== 0 ? f32At(raw, at) : i32At(raw, at);
      sample = truncated((value * scale + offset - lowest) * steps + 1.5);
      if (sample > 65535) sample = 65535;
    }
    setU8(samples, 2 * at, sample >> 8);
    setU8(samples, 2 * at + 1, sample & 255);
  }
}

/** 16-bit luminance to 8 bits: shifted down, at most 255. */
export function mapLuminance(raw: i32, count: i32, shift: i32, samples: i32): void {
  for (let at: i32 = 0; at < count; at++) {
    const sample = u16At(raw, at) >> shift;
    setU8(samples, at, sample > 255 ? 255 : sample);
  }
}

/** The lowest and the highest raw value of some 32-bit heights that have a z, and of the two f64 at `bounds`, which they replace. */
export function boundRaws(raw: i32, isSingle: i32, zs: i32, count: i32, bounds: i32): void {
  for (let at: i32 = 0; at < count; at++) {
    if (f32At(zs, at) === Infinity) continue;
    const value = isSingle !== 0 ? f32At(raw, at) : i32At(raw, at);
    if (value < f64At(bounds, 0)) setF64(bounds, 0, value);
    if (value > f64At(bounds, 1)) setF64(bounds, 1, value);
  }
}

/** Sets the byte of each 16-bit value that occurs. */
export function markValues(raw: i32, count: i32, seen: i32): void {
  for (let at: i32 = 0; at < count; at++) setU8(seen, u16At(raw, at), 1);
}
