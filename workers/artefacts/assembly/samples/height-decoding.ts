/**
 * Raw heights into z in mm as f32, four at a time: `z = raw x scale + offset` in f64, rounded once; Infinity where there is no measurement, which is
 * an invalid code, or a z that is no finite f32.
 */
import { f32At, i32At, setF32 } from "../linear-memory";

/**
 * u16, or i16 where `signBit` is 0x8000 instead of 0.
 *
 * @param codes raw values (i32)
 */
export function decodeShorts(
  raw: usize,
  count: i32,
  signBit: i32,
  scale: f64,
  offset: f64,
  codes: usize,
  codeCount: i32,
  zs: usize,
): void {
  const signs = i32x4.splat(signBit);
  const scales = f64x2.splat(scale);
  const offsets = f64x2.splat(offset);
  let at = 0;
  for (; at + 4 <= count; at += 4) {
    const values = i32x4.sub(v128.xor(v128.load_ext<u16>(raw + (at << 1)), signs), signs);
    storeHeights(zs + (at << 2), heightsOf(values, scales, offsets), integerCodes(values, codes, codeCount));
  }
  for (; at < count; at++) {
    const value = (<i32>load<u16>(raw + (at << 1)) ^ signBit) - signBit;
    setHeight(zs, at, isIntegerCode(value, codes, codeCount), <f64>value * scale + offset);
  }
}

/** i32. */
export function decodeIntegers(
  raw: usize,
  count: i32,
  scale: f64,
  offset: f64,
  codes: usize,
  codeCount: i32,
  zs: usize,
): void {
  const scales = f64x2.splat(scale);
  const offsets = f64x2.splat(offset);
  let at = 0;
  for (; at + 4 <= count; at += 4) {
    const values = v128.load(raw + (at << 2));
    storeHeights(zs + (at << 2), heightsOf(values, scales, offsets), integerCodes(values, codes, codeCount));
  }
  for (; at < count; at++) {
    const value = i32At(raw, at);
    setHeight(zs, at, isIntegerCode(value, codes, codeCount), <f64>value * scale + offset);
  }
}

/** f32, and so are the codes. */
export function decodeSingles(
  raw: usize,
  count: i32,
  scale: f64,
  offset: f64,
  codes: usize,
  codeCount: i32,
  zs: usize,
): void {
  const scales = f64x2.splat(scale);
  const offsets = f64x2.splat(offset);
  let at = 0;
  for (; at + 4 <= count; at += 4) {
    const values = v128.load(raw + (at << 2));
    storeHeights(zs + (at << 2), heightsOfSingles(values, scales, offsets), singleCodes(values, codes, codeCount));
  }
  for (; at < count; at++) {
    const value = f32At(raw, at);
    let isCode = false;
    for (let nth = 0; nth < codeCount; nth++) if (f32At(codes, nth) === value) isCode = true;
    setHeight(zs, at, isCode, value * scale + offset);
  }
}

/** z of four integers. */
export function heightsOf(values: v128, scales: v128, offsets: v128): v128 {
  const low = f64x2.add(f64x2.mul(f64x2.convert_low_i32x4_s(values), scales), offsets);
  const upper = v128.shuffle<i32>(values, values, 2, 3, 2, 3);
  const high = f64x2.add(f64x2.mul(f64x2.convert_low_i32x4_s(upper), scales), offsets);
  return v128.shuffle<i64>(f32x4.demote_f64x2_zero(low), f32x4.demote_f64x2_zero(high), 0, 2);
}

/** z of four f32. */
export function heightsOfSingles(values: v128, scales: v128, offsets: v128): v128 {
  const low = f64x2.add(f64x2.mul(f64x2.promote_low_f32x4(values), scales), offsets);
  const upper = f64x2.promote_low_f32x4(v128.shuffle<i32>(values, values, 2, 3, 2, 3));
  const high = f64x2.add(f64x2.mul(upper, scales), offsets);
  return v128.shuffle<i64>(f32x4.demote_f64x2_zero(low), f32x4.demote_f64x2_zero(high), 0, 2);
}

export function notFinite(z: v128): v128 {
  return f32x4.ne(f32x4.sub(z, z), f32x4.splat(0));
}

/** Which of four integers are codes. */
export function integerCodes(values: v128, codes: usize, count: i32): v128 {
  let found = i32x4.splat(0);
  for (let nth = 0; nth < count; nth++) {
    found = v128.or(found, i32x4.eq(values, v128.load32_splat(codes + (nth << 2))));
  }
  return found;
}

/** Which of four f32 are codes. */
export function singleCodes(values: v128, codes: usize, count: i32): v128 {
  let found = i32x4.splat(0);
  for (let nth = 0; nth < count; nth++) {
    found = v128.or(found, f32x4.eq(values, v128.load32_splat(codes + (nth << 2))));
  }
  return found;
}

function storeHeights(out: usize, z: v128, areCodes: v128): void {
  v128.store(out, v128.bitselect(f32x4.splat(Infinity), z, v128.or(areCodes, notFinite(z))));
}

function isIntegerCode(value: i32, codes: usize, count: i32): bool {
  for (let nth = 0; nth < count; nth++) if (i32At(codes, nth) === value) return true;
  return false;
}

function setHeight(zs: usize, at: i32, isCode: bool, height: f64): void {
  const z = <f32>height;
  setF32(zs, at, isCode || z - z !== 0 ? Infinity : <f64>z);
}
