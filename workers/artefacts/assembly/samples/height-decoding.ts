/**
 * Turns raw heights into z in mm as f32, four at a time: `z = raw x scale + offset` in f64, rounded once.
 *
 * z is Infinity where there is no measurement: for an invalid code, or if z is no finite f32.
 */
import { storeLanes } from "../linear-memory";

/** Types of raw heights. 0 is u16. */
export const I16: i32 = 1;
export const I32: i32 = 2;
export const F32: i32 = 3;

/**
 * Decodes raw heights. It reads up to 12 bytes after the last raw height; their values do not matter.
 *
 * @param type of raw heights: 0 u16, 1 i16, 2 i32, 3 f32
 * @param codes raw values that are no measurement: f32 for heights in f32, otherwise i32
 */
export function decodeHeights(
  type: i32,
  raw: usize,
  count: i32,
  scale: f64,
  offset: f64,
  codes: usize,
  codeCount: i32,
  zs: usize,
): void {
  if (type === F32) decode<f32>(raw, count, scale, offset, codes, codeCount, zs);
  else if (type === I32) decode<i32>(raw, count, scale, offset, codes, codeCount, zs);
  else if (type === I16) decode<i16>(raw, count, scale, offset, codes, codeCount, zs);
  else decode<u16>(raw, count, scale, offset, codes, codeCount, zs);
}

/** `R` is the type of raw heights. */
function decode<R>(raw: usize, count: i32, scale: f64, offset: f64, codes: usize, codeCount: i32, zs: usize): void {
  const scales = f64x2.splat(scale);
  const offsets = f64x2.splat(offset);
  for (let at = 0; at < count; at += 4) {
    const values = fourAt<R>(raw, at);
    const z = heightsOf<R>(values, scales, offsets);
    const isNone = v128.or(codesAmong<R>(values, codes, codeCount), notFinite(z));
    storeLanes(zs + (at << 2), v128.bitselect(f32x4.splat(Infinity), z, isNone), count - at);
  }
}

/** Four raw heights as i32 or f32. */
export function fourAt<R>(raw: usize, at: i32): v128 {
  if (sizeof<R>() === 4) return v128.load(raw + (at << 2));
  return isSigned<R>() ? v128.load_ext<i16>(raw + (at << 1)) : v128.load_ext<u16>(raw + (at << 1));
}

/** The z of four raw heights. */
export function heightsOf<R>(values: v128, scales: v128, offsets: v128): v128 {
  const upper = v128.shuffle<i32>(values, values, 2, 3, 2, 3);
  const low = f64x2.add(f64x2.mul(lowDoubles<R>(values), scales), offsets);
  const high = f64x2.add(f64x2.mul(lowDoubles<R>(upper), scales), offsets);
  return v128.shuffle<i64>(f32x4.demote_f64x2_zero(low), f32x4.demote_f64x2_zero(high), 0, 2);
}

function lowDoubles<R>(values: v128): v128 {
  return isFloat<R>() ? f64x2.promote_low_f32x4(values) : f64x2.convert_low_i32x4_s(values);
}

export function notFinite(z: v128): v128 {
  return f32x4.ne(f32x4.sub(z, z), f32x4.splat(0));
}

/** The lanes of four raw heights that are codes. */
export function codesAmong<R>(values: v128, codes: usize, count: i32): v128 {
  let found = i32x4.splat(0);
  for (let nth = 0; nth < count; nth++) {
    const code = v128.load32_splat(codes + (nth << 2));
    found = v128.or(found, isFloat<R>() ? f32x4.eq(values, code) : i32x4.eq(values, code));
  }
  return found;
}
