/**
 * The hot loops of the PNG encoder (png-encoder.ts): filters of a strip of lines, byte counts, Huffman codes, checksum. Bytes are what a
 * PNG filters and a deflate block holds; a line in `samples` has `bpp` zero bytes before it, where the filters look for the pixel before the first.
 */

// @ts-nocheck: AssemblyScript


const LONGEST_MATCH: i32 = 258;

/** Filter types of PNG. */
const SUB: i32 = 1;
const UP: i32 = 2;
const PAETH: i32 = 4;

/**
 * Filters lines by a type, the first by one of its own, since the line above it need not be there. Writes lines of 1 + lineBytes at `out`;
 * what lies 16 bytes behind is overwritten.
 *
 * @param pitch from a line to the next in the strip, in bytes
 * @param step lines from one that is filtered to the next
 */
export function filterStrip(
  samples: i32,
  pitch: i32,
  step: i32,
  lineBytes: i32,
  lines: i32,
  bpp: i32,
  firstType: i32,
  type: i32,
  out: i32,
): void {
  let to = <usize>out;
  for (let line = 0; line < lines; line++) {
    const from = <usize>(samples + line * step * pitch);
    const own = line == 0 ? firstType : type;
    store<u8>(to, own);
    to++;
    if (own == PAETH) filterPaeth(from, <usize>pitch, lineBytes, <usize>bpp, to);
    else {
      const back = <usize>(own == UP ? pitch : bpp);
      for (let at: usize = 0; at < <usize>lineBytes; at += 16) {
        v128.store(to + at, i8x16.sub(v128.load(from + at), v128.load(from + at - back)));
      }
    }
    to += lineBytes;
  }
}

/**
 * Of left, above and above left the one nearest to left + above - above left, in this order where equally near. Gaps as what is above and
 * what is below zero, so that bytes do: where both differences go one way their sum, however large, is nearer than neither.
 */
function filterPaeth(from: usize, pitch: usize, lineBytes: i32, bpp: usize, to: usize): void {
  for (let at: usize = 0; at < <usize>lineBytes; at += 16) {
    const left = v128.load(from + at - bpp);
    const above = v128.load(from + at - pitch);
    const corner = v128.load(from + at - pitch - bpp);
    const leftUp = i8x16.sub_sat_u(left, corner);
    const leftDown = i8x16.sub_sat_u(corner, left);
    const aboveUp = i8x16.sub_sat_u(above, corner);
    const aboveDown = i8x16.sub_sat_u(corner, above);
    const up = i8x16.add_sat_u(leftUp, aboveUp);
    const down = i8x16.add_sat_u(leftDown, aboveDown);
    const leftGap = v128.or(aboveUp, aboveDown);
    const aboveGap = v128.or(leftUp, leftDown);
    const cornerGap = v128.or(i8x16.sub_sat_u(up, down), i8x16.sub_sat_u(down, up));
    const least = i8x16.min_u(aboveGap, cornerGap);
    const isLeft = i8x16.eq(i8x16.min_u(leftGap, least), leftGap);
    const predicted = v128.bitselect(left, v128.bitselect(above, corner, i8x16.eq(least, aboveGap)), isLeft);
    v128.store(to + at, i8x16.sub(v128.load(from + at), predicted));
  }
}

/**
 * Counts what `codeStrip` codes: literals 0 to 255, lengths of matches from 257 on. A match repeats the pixel before, at a distance of
 * bpp: no measurement, a plane, a slope. It is looked for at steps of 8 bytes, and has at least as many.
 *
 * @param counts 288 u32; behind them the same three times for itself: the same byte again and again need not wait for itself
 */
