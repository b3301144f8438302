/** kernels/point-packing.ts by one overlapping store of 16 bytes a point, eight points a step, without a branch for each: what is left out is overwritten. */

// @ts-nocheck: AssemblyScript

import { heightsOfSingles, notFinite } from "./height-decoding.js";
import { heightsOf } from "./short-decoding.js";

/** Luminance that lies beside raw heights. */
const NO_LIGHT = 0;
const BYTES = 1;
const SHORTS = 2;

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
  const size = intensities == 0 ? 12 : 13;
  let to = <usize>out;
  let light = i16x8.splat(0);
  for (let at = 0; at < count; at += 8) {
    let taken = pointsOf(zs + (at << 2)) | (pointsOf(zs + (at << 2) + 16) << 4);
    // What lies behind the last is none of the line's.
    if (count - at < 8) taken &= (1 << (count - at)) - 1;
    if (mask != 0) taken &= maskBits(mask, firstBit + at);
    if (intensities != 0) light = v128.load_ext<u8>(<usize>(intensities + at));
    const x = <usize>(xs + (at << 2));
    const z = <usize>(zs + (at << 2));
    to = packEight(taken, x, ys, v128.load(z), v128.load(z + 16), light, size, to);
  }
  return <i32>to - out;
}

/**
 * decodeShorts and packPoints at once, for lines of 16-bit heights of which all are finite, with two invalid codes at most: z goes into the vertex from
 * where it was computed, and eight codes are compared at a time. Lines follow each other in `raw`, in the mask and in the luminance; the nth has
 * y = yOrigin + (firstLine + nth) * yPitch. Luminance is u8, or u16 that becomes min(255, raw >> lightShift). To be called for each line by itself costs
 * JavaScript a tenth of all.
 *
 * @param signed 1 for i16
 * @param first, second codes as the 16 bits of a raw value; the same one twice, where there is one; -1: none
 * @param lights luminance of every position; 0: vertices of 12 bytes without it
 * @param lightShift -1: u8
 * @returns bytes written at `out`, behind which 16 more may be overwritten
 */
export function packShorts(
  raw: i32,
  signed: i32,
  scale: f64,
  offset: f64,
  first: i32,
  second: i32,
  xs: i32,
  yOrigin: f64,
  yPitch: f64,
  firstLine: i32,
  lines: i32,
  width: i32,
  mask: i32,
  firstBit: i32,
  lights: i32,
  lightShift: i32,
  out: i32,
): i32 {
  const codes = first < 0 ? 0 : 0xffff;
  let to = <usize>out;
  for (let nth = 0; nth < lines; nth++) {
    const before = nth * width;
    const y = <f32>(yOrigin + <f64>(firstLine + nth) * yPitch);
    const line = raw + (before << 1);
    const bit = firstBit + before;
    const sign = signed == 0 ? 0 : 0x8000;
    // A loop for each: what differs is known in it, and instructions are what it takes.
    if (lights == 0) {
      if (mask == 0) to = packShortLine(line, sign, scale, offset, first, second, codes, xs, y, width, 0, 0, NO_LIGHT, 0, 0, to);
      else to = packShortLine(line, sign, scale, offset, first, second, codes, xs, y, width, mask, bit, NO_LIGHT, 0, 0, to);
    } else if (lightShift < 0) {
      const light = lights + before;
      if (mask == 0) to = packShortLine(line, sign, scale, offset, first, second, codes, xs, y, width, 0, 0, BYTES, light, 0, to);
      else to = packShortLine(line, sign, scale, offset, first, second, codes, xs, y, width, mask, bit, BYTES, light, 0, to);
    } else {
      const light = lights + (before << 1);
      if (mask == 0) to = packShortLine(line, sign, scale, offset, first, second, codes, xs, y, width, 0, 0, SHORTS, light, lightShift, to);
      else to = packShortLine(line, sign, scale, offset, first, second, codes, xs, y, width, mask, bit, SHORTS, light, lightShift, to);
    }
  }
  return <i32>(to - out);
}

