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

/** Set bits of a whole mask. */
export function countBits(mask: Uint8Array): number {
  const isAligned = mask.byteOffset % 4 === 0;
  const words = isAligned ? new Uint32Array(mask.buffer, mask.byteOffset, mask.length >> 2) : new Uint32Array(0);
  let count = 0;
  for (let nth = 0; nth < words.length; nth++) {
    // Sums of neighbouring bits, pairs and fours; a multiplication adds up the four bytes in the highest.
    let word = words[nth] as number;
    word -= (word >>> 1) & 0x5555_5555;
    word = (word & 0x3333_3333) + ((word >>> 2) & 0x3333_3333);
    count += Math.imul((word + (word >>> 4)) & 0x0f0f_0f0f, 0x0101_0101) >>> 24;
  }
  for (let nth = 4 * words.length; nth < mask.length; nth++) count += BITS_OF_BYTE[mask[nth] as number] as number;
  return count;
}
