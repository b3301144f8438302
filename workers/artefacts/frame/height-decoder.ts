import type { HeightDtype, Planes } from "../../../core/capture/capture.js";
import type { KernelMemory } from "../kernel-memory.js";

/** Decodes `count` raw heights at one address of the memory to z (f32, mm) at another. z is Infinity for an invalid position. */
export type HeightDecoder = (rawAt: number, count: number, zsAt: number) => void;

/** The position is the number by which kernels know the type of raw heights. */
const HEIGHT_TYPES: readonly HeightDtype[] = ["u16", "i16", "i32", "f32"];

/** What kernels need of a plane: how raw heights become z, and which of them are no measurement. */
export function heightParameters(memory: KernelMemory, { dtype, scale_mm, offset_mm, invalid }: Planes["height"]) {
  const { codesAt, codeCount } = layOutCodes(memory, dtype, invalid);
  return { type: HEIGHT_TYPES.indexOf(dtype), transform: [scale_mm, offset_mm, codesAt, codeCount] as const };
}

/**
 * The decoder of a plane: z = fround(raw * scale + offset). A position is invalid if its raw value is one of the invalid codes, or if its
 * z is not a finite f32.
 */
export function heightDecoder(memory: KernelMemory, height: Planes["height"]): HeightDecoder {
  const { type, transform } = heightParameters(memory, height);
  return (rawAt, count, zsAt) => memory.kernels.decodeHeights(type, rawAt, count, ...transform, zsAt);
}

/** The invalid codes of a plane as kernels compare them: f32 for heights in f32, otherwise i32. Codes that no raw value can have are left out. */
function layOutCodes(memory: KernelMemory, dtype: HeightDtype, invalid: readonly number[]) {
  const codesAt = memory.allocate(4 * Math.max(1, invalid.length));
  if (dtype === "f32") {
    memory.singles(codesAt, invalid.length).set(invalid);
    return { codesAt, codeCount: invalid.length };
  }
  const codes = invalid.filter((code) => (code | 0) === code);
  memory.words(codesAt, codes.length).set(codes);
  return { codesAt, codeCount: codes.length };
}
