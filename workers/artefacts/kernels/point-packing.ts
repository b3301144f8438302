/**
 * Points as the vertices of a binary PLY: x, y, z as f32 and, where there is luminance, intensity as u8, without padding. Positions without
 * a point are left out, and with a mask those whose bit is not set. assembly/point-packing.ts is the same by stores of 16 bytes.
 */
import { f32At, type f64, type i32, setF32, setU8, u8At } from "./linear-memory.js";

/**
 * Packs the points of a line.
 *
 * @param mask bits, lowest of a byte first, the line's first at `firstBit`; 0: all points
 * @param intensities u8 of every position; 0: vertices of 12 bytes without it
 * @param scratch 16 bytes
 * @returns bytes written at `out`, behind which 16 more may be overwritten
 */
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
  let to = out;
  setF32(scratch, 1, y);
  for (let at: i32 = 0; at < count; at++) {
    const z = f32At(zs, at);
    if (z === Infinity) continue;
    const bit = firstBit + at;
    if (mask !== 0 && ((u8At(mask, bit >>> 3) >> (bit & 7)) & 1) === 0) continue;
    setF32(scratch, 0, f32At(xs, at));
    setF32(scratch, 2, z);
    for (let byte: i32 = 0; byte < 12; byte++) setU8(to, byte, u8At(scratch, byte));
    to += 12;
    if (intensities === 0) continue;
    setU8(to, 0, u8At(intensities, at));
    to++;
  }
  return to - out;
}

/** How many points `packPoints` packs. */
export function countPoints(zs: i32, count: i32, mask: i32, firstBit: i32): i32 {
  let points: i32 = 0;
  for (let at: i32 = 0; at < count; at++) {
    if (f32At(zs, at) === Infinity) continue;
    const bit = firstBit + at;
    if (mask !== 0 && ((u8At(mask, bit >>> 3) >> (bit & 7)) & 1) === 0) continue;
    points++;
  }
  return points;
}
