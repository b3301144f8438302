/** Raw 16-bit heights as the samples of a PNG. assembly/sample-swapping.ts is the same for eight at a time. */
import { type i32, i32At, setU16, u16At } from "./linear-memory.js";

/**
 * u16 with their bytes exchanged; 0 for codes.
 *
 * @param codes i32 each
 */
export function swapSamples(raw: i32, count: i32, codes: i32, codeCount: i32, samples: i32): void {
  for (let at: i32 = 0; at < count; at++) {
    let value = u16At(raw, at);
    for (let nth: i32 = 0; nth < codeCount; nth++) if (i32At(codes, nth) === value) value = 0;
    setU16(samples, at, ((value & 255) << 8) | (value >> 8));
  }
}
