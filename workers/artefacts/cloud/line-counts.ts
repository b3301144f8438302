const BITS_OF_BYTE = Uint8Array.from({ length: 256 }, (_, byte) => {
  let bits = 0;
  for (let rest = byte; rest > 0; rest >>= 1) bits += rest & 1;
  return bits;
});

/** Counts the set bits of every line of a mask. The bit of a position is line x width + column, lowest bit first. */
export function countLineBits(mask: Uint8Array, width: number, lines: number): Uint32Array<ArrayBuffer> {
  const words = wordsOf(mask);
  const counts = new Uint32Array(lines);
  for (let line = 0; line < lines; line++) counts[line] = countRange(mask, words, line * width, (line + 1) * width);
  return counts;
}

/** Counts the set bits of a whole mask. */
export function countBits(mask: Uint8Array): number {
  return countRange(mask, wordsOf(mask), 0, 8 * mask.length);
}

/** The mask's whole 32-bit words; none if the mask does not begin at a word boundary. */
function wordsOf(mask: Uint8Array): Uint32Array {
  const isAligned = mask.byteOffset % 4 === 0;
  return isAligned ? new Uint32Array(mask.buffer, mask.byteOffset, mask.length >> 2) : new Uint32Array(0);
}

/**
 * Counts the set bits from bit `from` up to before bit `end`: by words where these are whole, by bytes at both ends.
 */
function countRange(mask: Uint8Array, words: Uint32Array, from: number, end: number): number {
  const firstWord = Math.ceil(from / 32);
  const endWord = Math.max(firstWord, Math.min(words.length, Math.floor(end / 32)));
  if (firstWord === endWord) return countBytes(mask, from, end);
  let count = countBytes(mask, from, 32 * firstWord) + countBytes(mask, 32 * endWord, end);
  for (let nth = firstWord; nth < endWord; nth++) {
    // Adds up neighbouring bits, then pairs, then fours. A multiplication then adds the four bytes in the highest one.
    let word = words[nth] as number;
    word -= (word >>> 1) & 0x5555_5555;
    word = (word & 0x3333_3333) + ((word >>> 2) & 0x3333_3333);
    count += Math.imul((word + (word >>> 4)) & 0x0f0f_0f0f, 0x0101_0101) >>> 24;
  }
  return count;
}

function countBytes(mask: Uint8Array, from: number, end: number): number {
  let count = 0;
  let bit = from;
  while (bit < end) {
    const byte = mask[bit >>> 3] as number;
    const first = bit & 7;
    const taken = Math.min(8 - first, end - bit);
    count += BITS_OF_BYTE[(byte >> first) & ((1 << taken) - 1)] as number;
    bit += taken;
  }
  return count;
}
