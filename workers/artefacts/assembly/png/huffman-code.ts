/**
 * Prefix codes as deflate takes them (RFC 1951, 3.2.2), the header of a block with its own code, and the stream's bits.
 */

/**
 * Where the next byte of the stream goes, and the bits that are no whole byte yet. The lowest bit of a byte comes
 * first.
 */
let to: usize = 0;
let buffer: u64 = 0;
let bitCount: u64 = 0;

/** Continues the stream at an address, with bits that somebody else has left over there. */
export function continueBits(at: usize, leftBits: u64, leftCount: u64): void {
  to = at;
  buffer = leftBits;
  bitCount = leftCount;
}

/** The address of the last byte that is not full. `lastBits` are its bits, and `lastBitCount` is their number. */
export function lastByteAt(): usize {
  return to;
}

export function lastBits(): u64 {
  return buffer;
}

export function lastBitCount(): u64 {
  return bitCount;
}

/** @param bits at most 16. Up to 8 bytes after the last byte are overwritten */
export function writeBits(value: i32, bits: i32): void {
  buffer |= (<u64>value) << bitCount;
  bitCount += <u64>bits;
  store<u64>(to, buffer);
  to += <usize>(bitCount >> 3);
  buffer >>= bitCount & ~7;
  bitCount &= 7;
}

/** @param words of the code, as `codeWords` gives them */
export function writeCode(words: i32, symbol: i32): void {
  const code = word(words, symbol);
  writeBits(code & 0xffff, code >> 16);
}

/** A symbol fits 9 bits. An alphabet has fewer symbols than 320. */
const KEY_BITS: u64 = 9;
const MOST_SYMBOLS: i32 = 320;

/** Layout of the scratch of `codeLengths`: keys to sort, nodes of the tree, codes per length. */
const NODES: i32 = 8 * MOST_SYMBOLS;
const PER_LENGTH: i32 = NODES + 4 * MOST_SYMBOLS;
export const LENGTHS_SCRATCH_BYTES: i32 = PER_LENGTH + 64;

/**
 * Layout of the scratch of `writeBlockHeader`: lengths in a row, their repetitions, the code of these, and that code's
 * scratch.
 */
const RUNS: i32 = MOST_SYMBOLS;
const RUN_COUNTS: i32 = RUNS + 2 * MOST_SYMBOLS;
const RUN_LENGTHS: i32 = RUN_COUNTS + 80;
const RUN_WORDS: i32 = RUN_LENGTHS + 32;
const RUN_SCRATCH: i32 = RUN_WORDS + 80;
export const HEADER_SCRATCH_BYTES: i32 = RUN_SCRATCH + LENGTHS_SCRATCH_BYTES;

/**
 * The order in which a block's header gives the lengths of the code for lengths. Five bits each, in two words: twelve,
 * seven.
 */
const LENGTH_CODE_ORDER: u64 = 0x22caa324e804a30;
const LENGTH_CODE_ORDER_FROM_12: u64 = 0x3c2e1346c;

function lengthCodeAt(nth: i32): i32 {
  const order = nth < 12 ? LENGTH_CODE_ORDER >> <u64>(5 * nth) : LENGTH_CODE_ORDER_FROM_12 >> <u64>(5 * nth - 60);
  return <i32>(order & 31);
}

function word(at: i32, index: i32): i32 {
  return load<i32>(<usize>(at + (index << 2)));
}

function setWord(at: i32, index: i32, value: i32): void {
  store<i32>(<usize>(at + (index << 2)), value);
}

function byte(at: i32, index: i32): i32 {
  return load<u8>(<usize>(at + index));
}

function setByte(at: i32, index: i32, value: i32): void {
  store<u8>(<usize>(at + index), value);
}

/**
 * Lengths of a code for symbols with these counts. None is longer than `maximumBits` (at most 15). A symbol that does
 * not occur has length 0. A single symbol has 1 bit.
 *
 * It is the Huffman code, with lengths computed in place after Moffat and Katajainen, 1995. If that code is too long,
 * the longest codes are cut, and others are lengthened until the sum of 2^-length is 1 again.
 *
 * @param counts u32 each
 * @param lengths u8 each
 */
