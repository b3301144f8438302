/** Writes bits, the lowest of a byte first, at one place at a time. */

let to: usize = 0;
let buffer: u64 = 0;
let bitCount: u64 = 0;

export function beginBits(out: i32): void {
  to = <usize>out;
  buffer = 0;
  bitCount = 0;
}

/** @param bits at most 16; what lies 8 bytes behind is overwritten */
export function writeBits(value: i32, bits: i32): void {
  buffer |= (<u64>value) << bitCount;
  bitCount += <u64>bits;
  store<u64>(to, buffer);
  to += <usize>(bitCount >> 3);
  buffer >>= bitCount & ~7;
  bitCount &= 7;
}

/** Where the last byte is that is not full, how many bits of it are written, and these. */
export function lastByteAt(): usize {
  return to;
}

export function lastBits(): u64 {
  return buffer;
}

export function lastBitCount(): u64 {
  return bitCount;
}
