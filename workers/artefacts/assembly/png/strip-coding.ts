/**
 * Codes strips of lines as a PNG has them (png-encoder.ts): filters, a Huffman code made for these lines, and
 * repetitions of the pixel before. It goes line by line, so that the filtered bytes are still in the cache when they
 * are coded.
 */

import {
  codeLengths,
  codeWords,
  continueBits,
  HEADER_SCRATCH_BYTES,
  lastBitCount,
  lastBits,
  lastByteAt,
  writeBits,
  writeBlockHeader,
  writeCode,
} from "./huffman-code";
import { adler32, filterLine, PAETH, SUB } from "./line-filters";

const LONGEST_MATCH: i32 = 258;
/** The symbols are literals, the end of a block, and lengths of matches. */
const SYMBOLS: i32 = 286;
const END_OF_BLOCK: i32 = 256;
/** The codes of two bytes and their number of bits must fit 32 bits together. */
const MAXIMUM_CODE_BITS: i32 = 13;
/** In a strip this large, only some lines are looked at to choose the code, and half of those to choose the filter. */
const LEAST_SAMPLED_BYTES: i32 = 64 * 1024;
const SAMPLED_STEP: i32 = 8;
/** The weight of a symbol that was seen, compared with one that was not. */
const SEEN_WEIGHT: i32 = 16;
/**
 * Bits that can be written at a time. With up to 7 bits of an unfinished byte they stay below 64, the limit of a shift.
 */
const WRITTEN_BITS: u64 = 56;
const STORED_BYTES_LIMIT: i32 = 65_535;

/** The layout of `work`: the checksum so far, counts of symbols four times and those of the best filter, and the tables that code them. */
const COUNTS: i32 = 16;
const COUNTS_STRIDE: i32 = 4 * 288;
const BEST_COUNTS: i32 = COUNTS + 4 * COUNTS_STRIDE;
const LENGTHS: i32 = BEST_COUNTS + COUNTS_STRIDE;
const CODES: i32 = LENGTHS + 288;
const SCRATCH: i32 = CODES + COUNTS_STRIDE;
/** Aligned to 16 bytes: vectors are stored here. */
const PAIRS: i32 = (SCRATCH + HEADER_SCRATCH_BYTES + 15) & ~15;
const PAIR_SCRATCH: i32 = PAIRS + 4 * 65_536;

/**
 * Codes a strip as one deflate block and an empty stored block, which ends it at a byte. If stored blocks alone are
 * smaller, it writes those.
 *
 * @param samples of the first line, big-endian. The next line's are `pitch` bytes on. Each has `bpp` zero bytes before
 *   it and 16 readable bytes after it
 * @param filtered room for lines x (1 + lineBytes), and 32 bytes more
 * @param work 288 KiB; its first u32 is the Adler-32 of all filtered bytes so far
 * @param out room for twice the filtered bytes and 1 KiB
 * @returns bytes written
 */
export function codeStrip(
  samples: i32,
  pitch: i32,
  lineBytes: i32,
  lines: i32,
  bpp: i32,
  filtered: i32,
  work: i32,
  out: i32,
): i32 {
  // A line's type byte goes here, just before a multiple of 16. So the bytes after it are aligned.
  const filteredLine = <usize>(((filtered + 15) & ~15) + 15);
  const type = chooseFilter(samples, pitch, lineBytes, lines, bpp, <i32>filteredLine, work);
  codeLengths(work + BEST_COUNTS, SYMBOLS, MAXIMUM_CODE_BITS, work + LENGTHS, work + SCRATCH);
  continueBits(<usize>out, 0, 0);
  writeBlockHeader(work + LENGTHS, bpp, work + SCRATCH);
  codeWords(work + LENGTHS, SYMBOLS, work + CODES, work + SCRATCH);
  pairCodes(work + CODES, work + PAIR_SCRATCH, work + PAIRS);
  let adler = load<u32>(<usize>work);
  for (let line = 0; line < lines; line++) {
    filterLine(<usize>(samples + line * pitch), pitch, lineBytes, bpp, line === 0 ? SUB : type, filteredLine);
    adler = adler32(<i32>filteredLine, 1 + lineBytes, adler);
    codeLine(filteredLine, 1 + lineBytes, bpp, work + CODES, work + PAIRS);
  }
  store<u32>(<usize>work, adler);
  writeCode(work + CODES, END_OF_BLOCK);
  // This writes the three bits of an empty stored block, zeros up to the end of the byte, and the block's two lengths.
  writeBits(0, 3);
  const end = lastByteAt() + <usize>((lastBitCount() + 7) >> 3);
  store<u32>(end, 0xffff0000);
  const bytes = <i32>end + 4 - out;
  if (bytes <= lines * (1 + lineBytes)) return bytes;
  filterLines(samples, pitch, lineBytes, lines, bpp, type, filtered);
  return storeBlocks(filtered, lines * (1 + lineBytes), out);
}

