import type { Planes } from "../../core/capture.js";
import type { KernelMemory } from "./kernel-memory.js";

/** Decodes `count` raw heights at one address of the memory into z (f32, mm) at another; Infinity where there is no measurement. */
export type HeightDecoder = (rawAt: number, count: number, zsAt: number) => void;

/**
 * The decoder of a plane: z = fround(raw * scale + offset). A position is invalid if its raw value is one of the invalid codes, or if
 * its z is no finite f32.
 */
export function heightDecoder(memory: KernelMemory, height: Planes["height"]): HeightDecoder {
  const { dtype, scale_mm: scale, offset_mm: offset, invalid } = height;
  const codesAt = memory.allocate(4 * Math.max(1, invalid.length));
  if (dtype !== "f32") {
    // A code that no raw value is stands for nothing.
    const codes = invalid.filter((code) => (code | 0) === code);
    memory.words(codesAt, codes.length).set(codes);
    if (dtype === "i32") {
      return (rawAt, count, zsAt) =>
        memory.kernels.decodeIntegers(rawAt, count, scale, offset, codesAt, codes.length, zsAt);
    }
    const signBit = dtype === "i16" ? 0x8000 : 0;
    return (rawAt, count, zsAt) =>
      memory.kernels.decodeShorts(rawAt, count, signBit, scale, offset, codesAt, codes.length, zsAt);
  }
  memory.singles(codesAt, invalid.length).set(invalid);
  return (rawAt, count, zsAt) =>
    memory.kernels.decodeSingles(rawAt, count, scale, offset, codesAt, invalid.length, zsAt);
}
