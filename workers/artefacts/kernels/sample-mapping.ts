/** Heights and luminance into the samples of a PNG, bytes in big-endian order. */
import { f32At, type f64, type i32, setU8, setU16, truncated, u16At } from "./linear-memory.js";

/** 16-bit heights by a table of the sample of every raw value, its two bytes exchanged already. */
export function mapByTable(raw: i32, count: i32, table: i32, samples: i32): void {
  for (let at: i32 = 0; at < count; at++) setU16(samples, at, u16At(table, u16At(raw, at)));
}

/** z to 1..65535 linearly from `lowest`, `steps` a mm, rounded to nearest; no measurement (Infinity) to 0. */
export function mapHeights(zs: i32, count: i32, lowest: f64, steps: f64, samples: i32): void {
  for (let at: i32 = 0; at < count; at++) {
    const z = f32At(zs, at);
    let sample: i32 = 0;
    if (z !== Infinity) {
      sample = truncated((z - lowest) * steps + 1.5);
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

/** The lowest z of some positions and of what was before; Infinity where there is none. */
export function lowestOf(zs: i32, count: i32, before: f64): f64 {
  let lowest = before;
  for (let at: i32 = 0; at < count; at++) {
    const z = f32At(zs, at);
    if (z < lowest) lowest = z;
  }
  return lowest;
}

/** The highest; -Infinity where there is none. */
export function highestOf(zs: i32, count: i32, before: f64): f64 {
  let highest = before;
  for (let at: i32 = 0; at < count; at++) {
    const z = f32At(zs, at);
    if (z > highest && z !== Infinity) highest = z;
  }
  return highest;
}