/** Codes a filtered line, eight bytes at a time unless they are a run. `countLine` counts the same. */
function codeLine(first: usize, length: i32, bpp: i32, codes: i32, pairs: i32): void {
  let to = lastByteAt();
  let buffer = lastBits();
  let bits = lastBitCount();
  const end = first + length;
  const endOfEights = end - 8;
  let at = first;
  while (at <= endOfEights) {
    const eight = load<u64>(at);
    if (eight === load<u64>(at - bpp) && at !== first) {
      const run = lengthOfRun(at, end, bpp);
      continueBits(to, buffer, bits);
      writeMatches(codes, run);
      to = lastByteAt();
      buffer = lastBits();
      bits = lastBitCount();
      at += run;
      continue;
    }
    const one = <u64>load<u32>(<usize>(pairs + <i32>((<u32>eight & 0xffff) << 2)));
    const two = <u64>load<u32>(<usize>(pairs + <i32>(((<u32>eight >> 16) & 0xffff) << 2)));
    const three = <u64>load<u32>(<usize>(pairs + <i32>((<u32>(eight >> 32) & 0xffff) << 2)));
    const four = <u64>load<u32>(<usize>(pairs + <i32>((<u32>(eight >> 48)) << 2)));
    // A shift uses only the lowest six bits of its right side. There an entry has its number of bits, and the sum of two entries still fits.
    const low = (one >> 6) | ((two >> 6) << one);
    const high = (three >> 6) | ((four >> 6) << three);
    const lowBits = one + two;
    const highBits = (three + four) & 63;
    const all = (lowBits & 63) + highBits;
    if (all <= WRITTEN_BITS) {
      buffer |= (low | (high << lowBits)) << bits;
      bits += all;
    } else {
      buffer |= low << bits;
      bits += lowBits & 63;
      store<u64>(to, buffer);
      to += <usize>(bits >> 3);
      buffer >>= bits & ~7;
      bits &= 7;
      buffer |= high << bits;
      bits += highBits;
    }
    store<u64>(to, buffer);
    to += <usize>(bits >> 3);
    buffer >>= bits & ~7;
    bits &= 7;
    at += 8;
  }
  continueBits(to, buffer, bits);
  for (; at < end; at++) writeCode(codes, load<u8>(at));
}

/** Codes a run as matches: the length's symbol, its extra bits, and the distance. The only distance has a code of one bit, 0. */
function writeMatches(codes: i32, length: i32): void {
  let rest = length;
  while (rest > 0) {
    const match = nextMatch(rest);
    rest -= match;
    writeCode(codes, lengthSymbol(match));
    const extra = extraBits(match);
    writeBits((match - 3) & ((1 << extra) - 1), extra + 1);
  }
}

/** Filters all lines, one after the other. */
function filterLines(samples: i32, pitch: i32, lineBytes: i32, lines: i32, bpp: i32, type: i32, out: i32): void {
  let to = <usize>out;
  for (let line = 0; line < lines; line++) {
    filterLine(<usize>(samples + line * pitch), pitch, lineBytes, bpp, line === 0 ? SUB : type, to);
    to += 1 + lineBytes;
  }
}

/** Writes uncompressed blocks. None is the last of the stream. */
function storeBlocks(bytes: i32, length: i32, out: i32): i32 {
  let to = <usize>out;
  for (let from = 0; from < length; from += STORED_BYTES_LIMIT) {
    const taken = min(STORED_BYTES_LIMIT, length - from);
    store<u8>(to, 0);
    store<u16>(to + 1, taken);
    store<u16>(to + 3, ~taken);
    memory.copy(to + 5, <usize>(bytes + from), taken);
    to += 5 + taken;
  }
  return <i32>to - out;
}

/**
 * Chooses the filter of least entropy, judged by some lines from all over the strip. It counts these lines and as many
 * others for the code of the whole strip. Symbols that do not occur in them may occur elsewhere, so they get a code
 * too.
 */
