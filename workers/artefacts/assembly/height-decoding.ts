/** kernels/height-decoding.ts for four at a time: the same operations in the same order. */

// @ts-nocheck: AssemblyScript

import { f32At, i32At, setF32 } from "./linear-memory.js";
import { heightsOf } from "./short-decoding.js";

export function decodeIntegers(raw: i32, count: i32, scale: f64, offset: f64, codes: i32, codeCount: i32, zs: i32): void {
  const scales = f64x2.splat(scale);
  const offsets = f64x2.splat(offset);
  let at = 0;
  for (; at + 4 <= count; at += 4) {
    const values = v128.load(<usize>(raw + (at << 2)));
    const z = heightsOf(values, scales, offsets);
    let invalid = notFinite(z);
    for (let nth = 0; nth < codeCount; nth++) {
      invalid = v128.or(invalid, i32x4.eq(values, i32x4.splat(i32At(codes, nth))));
    }
    v128.store(<usize>(zs + (at << 2)), v128.bitselect(f32x4.splat(Infinity), z, invalid));
  }
  for (; at < count; at++) {
    const value = i32At(raw, at);
    let isValid = true;
    for (let nth = 0; nth < codeCount; nth++) if (i32At(codes, nth) == value) isValid = false;
    setHeight(zs, at, isValid, <f64>value * scale + offset);
  }
}

export function decodeSingles(raw: i32, count: i32, scale: f64, offset: f64, codes: i32, codeCount: i32, zs: i32): void {
  const scales = f64x2.splat(scale);
  const offsets = f64x2.splat(offset);
  let at = 0;
  for (; at + 4 <= count; at += 4) {
    const values = v128.load(<usize>(raw + (at << 2)));
    const z = heightsOfSingles(values, scales, offsets);
    let invalid = notFinite(z);
    for (let nth = 0; nth < codeCount; nth++) {
      invalid = v128.or(invalid, f32x4.eq(values, f32x4.splat(<f32>f32At(codes, nth))));
    }
    v128.store(<usize>(zs + (at << 2)), v128.bitselect(f32x4.splat(Infinity), z, invalid));
  }
  for (; at < count; at++) {
    const value = f32At(raw, at);
    let isValid = true;
    for (let nth = 0; nth < codeCount; nth++) if (f32At(codes, nth) == value) isValid = false;
    setHeight(zs, at, isValid, value * scale + offset);
  }
}

@inline export function heightsOfSingles(values: v128, scales: v128, offsets: v128): v128 {
  const low = f64x2.add(f64x2.mul(f64x2.promote_low_f32x4(values), scales), offsets);
  const upper = f64x2.promote_low_f32x4(v128.shuffle<i32>(values, values, 2, 3, 2, 3));
  const high = f64x2.add(f64x2.mul(upper, scales), offsets);
  return v128.shuffle<i64>(f32x4.demote_f64x2_zero(low), f32x4.demote_f64x2_zero(high), 0, 2);
}

@inline export function notFinite(z: v128): v128 {
  return f32x4.ne(f32x4.sub(z, z), f32x4.splat(0));
}

@inline function setHeight(zs: i32, at: i32, isValid: bool, height: f64): void {
  const z = <f32>height;
  setF32(zs, at, isValid && z - z == 0 ? <f64>z : Infinity);
}