export function countSymbols(bytes: i32, length: i32, bpp: i32, counts: i32): void {
  memory.fill(<usize>counts, 0, 4 * 1152);
  // There is nothing before the first bytes that they could repeat.
  let at = bytes;
  for (; at < bytes + min(length, 2); at++) count(counts, load<u8>(<usize>at));
  const end = bytes + length;
  const endOfEights = end - 8;
  while (at <= endOfEights) {
    const eight = load<u64>(<usize>at);
    if (eight == load<u64>(<usize>(at - bpp))) {
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
  for (; at < end; at++) count(counts, load<u8>(<usize>at));
  for (let symbol = <usize>counts; symbol < <usize>counts + 1152; symbol += 16) {
    const lower = i32x4.add(v128.load(symbol), v128.load(symbol, 1152));
    v128.store(symbol, i32x4.add(lower, i32x4.add(v128.load(symbol, 2304), v128.load(symbol, 3456))));
  }
}

@inline function count(counts: i32, symbol: i32): void {
  const at = <usize>(counts + (symbol << 2));
  store<u32>(at, load<u32>(at) + 1);
}

/** Bytes from `at` on, at least 8, that repeat those of the pixel before. */
function lengthOfRun(at: i32, end: i32, bpp: i32): i32 {
  let to = at + 8;
  while (to <= end - 8 && load<u64>(<usize>to) == load<u64>(<usize>(to - bpp))) to += 8;
  while (to < end && load<u8>(<usize>to) == load<u8>(<usize>(to - bpp))) to++;
  return to - at;
}

/** Length of the next match of a run: never one that leaves a rest too short for a match. */
@inline function nextMatch(rest: i32): i32 {
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

/** RFC 1951, 3.2.5: the symbol of a match's length. */
function lengthSymbol(length: i32): i32 {
  if (length == LONGEST_MATCH) return 285;
  if (length < 11) return 254 + length;
  const extra = 29 - clz(length - 3);
  return 257 + (extra << 2) + ((length - 3) >> extra);
}

function extraBits(length: i32): i32 {
  return length < 11 || length == LONGEST_MATCH ? 0 : 29 - clz(length - 3);
}

/**
 * Of two bytes that follow one another, by their u16: their codes, one behind the other, in the upper 27 bits, the number of bits below.
 *
 * @param scratch 1 KiB
 */
function pairCodes(codes: i32, scratch: i32, pairs: i32): void {
  for (let first = 0; first < 256; first++) {
    const word = load<u32>(<usize>(codes + (first << 2)));
    store<u32>(<usize>(scratch + (first << 2)), 32 << (word >> 16));
    store<u32>(<usize>(scratch + 1024 + (first << 2)), ((word & 0xffff) << 5) + (word >> 16));
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

/**
 * Codes a strip's bytes and the end of the block.
 *
 * @param codes u32 of every symbol: its code, bits reversed, in the low 16 bits, the number of bits (at most 13) above
 * @param pairs room for 66048 u32: codes of bytes two by two
 * @param bitsBefore bits of the byte at `out` that are written already (0 to 7)
 * @returns bits from `out` on that are written then
 */
export function codeStrip(
  bytes: i32,
  length: i32,
  bpp: i32,
  codes: i32,
  pairs: i32,
  out: i32,
  bitsBefore: i32,
): i32 {
  pairCodes(codes, pairs + 262144, pairs);
  let to = <usize>out;
  let buffer: u64 = bitsBefore == 0 ? 0 : <u64>load<u8>(to);
  let bits: u64 = <u64>bitsBefore;
  let at = bytes;
  const end = bytes + length;
  const endOfEights = end - 8;
  for (; at < bytes + min(length, 2); at++) {
    const code = load<u32>(<usize>(codes + (load<u8>(<usize>at) << 2)));
    buffer |= (<u64>(code & 0xffff)) << bits;
    bits += <u64>(code >> 16);
  }
  while (at <= endOfEights) {
    const eight = load<u64>(<usize>at);
    if (eight == load<u64>(<usize>(at - bpp))) {
      let rest = lengthOfRun(at, end, bpp);
      at += rest;
      while (rest > 0) {
        const match = nextMatch(rest);
        rest -= match;
        const code = load<u32>(<usize>(codes + (lengthSymbol(match) << 2)));
        buffer |= (<u64>(code & 0xffff)) << bits;
        bits += <u64>(code >> 16);
        const extra = extraBits(match);
        buffer |= (<u64>((match - 3) & ((1 << extra) - 1))) << bits;
        // And the distance: the only code of its alphabet, one bit, 0.
        bits += <u64>extra + 1;
        store<u64>(to, buffer);
        to += <usize>(bits >> 3);
        buffer >>= bits & ~7;
        bits &= 7;
      }
      continue;
    }
    for (let half = 0; half < 2; half++) {
      const four = <u32>(half == 0 ? eight : eight >> 32);
      const one = load<u32>(<usize>pairs + ((four & 0xffff) << 2));
      const two = load<u32>(<usize>pairs + ((four >> 16) << 2));
      // Put together first: the next four wait for less of it.
      const both = <u64>(one >> 5) | (<u64>(two >> 5) << <u64>(one & 31));
      buffer |= both << bits;
      bits += <u64>((one & 31) + (two & 31));
      store<u64>(to, buffer);
      to += <usize>(bits >> 3);
      buffer >>= bits & ~7;
      bits &= 7;
    }
    at += 8;
  }
  for (; at <= end; at++) {
    const symbol = at == end ? 256 : <i32>load<u8>(<usize>at);
    const code = load<u32>(<usize>(codes + (symbol << 2)));
    buffer |= (<u64>(code & 0xffff)) << bits;
    bits += <u64>(code >> 16);
    store<u64>(to, buffer);
    to += <usize>(bits >> 3);
    buffer >>= bits & ~7;
    bits &= 7;
  }
  return ((<i32>to - out) << 3) + <i32>bits;
}

/** Adler-32 (RFC 1950), continued from `before`. */
export function adler32(bytes: i32, length: i32, before: u32): u32 {
  let a = before & 0xffff;
  let b = before >> 16;
  let at = <usize>bytes;
  let rest = length;
  const low = i8x16(16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1);
  while (rest >= 16) {
    // As many as fit before a sum could pass 2^32: 5552 bytes as in zlib, here 347 times 16.
    const blocks = min(rest >> 4, 347);
    let sums = i32x4.splat(0);
    let weighted = i32x4.splat(0);
    let prefix = i32x4.splat(0);
    for (let nth = 0; nth < blocks; nth++) {
      const v = v128.load(at);
      prefix = i32x4.add(prefix, sums);
      sums = i32x4.add(sums, i32x4.extadd_pairwise_i16x8_u(i16x8.extadd_pairwise_i8x16_u(v)));
      const products = i16x8.add(i16x8.extmul_low_i8x16_u(v, low), i16x8.extmul_high_i8x16_u(v, low));
      weighted = i32x4.add(weighted, i32x4.extadd_pairwise_i16x8_u(products));
      at += 16;
    }
    const count = <u32>blocks * 16;
    b = (b + count * a + 16 * across(prefix) + across(weighted)) % 65521;
    a = (a + across(sums)) % 65521;
    rest -= <i32>count;
  }
  for (; rest > 0; rest--) {
    a = (a + load<u8>(at)) % 65521;
    b = (b + a) % 65521;
    at++;
  }
  return (b << 16) | a;
}

@inline function across(v: v128): u32 {
  return <u32>(i32x4.extract_lane(v, 0) + i32x4.extract_lane(v, 1) + i32x4.extract_lane(v, 2) + i32x4.extract_lane(v, 3));
}
