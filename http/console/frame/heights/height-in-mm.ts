import type { HeightPlane } from "../answers.js";

/** z in mm of a raw height; NaN if it is no measurement. */
export type HeightInMm = (raw: number) => number;

/**
 * As the interface describes it: z = raw * scale_mm + offset_mm, unless raw is one of `invalid`, or NaN. The codes are compared as values of
 * the array's type: for f32, a code is rounded to f32 first.
 */
export function heightInMm({ dtype, scale_mm: scale, offset_mm: offset, invalid }: HeightPlane): HeightInMm {
  const codes = new Set(dtype === "f32" ? invalid.map(Math.fround) : invalid);
  const convert: HeightInMm = (raw) => {
    const z = raw * scale + offset;
    return codes.has(raw) || !Number.isFinite(z) ? Number.NaN : z;
  };
  if (dtype !== "u16" && dtype !== "i16") return convert;
  // Every value of 16 bits is converted once: a table is several times as fast as asking the set for each point.
  const table = new Float64Array(65_536);
  for (let code = 0; code < table.length; code++) table[code] = convert(dtype === "u16" ? code : (code << 16) >> 16);
  return (raw) => table[raw & 0xffff] as number;
}