function chooseFilter(
  samples: i32,
  pitch: i32,
  lineBytes: i32,
  lines: i32,
  bpp: i32,
  filteredLine: i32,
  work: i32,
): i32 {
  const isWhole = lines * (1 + lineBytes) < LEAST_SAMPLED_BYTES;
  const step = isWhole ? 1 : max(1, min(SAMPLED_STEP, lines / 4));
  const first = step >> 1;
  const triedStep = step > 1 ? 2 * step : 1;
  let best = 0;
  let leastBits: f64 = Infinity;
  for (let type = SUB; type <= PAETH; type++) {
    // The average filter is slower and hardly ever the best.
    if (type === 3) continue;
    const bits = countLines(samples, pitch, first, triedStep, lineBytes, lines, bpp, type, filteredLine, work + COUNTS);
    if (bits >= leastBits) continue;
    leastBits = bits;
    best = type;
    memory.copy(<usize>(work + BEST_COUNTS), <usize>(work + COUNTS), COUNTS_STRIDE);
  }
  const counts = work + BEST_COUNTS;
  if (step > 1) {
    countLines(samples, pitch, first + step, triedStep, lineBytes, lines, bpp, best, filteredLine, work + COUNTS);
    for (let symbol = 0; symbol < 4 * SYMBOLS; symbol += 4) {
      const seen = load<u32>(<usize>(counts + symbol)) + load<u32>(<usize>(work + COUNTS + symbol));
      store<u32>(<usize>(counts + symbol), SEEN_WEIGHT * seen + 1);
    }
  }
  store<u32>(<usize>(counts + (END_OF_BLOCK << 2)), 1);
  return best;
}

/** Counts what a filter makes of some of the lines. Gives the entropy in bits. */
function countLines(
  samples: i32,
  pitch: i32,
  first: i32,
  step: i32,
  lineBytes: i32,
  lines: i32,
  bpp: i32,
  type: i32,
  filteredLine: i32,
  counts: i32,
): f64 {
  memory.fill(<usize>counts, 0, 4 * COUNTS_STRIDE);
  for (let line = first; line < lines; line += step) {
    const own = line === 0 ? SUB : type;
    filterLine(<usize>(samples + line * pitch), pitch, lineBytes, bpp, own, <usize>filteredLine);
    countLine(filteredLine, 1 + lineBytes, bpp, counts);
  }
  return entropyBits(counts);
}

/**
 * Counts what `codeStrip` codes of a line: literals 0 to 255, and lengths of matches from 257 on. A match repeats the
 * pixel before, at a distance of `bpp`: no measurement, a plane, a slope. It is looked for in steps of 8 bytes and has
 * at least 8.
 *
 * @param counts four times 288 u32, so that a byte that is repeated does not wait for its own last count
 */
function countLine(bytes: i32, length: i32, bpp: i32, counts: i32): void {
  let at = <usize>bytes;
  const end = at + length;
  const endOfEights = end - 8;
  while (at <= endOfEights) {
    const eight = load<u64>(at);
    if (eight === load<u64>(at - bpp) && at !== <usize>bytes) {
      const run = lengthOfRun(at, end, bpp);
      countMatches(counts, run);
      at += run;
      continue;
    }
    count(counts, <i32>(eight & 255));
    count(counts + 1152, <i32>((eight >> 8) & 255));
    count(counts + 2304, <i32>((eight >> 16) & 255));
    count(counts + 3456, <i32>((eight >> 24) & 255));
    count(counts, <i32>((eight >> 32) & 255));
    count(counts + 1152, <i32>((eight >> 40) & 255));
    count(counts + 2304, <i32>((eight >> 48) & 255));
    count(counts + 3456, <i32>(eight >> 56));
    at += 8;
  }
  for (; at < end; at++) count(counts, load<u8>(at));
}

/** Joins the four counts in the first. Gives the bits that a code of least length would take for them: those of their entropy. */
function entropyBits(counts: i32): f64 {
  let total = i32x4.splat(0);
  let weighted = f32x4.splat(0);
  for (let symbol = <usize>counts; symbol < <usize>(counts + COUNTS_STRIDE); symbol += 16) {
    const lower = i32x4.add(v128.load(symbol), v128.load(symbol, 1152));
    const four = i32x4.add(lower, i32x4.add(v128.load(symbol, 2304), v128.load(symbol, 3456)));
    v128.store(symbol, four);
    total = i32x4.add(total, four);
    const numbers = f32x4.convert_i32x4_s(four);
    weighted = f32x4.add(weighted, f32x4.mul(numbers, logarithms(numbers)));
  }
  const all = i32x4.splat(
    i32x4.extract_lane(total, 0) +
      i32x4.extract_lane(total, 1) +
      i32x4.extract_lane(total, 2) +
      i32x4.extract_lane(total, 3),
  );
  const numbers = f32x4.convert_i32x4_s(all);
  const highest = f32x4.extract_lane(f32x4.mul(numbers, logarithms(numbers)), 0);
  return (
    <f64>highest -
    f32x4.extract_lane(weighted, 0) -
    f32x4.extract_lane(weighted, 1) -
    f32x4.extract_lane(weighted, 2) -
    f32x4.extract_lane(weighted, 3)
  );
}

