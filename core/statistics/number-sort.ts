import { lowerBound } from "../lower-bound.js";

/** Below it, comparing is as fast. */
const FEW = 4_096;
const DIGIT_BITS = 11;
const DIGITS = 1 << DIGIT_BITS;
/** The digits of a double from the least significant one: which half, and its first bit there. */
const PLACES = [
  ...[[0, 0] as const, [0, 11] as const, [0, 22] as const],
  ...[[1, 0] as const, [1, 11] as const, [1, 22] as const],
];

/**
 * Sorts numbers in place, NaN excepted, and gives them back. A radix sort of their bits takes about half the time of a million comparisons
 * and more, and as much memory again as the numbers. Bits of positive numbers are in the order of the numbers; those of negative ones come
 * after them, in the opposite order.
 */
export function sortNumbers(numbers: Float64Array<ArrayBuffer>): Float64Array<ArrayBuffer> {
  if (numbers.length < FEW) return numbers.sort();
  let from = numbers;
  let to = new Float64Array(numbers.length);
  for (const [half, shift] of PLACES) {
    const halves = new Uint32Array(from.buffer, from.byteOffset, 2 * from.length);
    const places = new Uint32Array(DIGITS);
    for (let at = half; at < halves.length; at += 2) {
      const digit = ((halves[at] as number) >>> shift) & (DIGITS - 1);
      places[digit] = (places[digit] as number) + 1;
    }
    if (places.includes(from.length)) continue;
    let place = 0;
    for (const [digit, count] of places.entries()) {
      places[digit] = place;
      place += count;
    }
    for (let at = 0; at < from.length; at++) {
      const digit = ((halves[2 * at + half] as number) >>> shift) & (DIGITS - 1);
      const next = places[digit] as number;
      places[digit] = next + 1;
      to[next] = from[at] as number;
    }
    [from, to] = [to, from];
  }
  const negative = lowerBound(0, from.length, (at) => !((from[at] as number) < 0 || Object.is(from[at], -0)));
  to.set(from.subarray(negative).reverse());
  to.set(from.subarray(0, negative), from.length - negative);
  if (to !== numbers) numbers.set(to);
  return numbers;
}
