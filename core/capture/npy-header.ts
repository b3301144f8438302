import type { HeightDtype } from "./capture.js";

/**
 * NPY format 1.0 (numpy/lib/format.py): the 6-byte magic `\x93NUMPY`, version bytes 1 and 0, the header's length as u16 little-endian,
 * then the header: a Python dict literal with the keys `descr`, `fortran_order` and `shape` in this order, padded with spaces and ended
 * by a newline so that the data begins on a multiple of 64 bytes. Before it aligns, numpy leaves 21 - digits(shape[0]) spaces for the
 * first axis to grow. This does the same, so the bytes equal those that `numpy.save` writes.
 */
const DESCR: Record<HeightDtype, string> = { u16: "<u2", i16: "<i2", i32: "<i4", f32: "<f4" };

const PREAMBLE_BYTES = 10;
const ALIGNMENT_BYTES = 64;
const GROWTH_AXIS_MAX_DIGITS = 21;

/** Header of a C-ordered little-endian array of shape (lines, width). */
export function npyHeader(dtype: HeightDtype, lines: number, width: number): Uint8Array {
  const dict = `{'descr': '${DESCR[dtype]}', 'fortran_order': False, 'shape': (${lines}, ${width}), }`;
  const growth = " ".repeat(GROWTH_AXIS_MAX_DIGITS - String(lines).length);
  const unpadded = PREAMBLE_BYTES + dict.length + growth.length + 1;
  const padding = (ALIGNMENT_BYTES - (unpadded % ALIGNMENT_BYTES)) % ALIGNMENT_BYTES;
  const text = `${dict}${growth}${" ".repeat(padding)}\n`;
  const bytes = new Uint8Array(PREAMBLE_BYTES + text.length);
  bytes.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, text.length & 0xff, text.length >> 8]);
  for (let i = 0; i < text.length; i++) bytes[PREAMBLE_BYTES + i] = text.charCodeAt(i);
  return bytes;
}
