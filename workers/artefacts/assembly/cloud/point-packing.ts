/**
 * Points as the vertices of a binary PLY: x, y, z as f32, then intensity as u8 if there is luminance, without padding.
 *
 * Positions without a point are left out. With a mask, positions whose bit is not set are left out too. Each point is
 * written by one store of 16 bytes, which overlaps the next one. Eight points are written in a step, without a branch
 * for each: the next store overwrites a point that is left out.
 */
import { codesAmong, F32, fourAt, heightsOf, I16, I32, notFinite } from "../samples/height-decoding";

/**
 * Packs lines, which follow each other in `raw`, in the mask and in the luminance. It reads up to 28 bytes after the
 * last line and after the last x. Their values do not matter.
 *
 * @param type of raw heights, and their codes, as height-decoding.ts takes them
 * @param xs f32 of every column; the nth line has y = yOrigin + (firstLine + nth) * yPitch
 * @param mask bits, lowest of a byte first, the first line's from `firstBit` on; 0: all points
 * @param lights luminance of every position; 0: vertices of 12 bytes without it
 * @param lightShift -1: luminance is u8; else it is u16, and becomes min(255, raw >> lightShift)
 * @returns bytes written at `out`; 16 bytes after them may be overwritten
 */
export function packLines(
  type: i32,
  raw: usize,
  scale: f64,
  offset: f64,
  codes: usize,
  codeCount: i32,
  xs: usize,
  yOrigin: f64,
  yPitch: f64,
  firstLine: i32,
  lines: i32,
  width: i32,
  mask: usize,
  firstBit: i32,
  lights: usize,
  lightShift: i32,
  out: usize,
): i32 {
  const lineBytes = width << (type < I32 ? 1 : 2);
  const lightBytes = lightShift < 0 ? width : width << 1;
  let to = out;
  for (let nth = 0; nth < lines; nth++) {
    const line = raw + nth * lineBytes;
    const y = <f32>(yOrigin + <f64>(firstLine + nth) * yPitch);
    const bit = firstBit + nth * width;
    const light: usize = lights === 0 ? 0 : lights + nth * lightBytes;
    if (type === F32) {
      to = packLine<f32>(line, scale, offset, codes, codeCount, xs, y, width, mask, bit, light, lightShift, to);
    } else if (type === I32) {
      to = packLine<i32>(line, scale, offset, codes, codeCount, xs, y, width, mask, bit, light, lightShift, to);
    } else if (type === I16) {
      to = packLine<i16>(line, scale, offset, codes, codeCount, xs, y, width, mask, bit, light, lightShift, to);
    } else {
      to = packLine<u16>(line, scale, offset, codes, codeCount, xs, y, width, mask, bit, light, lightShift, to);
    }
  }
  return <i32>(to - out);
}

/** `R` is the type of raw heights. */
function packLine<R>(
  raw: usize,
  scale: f64,
  offset: f64,
  codes: usize,
  codeCount: i32,
  xs: usize,
  y: f32,
  count: i32,
  mask: usize,
  firstBit: i32,
  lights: usize,
  lightShift: i32,
  out: usize,
): usize {
  const size: usize = lights === 0 ? 12 : 13;
  const scales = f64x2.splat(scale);
  const offsets = f64x2.splat(offset);
  const ys = f32x4.splat(y);
  let to = out;
  for (let at = 0; at < count; at += 8) {
    const low = fourAt<R>(raw, at);
    const high = fourAt<R>(raw, at + 4);
    const lowZs = heightsOf<R>(low, scales, offsets);
    const highZs = heightsOf<R>(high, scales, offsets);
    const lowLeft = v128.or(notFinite(lowZs), codesAmong<R>(low, codes, codeCount));
    const highLeft = v128.or(notFinite(highZs), codesAmong<R>(high, codes, codeCount));
    let left = i16x8.bitmask(i16x8.narrow_i32x4_s(lowLeft, highLeft));
    // Values after the last position are not part of the line.
    if (count - at < 8) left |= 255 << (count - at);
    if (mask !== 0) left |= ~maskBits(mask, firstBit + at);
    const light = lightsAt(lights, at, lightShift);
    to = packEight(~left & 255, xs + (at << 2), ys, lowZs, highZs, light, size, to);
  }
  return to;
}

