/**
 * What the kernels of this folder compute on: one linear memory, addressed in bytes. The kernels keep to what TypeScript and
 * AssemblyScript have in common; `tsc` compiles them against this file, and .ci/build.mjs compiles the same files into kernels.wasm
 * against assembly/linear-memory.ts. One source, so that both give the same bits.
 *
 * `at` is the byte address of an array whose items are of the named type, aligned to it; `index` may be negative where there is padding.
 */

/** Integers: AssemblyScript's types of these names, plain numbers here. Never let one leave the range of its type. */
export type i32 = number;
export type f64 = number;

let bytes: Uint8Array = new Uint8Array(0);
let words16: Uint16Array = new Uint16Array(0);
let words32: Int32Array = new Int32Array(0);
let singles: Float32Array = new Float32Array(0);
let doubles: Float64Array = new Float64Array(0);
let current: ArrayBufferLike | null = null;

/** The memory that the TypeScript kernels compute on, from now on. */
export function useLinearMemory(buffer: ArrayBufferLike): void {
  if (buffer === current) return;
  current = buffer;
  bytes = new Uint8Array(buffer);
  words16 = new Uint16Array(buffer);
  words32 = new Int32Array(buffer);
  singles = new Float32Array(buffer);
  doubles = new Float64Array(buffer);
}

/**
 * The whole memory as items of one type, by their index: `address >> 2` or `>> 3`. A function that takes a view once does not fetch it
 * again for every item, which matters in inner loops only.
 */
export function viewWords(): Int32Array {
  return words32;
}

export function viewSingles(): Float32Array {
  return singles;
}

export function viewDoubles(): Float64Array {
  return doubles;
}

export function u8At(at: i32, index: i32): i32 {
  return bytes[at + index] as number;
}

export function setU8(at: i32, index: i32, value: i32): void {
  bytes[at + index] = value;
}

export function u16At(at: i32, index: i32): i32 {
  return words16[(at >>> 1) + index] as number;
}

export function setU16(at: i32, index: i32, value: i32): void {
  words16[(at >>> 1) + index] = value;
}

export function i32At(at: i32, index: i32): i32 {
  return words32[(at >>> 2) + index] as number;
}

export function setI32(at: i32, index: i32, value: i32): void {
  words32[(at >>> 2) + index] = value;
}

export function f32At(at: i32, index: i32): f64 {
  return singles[(at >>> 2) + index] as number;
}

/** Rounds to the nearest f32, ties to even. */
export function setF32(at: i32, index: i32, value: f64): void {
  singles[(at >>> 2) + index] = value;
}

export function f64At(at: i32, index: i32): f64 {
  return doubles[(at >>> 3) + index] as number;
}

export function setF64(at: i32, index: i32, value: f64): void {
  doubles[(at >>> 3) + index] = value;
}

export function squareRoot(value: f64): f64 {
  return Math.sqrt(value);
}

/** A number between -2^31 and 2^31 without its fraction. */
export function truncated(value: f64): i32 {
  return Math.trunc(value);
}
