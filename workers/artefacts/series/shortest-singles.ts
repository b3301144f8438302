/**
 * An f32 as the decimal of fewest digits that reads back to the same f32. If there are several, the nearest to it.
 *
 * All decimals that read back lie within h, half a unit in the last place, to both sides of the value v. The exponent
 * of v gives the one p = 10^k for which 2 h p is at least 0.1 and less than 1. So at most one whole number m lies
 * between (v - h) p and (v + h) p. If there is one, m / p without its trailing zeros has the fewest digits. If there is
 * none, the nearest whole number to 10 v p has the fewest digits, because 20 h p is at least 1.
 *
 * Products of f64 are off by at most 2^-52; h is exact. Some values are found by trying precisions instead: those so
 * close to a limit that this error matters, and those outside the range where p is exact and no limit is a decimal
 * itself.
 */
import { writeDecimal, writeText } from "./decimal-digits.js";

const LEAST = 1e-5;
const GREATEST = 2 ** 23;
/**
 * The share of h within which a number is certainly inside. Products are off by 2^-52 of v p, which is at most 2^25 h
 * p.
 */
const SURELY = 1 - 2 ** -24;
/** By the exponent's bits of an f32, 0 to 255: h p, p = 10^k, and k. */
const REACHES = new Float64Array(256);
const POWERS = new Float64Array(256);
const DECIMALS = new Int32Array(256);
for (let exponent = 1; exponent < 255; exponent++) {
  const halfUnit = 2 ** (exponent - 127 - 24);
  let decimals = 0;
  while (2 * halfUnit * 10 ** decimals < 0.1) decimals++;
  DECIMALS[exponent] = decimals;
  POWERS[exponent] = 10 ** decimals;
  REACHES[exponent] = halfUnit * 10 ** decimals;
}

const SINGLE = new Float32Array(1);
const BITS = new Int32Array(SINGLE.buffer);

/** Writes an f32, and nothing for one that is not finite. Gives the place after it. */
export function writeShortestSingle(out: DataView, start: number, value: number): number {
  const magnitude = Math.abs(value);
  if (!(magnitude >= LEAST && magnitude < GREATEST)) return writeSlowly(out, start, value);
  SINGLE[0] = magnitude;
  const bits = BITS[0] as number;
  // At a power of two, the unit below is half of the unit above.
  if ((bits & 0x7f_ffff) === 0) return writeSlowly(out, start, value);
  const exponent = bits >> 23;
  const reach = REACHES[exponent] as number;
  let decimals = DECIMALS[exponent] as number;
  const scaled = magnitude * (POWERS[exponent] as number);
  let whole = Math.floor(scaled + 0.5);
  const distance = Math.abs(scaled - whole);
  if (distance < reach * SURELY) {
    while (decimals > 0) {
      const tenth = Math.floor(whole / 10);
      if (tenth * 10 !== whole) break;
      whole = tenth;
      decimals--;
    }
  } else if (distance <= reach / SURELY) {
    return writeSlowly(out, start, value);
  } else {
    const fine = scaled * 10;
    whole = Math.floor(fine + 0.5);
    decimals++;
    const off = Math.abs(fine - whole);
    // It must be certain which of the two whole numbers is nearer.
    if (off > 0.4999 || off > 10 * reach * SURELY) return writeSlowly(out, start, value);
  }
  return writeDecimal(out, start, value < 0 ? -whole : whole, decimals);
}

function writeSlowly(out: DataView, start: number, value: number): number {
  return Number.isFinite(value) ? writeText(out, start, shortestSingleText(value)) : start;
}

/** Finds the fewest digits by trying precisions. It takes the decimal nearest to the value, or the next one above. */
export function shortestSingleText(value: number): string {
  if (value === 0) return Object.is(value, -0) ? "-0" : "0";
  for (let precision = 1; precision < 9; precision++) {
    const decimal = Number(value.toPrecision(precision));
    if (Math.fround(decimal) === value) return String(decimal);
    // Above a power of two, the range that reads back is twice as wide as below. If the nearest decimal is too low, the
    // next may do.
    const next = nextDecimal(value, precision);
    if (Math.fround(next) === value) return String(next);
  }
  return String(Number(value.toPrecision(9)));
}

/** The next decimal after the nearest one with this many digits: one more in its last digit, away from zero. */
function nextDecimal(value: number, precision: number): number {
  const [digits = "", exponent = ""] = value.toExponential(precision - 1).split("e");
  const whole = Number(digits.replace(".", ""));
  return Number(`${whole + Math.sign(value)}e${Number(exponent) - (precision - 1)}`);
}