/**
 * Luminance of eight positions, as vertices hold it. Without luminance the value does not matter: it is stored after
 * the vertex, and the next vertex overwrites it.
 */
function lightsAt(lights: usize, at: i32, shift: i32): v128 {
  if (lights === 0) return i16x8.splat(0);
  if (shift < 0) return v128.load_ext<u8>(lights + at);
  return i16x8.min_u(i16x8.shr_u(v128.load(lights + (at << 1)), shift), i16x8.splat(255));
}

/** Eight bits of the mask. */
function maskBits(mask: usize, bit: i32): i32 {
  return (<i32>load<u16>(mask + (bit >>> 3)) >> (bit & 7)) & 255;
}

/**
 * Packs those of eight positions that are in `taken`. Luminance has 16 bits each.
 *
 * @returns where the next point goes
 */
function packEight(
  taken: i32,
  x: usize,
  ys: v128,
  lowZs: v128,
  highZs: v128,
  light: v128,
  size: usize,
  to: usize,
): usize {
  if (taken === 0) return to;
  const lowLight = i32x4.extend_low_i16x8_u(light);
  const highLight = i32x4.extend_high_i16x8_u(light);
  if (taken === 255) {
    // This is the case for most points of a surface. It is known beforehand where each point goes.
    packFour(v128.load(x), ys, lowZs, lowLight, to, to + size, to + 2 * size, to + 3 * size);
    const next = to + 4 * size;
    packFour(v128.load(x, 16), ys, highZs, highLight, next, next + size, next + 2 * size, next + 3 * size);
    return next + 4 * size;
  }
  const next = packSome(v128.load(x), ys, lowZs, lowLight, taken & 15, size, to);
  return packSome(v128.load(x, 16), ys, highZs, highLight, taken >> 4, size, next);
}

/** Packs those of four positions that are in `taken`. @returns where the next point goes */
function packSome(x: v128, ys: v128, z: v128, light: v128, taken: i32, size: usize, to: usize): usize {
  // First each of the four bits gets a byte. Then each byte is the sum of the bits so far, times the size: the next
  // offset.
  const next = ((taken * 0x20_4081) & 0x0101_0101) * (<u32>size * 0x0101_0101);
  packFour(x, ys, z, light, to, to + (next & 255), to + ((next >> 8) & 255), to + ((next >> 16) & 255));
  return to + (next >> 24);
}

function packFour(
  x: v128,
  ys: v128,
  z: v128,
  light: v128,
  first: usize,
  second: usize,
  third: usize,
  fourth: usize,
): void {
  const lowXy = v128.shuffle<i32>(x, ys, 0, 4, 1, 5);
  const lowZ = v128.shuffle<i32>(z, light, 0, 4, 1, 5);
  const highXy = v128.shuffle<i32>(x, ys, 2, 6, 3, 7);
  const highZ = v128.shuffle<i32>(z, light, 2, 6, 3, 7);
  v128.store(first, v128.shuffle<i64>(lowXy, lowZ, 0, 2));
  v128.store(second, v128.shuffle<i64>(lowXy, lowZ, 1, 3));
  v128.store(third, v128.shuffle<i64>(highXy, highZ, 0, 2));
  v128.store(fourth, v128.shuffle<i64>(highXy, highZ, 1, 3));
}

/** Counts how many of these z (f32) are points. */
export function countPoints(zs: usize, count: i32): i32 {
  let points = 0;
  let at = 0;
  for (; at + 4 <= count; at += 4) {
    points += popcnt(i32x4.bitmask(f32x4.ne(v128.load(zs + (at << 2)), f32x4.splat(Infinity))));
  }
  for (; at < count; at++) if (load<f32>(zs + (at << 2)) !== <f32>Infinity) points++;
  return points;
}
