/** Raw heights into z in mm as f32; Infinity where there is no measurement: an invalid code, or a z that is no finite f32. */
import { f32At, type f64, type i32, i32At, setF32 } from "./linear-memory.js";

/** 32-bit heights: `z = raw x scale + offset`, in f64, rounded once. `codes` are raw values. */
export function decodeIntegers(
  raw: i32,
  count: i32,
  scale: f64,
  offset: f64,
  codes: i32,
  codeCount: i32,
  zs: i32,
): void {
  for (let at: i32 = 0; at < count; at++) {
    const value = i32At(raw, at);
    let isValid = true;
    for (let nth: i32 = 0; nth < codeCount; nth++) if (i32At(codes, nth) === value) isValid = false;
    setF32(zs, at, isValid ? value * scale + offset : Infinity);
    if (!isFinite32(zs, at)) setF32(zs, at, Infinity);
  }
}

export function decodeSingles(
  raw: i32,
  count: i32,
  scale: f64,
  offset: f64,
  codes: i32,
  codeCount: i32,
  zs: i32,
): void {
  for (let at: i32 = 0; at < count; at++) {
    const value = f32At(raw, at);
    let isValid = true;
    for (let nth: i32 = 0; nth < codeCount; nth++) if (f32At(codes, nth) === value) isValid = false;
    setF32(zs, at, isValid ? value * scale + offset : Infinity);
    if (!isFinite32(zs, at)) setF32(zs, at, Infinity);
  }
}

function isFinite32(zs: i32, at: i32): boolean {
  const z = f32At(zs, at);
  return z - z === 0.0;
}
