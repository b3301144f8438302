/**
 * Decimal digits of whole numbers, eight by one multiplication each for thousands, hundreds and tens, and their text by one swizzle: sixteen
 * bytes hold a minus, a point, zeros and ten digits, and a mask of a table (csv-kernels.ts) puts in order what belongs to the text.
 */

// @ts-nocheck: AssemblyScript

/** Bytes 0 to 5 before the ten digits: minus, point, zeros. */
const MINUS_POINT_ZEROS: u64 = 0x0000_3030_3030_2e2d;
/** Bits of the lanes that hold digits. */
const DIGIT_LANES: i32 = 0xffc0;

/** The digits of a number below 10^8 as bytes 0 to 9, the first in the lowest byte. */
@inline export function eightDigits(number: u32): u64 {
  const high = (<u64>number * 3518437209) >> 45; // / 10^4
  const fours = high | ((<u64>number - high * 10000) << 32);
  const hundreds = ((fours * 10486) >> 20) & 0x0000_007f_0000_007f; // / 100
  const pairs = ((fours - 100 * hundreds) << 16) + hundreds;
  const tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f; // / 10
  return tens + ((pairs - 10 * tens) << 8);
}

/** Minus, point, zeros, and the ten digits of a number below 2^32. */
@inline export function tenDigits(number: u32): v128 {
  const high = (<u64>number * 1441151881) >> 57; // / 10^8
  const low = eightDigits(number - <u32>high * 100000000);
  const ten = (high * 103) >> 10;
  const two = ten + ((high - 10 * ten) << 8);
  const first = MINUS_POINT_ZEROS | ((two + 0x3030) << 48);
  return i64x2.replace_lane(i64x2.splat(first), 1, low + 0x3030_3030_3030_3030);
}

/** Which lanes hold a digit that is not 0. */
@inline export function significant(digits: v128): i32 {
  return i8x16.bitmask(i8x16.ne(digits, i8x16.splat(0x30))) & DIGIT_LANES;
}

/** The lane from which on digits are written: the first that is not 0, or that of the ones. */
@inline export function firstLane(lanes: i32, decimals: i32): i32 {
  return ctz(lanes | (1 << (15 - decimals)));
}

/** Stores the text of the digits, with all decimals; 16 bytes, of which `(16 - first) + isNegative`, and one for the point, are text. */
@inline export function storeText(to: usize, digits: v128, masks: i32, decimals: i32, isNegative: i32, first: i32): void {
  const mask = v128.load(<usize>(masks + ((((decimals << 1) + isNegative) << 8) + (first << 4))));
  v128.store(to, i8x16.swizzle(digits, mask));
}
