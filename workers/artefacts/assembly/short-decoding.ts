/** kernels/short-decoding.ts for four at a time: the same operations in the same order. */

// @ts-nocheck: AssemblyScript

import { i32At, setF32, u16At } from "./linear-memory.js";

export function decodeShorts(
  raw: i32,
  count: i32,
  signBit: i32,
  scale: f64,
  offset: f64,
  codes: i32,
  codeCount: i32,
  zs: i32,
): void {
  const signs = i32x4.splat(signBit);
  const scales = f64x2.splat(scale);
  const offsets = f64x2.splat(offset);
  const infinity = f32x4.splat(Infinity);
  const zero = f32x4.splat(0);
  const firstCode = i32x4.splat(codeCount > 0 ? i32At(codes, 0) : -0x8000_0000);
  const secondCode = codeCount > 1 ? i32x4.splat(i32At(codes, 1)) : firstCode;
  // Between two heights that are finite all are.
  const isFinite = isFiniteAt(-signBit, scale, offset) && isFiniteAt(0xffff - signBit, scale, offset);
  let at = 0;
  if (isFinite && codeCount <= 2) {
    for (; at + 4 <= count; at += 4) {
      const values = i32x4.sub(v128.xor(v128.load_ext<u16>(<usize>(raw + (at << 1))), signs), signs);
      const z = heightsOf(values, scales, offsets);
      const invalid = v128.or(i32x4.eq(values, firstCode), i32x4.eq(values, secondCode));
      v128.store(<usize>(zs + (at << 2)), v128.bitselect(infinity, z, invalid));
    }
  }
  for (; at + 4 <= count; at += 4) {
    const values = i32x4.sub(v128.xor(v128.load_ext<u16>(<usize>(raw + (at << 1))), signs), signs);
    const z = heightsOf(values, scales, offsets);
    let invalid = v128.or(i32x4.eq(values, firstCode), f32x4.ne(f32x4.sub(z, z), zero));
    for (let nth = 1; nth < codeCount; nth++) {
      invalid = v128.or(invalid, i32x4.eq(values, i32x4.splat(i32At(codes, nth))));
    }
    v128.store(<usize>(zs + (at << 2)), v128.bitselect(infinity, z, invalid));
  }
  for (; at < count; at++) {
    const value = (u16At(raw, at) ^ signBit) - signBit;
    let isValid = true;
    for (let nth = 0; nth < codeCount; nth++) if (i32At(codes, nth) == value) isValid = false;
    const z = <f32>(<f64>value * scale + offset);
    setF32(zs, at, isValid && z - z == 0 ? <f64>z : Infinity);
  }
}

@inline export function heightsOf(values: v128, scales: v128, offsets: v128): v128 {
  const low = f64x2.add(f64x2.mul(f64x2.convert_low_i32x4_s(values), scales), offsets);
  const upper = v128.shuffle<i32>(values, values, 2, 3, 2, 3);
  const high = f64x2.add(f64x2.mul(f64x2.convert_low_i32x4_s(upper), scales), offsets);
  return v128.shuffle<i64>(f32x4.demote_f64x2_zero(low), f32x4.demote_f64x2_zero(high), 0, 2);
}

@inline function isFiniteAt(value: i32, scale: f64, offset: f64): bool {
  const z = <f32>(<f64>value * scale + offset);
  return z - z == 0;
}