export function codeLengths(counts: i32, symbols: i32, maximumBits: i32, lengths: i32, scratch: i32): void {
  memory.fill(<usize>lengths, 0, symbols);
  const used = keysByCount(counts, symbols, scratch);
  if (used <= 1) {
    if (used === 1) setByte(lengths, symbolOfKey(scratch, 0), 1);
    return;
  }
  const nodes = scratch + NODES;
  for (let nth = 0; nth < used; nth++) setWord(nodes, nth, <i32>(load<u64>(<usize>(scratch + (nth << 3))) >> KEY_BITS));
  weightsToDepths(nodes, used);
  const perLength = scratch + PER_LENGTH;
  memory.fill(<usize>perLength, 0, 64);
  for (let nth = 0; nth < used; nth++) {
    const bits = min(word(nodes, nth), maximumBits);
    setWord(perLength, bits, word(perLength, bits) + 1);
  }
  limitLengths(perLength, maximumBits);
  let nth = 0;
  for (let bits = maximumBits; bits > 0; bits--) {
    for (let left = word(perLength, bits); left > 0; left--) setByte(lengths, symbolOfKey(scratch, nth++), bits);
  }
}

function symbolOfKey(keys: i32, nth: i32): i32 {
  return <i32>load<u64>(<usize>(keys + (nth << 3))) & ((1 << (<i32>KEY_BITS)) - 1);
}

/**
 * Makes one number of count and symbol for each symbol that occurs, the rarest first. Shell's sort is enough for
 * hundreds.
 */
function keysByCount(counts: i32, symbols: i32, keys: i32): i32 {
  let used = 0;
  for (let symbol = 0; symbol < symbols; symbol++) {
    const count = <u64>load<u32>(<usize>(counts + (symbol << 2)));
    if (count === 0) continue;
    store<u64>(<usize>(keys + (used << 3)), (count << KEY_BITS) | <u64>symbol);
    used++;
  }
  for (let gap = 121; gap > 0; gap = (gap - 1) / 3) {
    for (let nth = gap; nth < used; nth++) {
      const key = load<u64>(<usize>(keys + (nth << 3)));
      let to = nth;
      for (; to >= gap; to -= gap) {
        const other = load<u64>(<usize>(keys + ((to - gap) << 3)));
        if (other <= key) break;
        store<u64>(<usize>(keys + (to << 3)), other);
      }
      store<u64>(<usize>(keys + (to << 3)), key);
    }
  }
  return used;
}

/** Replaces rising weights by the depth of each leaf in the tree of least weighted depth. */
function weightsToDepths(nodes: i32, count: i32): void {
  setWord(nodes, 0, word(nodes, 0) + word(nodes, 1));
  let root = 0;
  let leaf = 2;
  for (let next = 1; next < count - 1; next++) {
    let sum = 0;
    for (let child = 0; child < 2; child++) {
      if (leaf >= count || (root < next && <u32>word(nodes, root) < <u32>word(nodes, leaf))) {
        sum += word(nodes, root);
        setWord(nodes, root++, next);
      } else {
        sum += word(nodes, leaf++);
      }
    }
    setWord(nodes, next, sum);
  }
  setWord(nodes, count - 2, 0);
  for (let next = count - 3; next >= 0; next--) setWord(nodes, next, word(nodes, word(nodes, next)) + 1);
  let available = 1;
  let used = 0;
  let depth = 0;
  root = count - 2;
  let next = count - 1;
  while (available > 0) {
    while (root >= 0 && word(nodes, root) === depth) {
      used++;
      root--;
    }
    while (available > used) {
      setWord(nodes, next--, depth);
      available--;
    }
    available = 2 * used;
    depth++;
    used = 0;
  }
}

/**
 * Changes the counts of codes of each length so that they fill the code space exactly. None is longer than
 * `maximumBits`.
 */
function limitLengths(perLength: i32, maximumBits: i32): void {
  let total = 0;
  for (let bits = 1; bits <= maximumBits; bits++) total += word(perLength, bits) << (maximumBits - bits);
  for (; total > 1 << maximumBits; total--) {
    setWord(perLength, maximumBits, word(perLength, maximumBits) - 1);
    let bits = maximumBits - 1;
    while (word(perLength, bits) === 0) bits--;
    setWord(perLength, bits, word(perLength, bits) - 1);
    setWord(perLength, bits + 1, word(perLength, bits + 1) + 2);
  }
}

/**
 * Gives every symbol its canonical code. The low 16 bits hold the code with its bits reversed, as deflate writes them.
 * The bits above hold its length.
 *
 * @param scratch 64 bytes
 */
