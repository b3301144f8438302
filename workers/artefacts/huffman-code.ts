/** Prefix codes as deflate takes them (RFC 1951, 3.2.2). */

/** More than an alphabet has symbols. */
const KEYS_PER_COUNT = 512;

/**
 * Lengths of a code for symbols that occur so often, none longer than `maximumBits`; 0 for those that do not occur. The Huffman code (lengths
 * in place after Moffat and Katajainen, 1995); where it is too long, the longest codes are cut and others lengthened until the sum of
 * 2^-length is 1 again. A single symbol has 1 bit.
 */
export function codeLengths(counts: ArrayLike<number>, maximumBits: number): Uint8Array {
  const lengths = new Uint8Array(counts.length);
  const symbols = byCount(counts);
  if (symbols.length <= 1) {
    for (const symbol of symbols) lengths[symbol] = 1;
    return lengths;
  }
  const depths = new Float64Array(symbols.length);
  for (let nth = 0; nth < symbols.length; nth++) depths[nth] = counts[symbols[nth] as number] as number;
  weightsToDepths(depths);
  const perLength = new Array<number>(maximumBits + 1).fill(0);
  for (let nth = 0; nth < depths.length; nth++) (perLength[Math.min(depths[nth] as number, maximumBits)] as number)++;
  limitLengths(perLength, maximumBits);
  let nth = 0;
  for (let bits = maximumBits; bits > 0; bits--) {
    for (let left = perLength[bits] as number; left > 0; left--) lengths[symbols[nth++] as number] = bits;
  }
  return lengths;
}

/** Symbols that occur, the rarest first. */
function byCount(counts: ArrayLike<number>): Uint16Array {
  // Numbers sort several times as fast as symbols by a comparison.
  const keys = new Float64Array(counts.length);
  let used = 0;
  for (let symbol = 0; symbol < counts.length; symbol++) {
    const count = counts[symbol] as number;
    if (count > 0) keys[used++] = count * KEYS_PER_COUNT + symbol;
  }
  keys.subarray(0, used).sort();
  const symbols = new Uint16Array(used);
  for (let nth = 0; nth < used; nth++) {
    const key = keys[nth] as number;
    symbols[nth] = key - Math.floor(key / KEYS_PER_COUNT) * KEYS_PER_COUNT;
  }
  return symbols;
}

/** Puts in place of weights, which rise, the depth of each leaf in the tree of least weighted depth. */
function weightsToDepths(nodes: Float64Array): void {
  const count = nodes.length;
  (nodes[0] as number) += nodes[1] as number;
  let root = 0;
  let leaf = 2;
  for (let next = 1; next < count - 1; next++) {
    let sum = 0;
    for (let child = 0; child < 2; child++) {
      if (leaf >= count || (root < next && (nodes[root] as number) < (nodes[leaf] as number))) {
        sum += nodes[root] as number;
        nodes[root++] = next;
      } else {
        sum += nodes[leaf++] as number;
      }
    }
    nodes[next] = sum;
  }
  nodes[count - 2] = 0;
  for (let next = count - 3; next >= 0; next--) nodes[next] = (nodes[nodes[next] as number] as number) + 1;
  let available = 1;
  let used = 0;
  let depth = 0;
  root = count - 2;
  let next = count - 1;
  while (available > 0) {
    while (root >= 0 && nodes[root] === depth) {
      used++;
      root--;
    }
    while (available > used) {
      nodes[next--] = depth;
      available--;
    }
    available = 2 * used;
    depth++;
    used = 0;
  }
}

/** Counts of codes of each length, made to fill the code space exactly (none is longer than `maximumBits`). */
function limitLengths(perLength: number[], maximumBits: number): void {
  let total = 0;
  for (let bits = 1; bits <= maximumBits; bits++) total += (perLength[bits] as number) << (maximumBits - bits);
  for (; total > 1 << maximumBits; total--) {
    (perLength[maximumBits] as number)--;
    let bits = maximumBits - 1;
    while (perLength[bits] === 0) bits--;
    (perLength[bits] as number)--;
    perLength[bits + 1] = (perLength[bits + 1] as number) + 2;
  }
}

