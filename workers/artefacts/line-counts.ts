const BITS_OF_BYTE = Uint8Array.from({ length: 256 }, (_, byte) => {
  let bits = 0;
  for (let rest = byte; rest > 0; rest >>= 1) bits += rest & 1;
  return bits;
});

/** Set bits of every line of a mask: bit (line x width + column), lowest first. */
export function countLineBits(mask: Uint8Array, width: number, lines: number): Uint32Array<ArrayBuffer> {
  const counts = new Uint32Array(lines);
  let bit = 0;
  for (let line = 0; line < lines; line++) {
    const end = bit + width;
    let count = 0;
    while (bit < end) {
      const byte = mask[bit >> 3] as number;
      const from = bit & 7;
      const taken = Math.min(8 - from, end - bit);
      count += BITS_OF_BYTE[(byte >> from) & ((1 << taken) - 1)] as number;
      bit += taken;
    }
    counts[line] = count;
  }
  return counts;
}
