import type { Planes } from "../../../core/capture/capture.js";
import type { KernelMemory } from "../kernel-memory.js";

/** Decodes `count` raw heights at one address of the memory to z (f32, mm) at another. z is Infinity for an invalid position. */
export type HeightDecoder = (rawAt: number, count: number, zsAt: number) => void;

/**
 * The decoder of a plane: z = fround(raw * scale + offset). A position is invalid if its raw value is one of the invalid codes, or if its
 * z is not a finite f32.
 */
export function heightDecoder(memory: KernelMemory, height: Planes["height"]): HeightDecoder {
  const { dtype, scale_mm: scale, offset_mm: offset } = height;
  const { codesAt, codeCount } = layOutCodes(memory, height);
  const signBit = dtype === "i16" ? 0x8000 : 0;
  switch (dtype) {
    case "f32":
      return (rawAt, count, zsAt) =>
        memory.kernels.decodeSingles(rawAt, count, scale, offset, codesAt, codeCount, zsAt);
    case "i32":
      return (rawAt, count, zsAt) =>
        memory.kernels.decodeIntegers(rawAt, count, scale, offset, codesAt, codeCount, zsAt);
    default:
      return (rawAt, count, zsAt) =>
        memory.kernels.decodeShorts(rawAt, count, signBit, scale, offset, codesAt, codeCount, zsAt);
  }
}

/** The invalid codes of a plane as kernels compare them: f32 for heights in f32, otherwise i32. Codes that no raw value can have are left out. */
export function layOutCodes(
  memory: KernelMemory,
  { dtype, invalid }: Planes["height"],
): { codesAt: number; codeCount: number } {
  const codesAt = memory.allocate(4 * Math.max(1, invalid.length));
  if (dtype === "f32") {
    memory.singles(codesAt, invalid.length).set(invalid);
    return { codesAt, codeCount: invalid.length };
  }
  const codes = invalid.filter((code) => (code | 0) === code);
  memory.words(codesAt, codes.length).set(codes);
  return { codesAt, codeCount: codes.length };
}
