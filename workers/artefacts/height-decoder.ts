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
    const tableAt = memory.allocate(4 * VALUES_OF_16_BITS);
    memory.singles(tableAt, VALUES_OF_16_BITS).set(heightTable(height));
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

const VALUES_OF_16_BITS = 0x1_0000;
/** The table that was made last: a file in pieces needs the same for every piece, and it takes longer to make than a piece. */
let lastTable: { key: string; table: Float32Array } | undefined;

/** z of every raw value, or of its bits where it is signed. */
function heightTable({ dtype, scale_mm: scale, offset_mm: offset, invalid }: Planes["height"]): Float32Array {
  const key = JSON.stringify([dtype, scale, offset, invalid]);
  if (lastTable?.key === key) return lastTable.table;
  const table = new Float32Array(VALUES_OF_16_BITS);
  for (let bits = 0; bits < table.length; bits++) {
    const z = Math.fround((dtype === "i16" ? (bits << 16) >> 16 : bits) * scale + offset);
    table[bits] = Number.isFinite(z) ? z : Number.POSITIVE_INFINITY;
  }
  for (const raw of invalid) {
    const isWithin = dtype === "i16" ? raw >= -0x8000 && raw < 0x8000 : raw >= 0 && raw < VALUES_OF_16_BITS;
    if (isWithin && Number.isInteger(raw)) table[raw & 0xffff] = Number.POSITIVE_INFINITY;
  }
  lastTable = { key, table };
  return table;
}
