/** Writes the digits of whole numbers as bytes, four at a time by a table. */
const ZERO = 0x30;
const POINT = 0x2e;
const MINUS = 0x2d;

/** The digits of each number up to 9999, the first in the lowest byte. */
const FOUR_DIGITS = Uint32Array.from({ length: 10_000 }, (_, number) => {
  const digits = [number / 1000, (number / 100) % 10, (number / 10) % 10, number % 10].map(Math.floor);
  return digits.reduceRight((word, digit) => 256 * word + ZERO + digit, 0);
});
const POWERS = Float64Array.from({ length: 16 }, (_, exponent) => 10 ** exponent);

/** This many bytes after the last digit may be overwritten. */
export const DIGITS_SLACK_BYTES = 4;

/**
 * Writes `number x 10^-decimals` with all its decimals, 0 to 15. The number is whole, and its size is below 2^53. Gives
 * the place after it.
 */
export function writeDecimal(out: DataView, start: number, number: number, decimals: number): number {
  let at = start;
  let size = number;
  if (number < 0) {
    out.setUint8(at++, MINUS);
    size = -number;
  }
  if (decimals === 0) return writeWhole(out, at, size);
  const power = POWERS[decimals] as number;
  const whole = Math.floor(size / power);
  at = writeWhole(out, at, whole);
  out.setUint8(at, POINT);
  return writeFraction(out, at + 1, size - whole * power, decimals);
}

/** Writes the digits of a number, with leading zeros. Gives the place after them. */
export function writeFraction(out: DataView, at: number, number: number, digits: number): number {
  if (digits <= 4) {
    out.setUint32(at, FOUR_DIGITS[number * (POWERS[4 - digits] as number)] as number, true);
    return at + digits;
  }
  const power = POWERS[digits - 4] as number;
  const four = Math.floor(number / power);
  out.setUint32(at, FOUR_DIGITS[four] as number, true);
  return writeFraction(out, at + 4, number - four * power, digits - 4);
}

function writeWhole(out: DataView, at: number, number: number): number {
  if (number < 10) {
    out.setUint8(at, ZERO + number);
    return at + 1;
  }
  if (number < 10_000) {
    const digits = number < 100 ? 2 : number < 1000 ? 3 : 4;
    out.setUint32(at, (FOUR_DIGITS[number] as number) >>> (8 * (4 - digits)), true);
    return at + digits;
  }
  const high = Math.floor(number / 10_000);
  return writeFraction(out, writeWhole(out, at, high), number - high * 10_000, 4);
}

/** Writes a text of ASCII. Gives the place after it. */
export function writeText(out: DataView, start: number, text: string): number {
  for (let nth = 0; nth < text.length; nth++) out.setUint8(start + nth, text.charCodeAt(nth));
  return start + text.length;
}
