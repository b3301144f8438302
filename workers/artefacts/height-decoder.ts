import type { Planes } from "../../core/capture.js";
import { itemBytes } from "../../core/capture.js";
import type { KernelMemory } from "./kernel-memory.js";

/** Decodes `count` raw heights at one address of the memory into z (f32, mm) at another; Infinity where there is no measurement. */
export type HeightDecoder = (rawAt: number, count: number, zsAt: number) => void;

/**
 * The decoder of a plane: z = fround(raw * scale + offset). A position is invalid if its raw value is one of the invalid codes, or if
 * its z is no finite f32. Takes 256 KiB of the memory for a table of 16-bit heights.
 */
export function heightDecoder(memory: KernelMemory, height: Planes["height"]): HeightDecoder {
  const { dtype, scale_mm: scale, offset_mm: offset, invalid } = height;
  if (itemBytes(dtype) === 2) {
    const tableAt = memory.allocate(4 * 0x1_0000);
    const table = memory.singles(tableAt, 0x1_0000);
    for (let bits = 0; bits < table.length; bits++) {
      const raw = dtype === "i16" ? (bits << 16) >> 16 : bits;
      const z = Math.fround(raw * scale + offset);
      table[bits] = Number.isFinite(z) && !invalid.includes(raw) ? z : Number.POSITIVE_INFINITY;
    }
    return (rawAt, count, zsAt) => memory.kernels.decodeByTable(rawAt, count, tableAt, zsAt);
  }
  const codesAt = memory.allocate(4 * Math.max(1, invalid.length));
  if (dtype === "i32") {
    memory.words(codesAt, invalid.length).set(invalid);
    return (rawAt, count, zsAt) =>
      memory.kernels.decodeIntegers(rawAt, count, scale, offset, codesAt, invalid.length, zsAt);
  }
  memory.singles(codesAt, invalid.length).set(invalid);
  return (rawAt, count, zsAt) =>
    memory.kernels.decodeSingles(rawAt, count, scale, offset, codesAt, invalid.length, zsAt);
}
