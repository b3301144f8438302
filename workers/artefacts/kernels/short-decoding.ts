/** kernels/height-decoding.ts for 16-bit heights. assembly/short-decoding.ts is the same for four at a time. */
import { f32At, type f64, type i32, i32At, setF32, u16At } from "./linear-memory.js";

/** `z = raw x scale + offset`, in f64, rounded once. `codes` are raw values (i32); u16, or i16 where `signBit` is 0x8000 instead of 0. */
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
  for (let at: i32 = 0; at < count; at++) {
    const value = (u16At(raw, at) ^ signBit) - signBit;
    let isValid = true;
    for (let nth: i32 = 0; nth < codeCount; nth++) if (i32At(codes, nth) === value) isValid = false;
    setF32(zs, at, isValid ? value * scale + offset : Infinity);
    const z = f32At(zs, at);
    if (z - z !== 0.0) setF32(zs, at, Infinity);
  }
}