export function codeWords(lengths: i32, symbols: i32, words: i32, scratch: i32): void {
  memory.fill(<usize>scratch, 0, 64);
  for (let symbol = 0; symbol < symbols; symbol++) {
    const bits = byte(lengths, symbol);
    setWord(scratch, bits, word(scratch, bits) + 1);
  }
  // The counts of lengths become the next code of each length.
  let code = 0;
  let before = 0;
  for (let bits = 1; bits < 16; bits++) {
    code = (code + before) << 1;
    before = word(scratch, bits);
    setWord(scratch, bits, code);
  }
  for (let symbol = 0; symbol < symbols; symbol++) {
    const bits = byte(lengths, symbol);
    if (bits === 0) {
      setWord(words, symbol, 0);
      continue;
    }
    const next = word(scratch, bits);
    setWord(scratch, bits, next + 1);
    setWord(words, symbol, reversed(next, bits) | (bits << 16));
  }
}

/** The lowest bits of a code (at most 16) in reverse order. */
function reversed(code: i32, bits: i32): i32 {
  let result = ((code & 0x5555) << 1) | ((code >> 1) & 0x5555);
  result = ((result & 0x3333) << 2) | ((result >> 2) & 0x3333);
  result = ((result & 0x0f0f) << 4) | ((result >> 4) & 0x0f0f);
  return (((result & 0xff) << 8) | (result >> 8)) >> (16 - bits);
}

/**
 * Writes the header of a block with codes of its own (RFC 1951, 3.2.7), which is not the last of its stream. It has
 * literals and lengths, and one code of one bit for the only distance, 1 to 4.
 *
 * @param lengths u8 of 286 literals and lengths
 */
export function writeBlockHeader(lengths: i32, distance: i32, scratch: i32): void {
  let literals = 286;
  while (literals > 257 && byte(lengths, literals - 1) === 0) literals--;
  const all = literals + distance;
  memory.copy(<usize>scratch, <usize>lengths, literals);
  memory.fill(<usize>(scratch + literals), 0, distance - 1);
  setByte(scratch, all - 1, 1);
  const runs = runLengths(scratch, all, scratch + RUNS);

  const counts = scratch + RUN_COUNTS;
  memory.fill(<usize>counts, 0, 80);
  for (let nth = 0; nth < runs; nth++) {
    const symbol = byte(scratch + RUNS, 2 * nth);
    setWord(counts, symbol, word(counts, symbol) + 1);
  }
  const codeBits = scratch + RUN_LENGTHS;
  codeLengths(counts, 19, 7, codeBits, scratch + RUN_SCRATCH);
  codeWords(codeBits, 19, scratch + RUN_WORDS, scratch + RUN_SCRATCH);
  let lengthCodes = 19;
  while (lengthCodes > 4 && byte(codeBits, lengthCodeAt(lengthCodes - 1)) === 0) lengthCodes--;
  writeBits(0b100, 3);
  writeBits(literals - 257, 5);
  writeBits(distance - 1, 5);
  writeBits(lengthCodes - 4, 4);
  for (let nth = 0; nth < lengthCodes; nth++) writeBits(byte(codeBits, lengthCodeAt(nth)), 3);
  for (let nth = 0; nth < runs; nth++) {
    const symbol = byte(scratch + RUNS, 2 * nth);
    writeCode(scratch + RUN_WORDS, symbol);
    if (symbol >= 16) writeBits(byte(scratch + RUNS, 2 * nth + 1), symbol === 16 ? 2 : symbol === 17 ? 3 : 7);
  }
}

/**
 * Lengths with their repetitions. Symbol 16 repeats the last length 3 to 6 times. Symbols 17 and 18 are 3 to 10 and 11
 * to 138 zeros. Each takes two bytes: the symbol and its extra bits.
 */
function runLengths(lengths: i32, count: i32, runs: i32): i32 {
  let used = 0;
  for (let at = 0; at < count; ) {
    const value = byte(lengths, at);
    let run = 1;
    while (at + run < count && byte(lengths, at + run) === value) run++;
    at += run;
    if (value !== 0) {
      putRun(runs, used++, value, 0);
      run--;
    }
    while (run > 0) {
      if (run < 3) {
        putRun(runs, used++, value, 0);
        run--;
      } else if (value !== 0) {
        const taken = min(run, 6);
        putRun(runs, used++, 16, taken - 3);
        run -= taken;
      } else {
        const taken = min(run, 138);
        if (taken < 11) putRun(runs, used++, 17, taken - 3);
        else putRun(runs, used++, 18, taken - 11);
        run -= taken;
      }
    }
  }
  return used;
}

function putRun(runs: i32, nth: i32, symbol: i32, extra: i32): void {
  setByte(runs, 2 * nth, symbol);
  setByte(runs, 2 * nth + 1, extra);
}