/** Of every symbol its canonical code, bits reversed as deflate writes them, in the low 16 bits; the number of bits above. */
export function codeWords(lengths: Uint8Array, words: Uint32Array | Int32Array): void {
  const perLength = new Uint16Array(16);
  for (let symbol = 0; symbol < lengths.length; symbol++) (perLength[lengths[symbol] as number] as number)++;
  perLength[0] = 0;
  const next = new Uint16Array(16);
  for (let bits = 1; bits < 16; bits++)
    next[bits] = ((next[bits - 1] as number) + (perLength[bits - 1] as number)) << 1;
  for (let symbol = 0; symbol < lengths.length; symbol++) {
    const bits = lengths[symbol] as number;
    words[symbol] = bits === 0 ? 0 : reversed((next[bits] as number)++, bits) | (bits << 16);
  }
}

/** The lowest bits of a code, at most 16, in reverse order. */
function reversed(code: number, bits: number): number {
  let result = ((code & 0x5555) << 1) | ((code >> 1) & 0x5555);
  result = ((result & 0x3333) << 2) | ((result >> 2) & 0x3333);
  result = ((result & 0x0f0f) << 4) | ((result >> 4) & 0x0f0f);
  return (((result & 0xff) << 8) | (result >> 8)) >> (16 - bits);
}

/** Order in which a block's header has the lengths of the code that codes the lengths. */
const LENGTH_CODE_ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/** Collects bits, the lowest of a byte first. */
export class BitWriter {
  readonly bytes: number[] = [];
  #buffer = 0;
  #bits = 0;

  /** Bits of the last, unfinished byte. */
  get bitsOfLast(): number {
    return this.#bits;
  }

  get lastByte(): number {
    return this.#buffer;
  }

  /** @param bits at most 16 */
  write(value: number, bits: number): void {
    this.#buffer |= value << this.#bits;
    this.#bits += bits;
    for (; this.#bits >= 8; this.#bits -= 8) {
      this.bytes.push(this.#buffer & 255);
      this.#buffer >>= 8;
    }
  }
}

/** Header of a block with codes of its own (RFC 1951, 3.2.7), not the last of its stream: literals and lengths, and one code of one bit for the one distance, 1 to 4. */
export function writeBlockHeader(writer: BitWriter, literalLengths: Uint8Array, distance: number): void {
  let literals = literalLengths.length;
  while (literals > 257 && literalLengths[literals - 1] === 0) literals--;
  const all = [...literalLengths.subarray(0, literals), ...new Array<number>(distance - 1).fill(0), 1];
  const coded = runLengths(all);
  const counts = new Array<number>(19).fill(0);
  for (const { symbol } of coded) (counts[symbol] as number)++;
  const lengths = codeLengths(counts, 7);
  const words = new Uint32Array(19);
  codeWords(lengths, words);
  let lengthCodes = 19;
  while (lengthCodes > 4 && lengths[LENGTH_CODE_ORDER[lengthCodes - 1] as number] === 0) lengthCodes--;
  writer.write(0b100, 3);
  writer.write(literals - 257, 5);
  writer.write(distance - 1, 5);
  writer.write(lengthCodes - 4, 4);
  for (const symbol of LENGTH_CODE_ORDER.slice(0, lengthCodes)) writer.write(lengths[symbol] as number, 3);
  for (const { symbol, extra, extraBits } of coded) {
    const word = words[symbol] as number;
    writer.write(word & 0xffff, word >> 16);
    writer.write(extra, extraBits);
  }
}

/** Lengths with their repetitions: 16 repeats the last 3 to 6 times, 17 and 18 are 3 to 10 and 11 to 138 zeros. */
function runLengths(lengths: readonly number[]): { symbol: number; extra: number; extraBits: number }[] {
  const coded: { symbol: number; extra: number; extraBits: number }[] = [];
  for (let at = 0; at < lengths.length; ) {
    const value = lengths[at] as number;
    let run = 1;
    while (lengths[at + run] === value) run++;
    at += run;
    if (value !== 0) {
      coded.push({ symbol: value, extra: 0, extraBits: 0 });
      run--;
    }
    while (run > 0) {
      if (run < 3) {
        coded.push({ symbol: value, extra: 0, extraBits: 0 });
        run--;
      } else if (value !== 0) {
        const taken = Math.min(run, 6);
        coded.push({ symbol: 16, extra: taken - 3, extraBits: 2 });
        run -= taken;
      } else {
        const taken = Math.min(run, 138);
        coded.push(
          taken < 11 ? { symbol: 17, extra: taken - 3, extraBits: 3 } : { symbol: 18, extra: taken - 11, extraBits: 7 },
        );
        run -= taken;
      }
    }
  }
  return coded;
}