/** @param codes bits of a code that count: none, or all of 16. @param kind of the luminance */
@inline function packShortLine(
  raw: i32,
  sign: i32,
  scale: f64,
  offset: f64,
  first: i32,
  second: i32,
  codes: i32,
  xs: i32,
  y: f32,
  count: i32,
  mask: i32,
  firstBit: i32,
  kind: i32,
  lights: i32,
  lightShift: i32,
  out: usize,
): usize {
  const size = kind == NO_LIGHT ? 12 : 13;
  const scales = f64x2.splat(scale);
  const offsets = f64x2.splat(offset);
  const firstCode = i16x8.splat(<i16>first);
  const secondCode = i16x8.splat(<i16>second);
  const codeBits = i16x8.splat(<i16>codes);
  const signs = i32x4.splat(sign);
  const ys = f32x4.splat(y);
  let to = out;
  for (let at = 0; at < count; at += 8) {
    const values = v128.load(<usize>(raw + (at << 1)));
    const areCodes = v128.or(i16x8.eq(values, firstCode), i16x8.eq(values, secondCode));
    let left = i16x8.bitmask(v128.and(areCodes, codeBits));
    // What lies behind the last is none of the line's.
    if (count - at < 8) left |= 255 << (count - at);
    if (mask != 0) left |= ~maskBits(mask, firstBit + at);
    const light = lightsAt(kind, lights, at, lightShift);
    const x = <usize>(xs + (at << 2));
    const low = i32x4.sub(v128.xor(i32x4.extend_low_i16x8_u(values), signs), signs);
    const high = i32x4.sub(v128.xor(i32x4.extend_high_i16x8_u(values), signs), signs);
    const lowZs = heightsOf(low, scales, offsets);
    const highZs = heightsOf(high, scales, offsets);
    to = packEight(~left & 255, x, ys, lowZs, highZs, light, size, to);
  }
  return to;
}

/**
 * As `packShorts` for heights of 32 bits, whatever their codes: decodeIntegers or decodeSingles, and packPoints. Up to 28 bytes behind the last line are
 * read, as they are behind `xs`: more is to be laid out behind both than the 16 that every allocation has.
 *
 * @param isSingle 1 for f32, else i32; @param codes as the decoders take them
 */
export function packWords(
  raw: i32,
  isSingle: i32,
  scale: f64,
  offset: f64,
  codes: i32,
  codeCount: i32,
  xs: i32,
  yOrigin: f64,
  yPitch: f64,
  firstLine: i32,
  lines: i32,
  width: i32,
  mask: i32,
  firstBit: i32,
  lights: i32,
  lightShift: i32,
  out: i32,
): i32 {
  let to = <usize>out;
  for (let nth = 0; nth < lines; nth++) {
    const before = nth * width;
    const y = <f32>(yOrigin + <f64>(firstLine + nth) * yPitch);
    const line = raw + (before << 2);
    const bit = firstBit + before;
    if (lights == 0) {
      if (isSingle != 0) to = packWordLine(line, true, scale, offset, codes, codeCount, xs, y, width, mask, bit, NO_LIGHT, 0, 0, to);
      else to = packWordLine(line, false, scale, offset, codes, codeCount, xs, y, width, mask, bit, NO_LIGHT, 0, 0, to);
    } else if (lightShift < 0) {
      const light = lights + before;
      if (isSingle != 0) to = packWordLine(line, true, scale, offset, codes, codeCount, xs, y, width, mask, bit, BYTES, light, 0, to);
      else to = packWordLine(line, false, scale, offset, codes, codeCount, xs, y, width, mask, bit, BYTES, light, 0, to);
    } else {
      const light = lights + (before << 1);
      if (isSingle != 0) to = packWordLine(line, true, scale, offset, codes, codeCount, xs, y, width, mask, bit, SHORTS, light, lightShift, to);
      else to = packWordLine(line, false, scale, offset, codes, codeCount, xs, y, width, mask, bit, SHORTS, light, lightShift, to);
    }
  }
  return <i32>(to - out);
}

/** @param kind of the luminance */
@inline function packWordLine(
  raw: i32,
  isSingle: bool,
  scale: f64,
  offset: f64,
  codes: i32,
  codeCount: i32,
  xs: i32,
  y: f32,
  count: i32,
  mask: i32,
  firstBit: i32,
  kind: i32,
  lights: i32,
  lightShift: i32,
  out: usize,
): usize {
  const size = kind == NO_LIGHT ? 12 : 13;
  const scales = f64x2.splat(scale);
  const offsets = f64x2.splat(offset);
  const ys = f32x4.splat(y);
  let to = out;
  for (let at = 0; at < count; at += 8) {
    const low = v128.load(<usize>(raw + (at << 2)));
    const high = v128.load(<usize>(raw + (at << 2) + 16));
    const lowZs = isSingle ? heightsOfSingles(low, scales, offsets) : heightsOf(low, scales, offsets);
    const highZs = isSingle ? heightsOfSingles(high, scales, offsets) : heightsOf(high, scales, offsets);
    let lowLeft = notFinite(lowZs);
    let highLeft = notFinite(highZs);
    for (let nth = 0; nth < codeCount; nth++) {
      const code = v128.load32_splat(<usize>(codes + (nth << 2)));
      lowLeft = v128.or(lowLeft, isSingle ? f32x4.eq(low, code) : i32x4.eq(low, code));
      highLeft = v128.or(highLeft, isSingle ? f32x4.eq(high, code) : i32x4.eq(high, code));
    }
    let left = i16x8.bitmask(i16x8.narrow_i32x4_s(lowLeft, highLeft));
    // What lies behind the last is none of the line's.
    if (count - at < 8) left |= 255 << (count - at);
    if (mask != 0) left |= ~maskBits(mask, firstBit + at);
    const light = lightsAt(kind, lights, at, lightShift);
    const x = <usize>(xs + (at << 2));
    to = packEight(~left & 255, x, ys, lowZs, highZs, light, size, to);
  }
  return to;
}