/** Binary logarithms to 0.0002: the exponent plus a polynomial of the mantissa. The result for 0 is some number. */
function logarithms(numbers: v128): v128 {
  const exponents = f32x4.convert_i32x4_s(i32x4.sub(i32x4.shr_u(numbers, 23), i32x4.splat(127)));
  const m = v128.or(v128.and(numbers, i32x4.splat(0x7f_ffff)), i32x4.splat(0x3f80_0000));
  let sum = f32x4.add(f32x4.mul(m, f32x4.splat(-0.07915037)), f32x4.splat(0.62881573));
  sum = f32x4.add(f32x4.mul(m, sum), f32x4.splat(-2.0810602));
  sum = f32x4.add(f32x4.mul(m, sum), f32x4.splat(4.02837277));
  return f32x4.add(exponents, f32x4.add(f32x4.mul(m, sum), f32x4.splat(-2.49677377)));
}

function count(counts: i32, symbol: i32): void {
  const at = <usize>(counts + (symbol << 2));
  store<u32>(at, load<u32>(at) + 1);
}

/** Number of bytes from `at` on, at least 8, that repeat the pixel before. It counts whole pixels, so that pairs of bytes stay as they are. */
function lengthOfRun(at: usize, end: usize, bpp: i32): i32 {
  let to = at + 8;
  while (to <= end - 8 && load<u64>(to) === load<u64>(to - bpp)) to += 8;
  while (to < end && load<u8>(to) === load<u8>(to - bpp)) to++;
  return <i32>(to - at) & -bpp;
}

/** Length of the next match of a run. The rest after it is never too short for a match. */
function nextMatch(rest: i32): i32 {
  if (rest <= LONGEST_MATCH) return rest;
  return rest - LONGEST_MATCH < 3 ? LONGEST_MATCH - 3 : LONGEST_MATCH;
}

function countMatches(counts: i32, length: i32): void {
  let rest = length;
  while (rest > 0) {
    const match = nextMatch(rest);
    count(counts, lengthSymbol(match));
    rest -= match;
  }
}

/** The symbol of a match's length (RFC 1951, 3.2.5). */
function lengthSymbol(length: i32): i32 {
  if (length === LONGEST_MATCH) return 285;
  if (length < 11) return 254 + length;
  const extra = 29 - clz(length - 3);
  return 257 + (extra << 2) + ((length - 3) >> extra);
}

function extraBits(length: i32): i32 {
  return length < 11 || length === LONGEST_MATCH ? 0 : 29 - clz(length - 3);
}

/**
 * A table over every pair of bytes that follow each other, by their u16. Its upper 26 bits hold the codes of both, one
 * after the other, and the bits below hold their length.
 *
 * Lines begin with their filter's byte. So in samples of 16 bits, a pair is the lower byte of one sample and the upper
 * byte of the next. The first byte of a pair varies most, so look-ups stay close together.
 *
 * @param scratch 2 KiB
 */
function pairCodes(codes: i32, scratch: i32, pairs: i32): void {
  for (let first = 0; first < 256; first++) {
    const word = load<u32>(<usize>(codes + (first << 2)));
    store<u32>(<usize>(scratch + (first << 2)), 64 << (word >> 16));
    store<u32>(<usize>(scratch + 1024 + (first << 2)), ((word & 0xffff) << 6) + (word >> 16));
  }
  let to = <usize>pairs;
  for (let second = 0; second < 256; second++) {
    const word = load<u32>(<usize>(codes + (second << 2)));
    const code = i32x4.splat(<i32>(word & 0xffff));
    const bits = i32x4.splat(<i32>(word >> 16));
    for (let first: usize = 0; first < 1024; first += 16) {
      const shifted = i32x4.mul(code, v128.load(<usize>scratch + first));
      v128.store(to, i32x4.add(i32x4.add(shifted, bits), v128.load(<usize>scratch + first, 1024)));
      to += 16;
    }
  }
}