export function countPoints(zs: i32, count: i32, mask: i32, firstBit: i32): i32 {
  let points = 0;
  for (let at = 0; at < count; at += 8) {
    let taken = pointsOf(zs + (at << 2)) | (pointsOf(zs + (at << 2) + 16) << 4);
    if (count - at < 8) taken &= (1 << (count - at)) - 1;
    if (mask != 0) taken &= maskBits(mask, firstBit + at);
    points += popcnt(taken);
  }
  return points;
}

/** Luminance of eight positions as vertices have it; without any, what is of no account: it lies behind the vertex, where the next one is written. */
@inline function lightsAt(kind: i32, lights: i32, at: i32, shift: i32): v128 {
  if (kind == BYTES) return v128.load_ext<u8>(<usize>(lights + at));
  if (kind == SHORTS) return i16x8.min_u(i16x8.shr_u(v128.load(<usize>(lights + (at << 1))), shift), i16x8.splat(255));
  return i16x8.splat(0);
}

/** A bit for each of four heights that is one. */
@inline function pointsOf(zs: i32): i32 {
  return i32x4.bitmask(f32x4.ne(v128.load(<usize>zs), f32x4.splat(Infinity)));
}

/** Eight bits of the mask. */
@inline function maskBits(mask: i32, bit: i32): i32 {
  return (load<u16>(<usize>(mask + (bit >>> 3))) >> (bit & 7)) & 255;
}

/** Those of eight positions that are taken: x from there on, and luminance in 16 bits each. @returns where the next point goes */
@inline function packEight(taken: i32, x: usize, ys: v128, lowZs: v128, highZs: v128, light: v128, size: i32, to: usize): usize {
  if (taken == 255) {
    // Most points of a surface: where each goes is known beforehand.
    const next = packAll(v128.load(x), ys, lowZs, i32x4.extend_low_i16x8_u(light), size, to);
    return packAll(v128.load(x + 16), ys, highZs, i32x4.extend_high_i16x8_u(light), size, next);
  }
  if (taken == 0) return to;
  const next = packFour(v128.load(x), ys, lowZs, i32x4.extend_low_i16x8_u(light), taken & 15, size, to);
  return packFour(v128.load(x + 16), ys, highZs, i32x4.extend_high_i16x8_u(light), taken >> 4, size, next);
}

/** Four points. @returns where the next goes */
@inline function packAll(x: v128, ys: v128, z: v128, light: v128, size: i32, to: usize): usize {
  const step = <usize>size;
  const lowXy = v128.shuffle<i32>(x, ys, 0, 4, 1, 5);
  const lowZ = v128.shuffle<i32>(z, light, 0, 4, 1, 5);
  const highXy = v128.shuffle<i32>(x, ys, 2, 6, 3, 7);
  const highZ = v128.shuffle<i32>(z, light, 2, 6, 3, 7);
  v128.store(to, v128.shuffle<i64>(lowXy, lowZ, 0, 2));
  v128.store(to + step, v128.shuffle<i64>(lowXy, lowZ, 1, 3));
  v128.store(to + 2 * step, v128.shuffle<i64>(highXy, highZ, 0, 2));
  v128.store(to + 3 * step, v128.shuffle<i64>(highXy, highZ, 1, 3));
  return to + 4 * step;
}

/** Those of four positions that are taken. @returns where the next point goes */
@inline function packFour(x: v128, ys: v128, z: v128, light: v128, taken: i32, size: i32, to: usize): usize {
  // The four bits in a byte each, then in each the sum of those so far, times the size: where the next point goes from here.
  const next = ((taken * 0x20_4081) & 0x0101_0101) * (size * 0x0101_0101);
  const lowXy = v128.shuffle<i32>(x, ys, 0, 4, 1, 5);
  const lowZ = v128.shuffle<i32>(z, light, 0, 4, 1, 5);
  const highXy = v128.shuffle<i32>(x, ys, 2, 6, 3, 7);
  const highZ = v128.shuffle<i32>(z, light, 2, 6, 3, 7);
  v128.store(to, v128.shuffle<i64>(lowXy, lowZ, 0, 2));
  v128.store(to + <usize>(next & 255), v128.shuffle<i64>(lowXy, lowZ, 1, 3));
  v128.store(to + <usize>((next >> 8) & 255), v128.shuffle<i64>(highXy, highZ, 0, 2));
  v128.store(to + <usize>((next >> 16) & 255), v128.shuffle<i64>(highXy, highZ, 1, 3));
  return to + <usize>(<u32>next >> 24);
}
