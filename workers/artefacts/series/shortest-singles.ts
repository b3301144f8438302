/**
 * f32 as the decimal of fewest digits that reads back to the same f32, the nearest to it among those.
 *
 * All decimals that read back lie within half a unit in the last place, h, to both sides of the value v. Of all p = 10^k there is one, by the
 * exponent of v, for which 2 h p is at least 0.1 and less than 1: then at most one whole number m lies between (v - h) p and (v + h) p. If
 * there is one, m / p without its trailing zeros has the fewest digits. If not, the nearest whole number to 10 v p has, for 20 h p is at
 * least 1. Products of f64 are off by 2^-52 at most, h by none; what comes so close to a limit that it matters, and what is outside the
 * range where p is exact and no limit is a decimal itself, is found by trying precisions instead.
 */
import { writeDecimal } from "./decimal-digits.js";

const MINUS = 0x2d;

const LEAST = 1e-5;
const GREATEST = 2 ** 23;
/** The share of h within which a number is surely inside: the products are off by 2^-52 of v p, which is at most 2^25 h p. */
const SURELY = 1 - 2 ** -24;
/** By the exponent's bits of an f32, 0 to 255. */
const HALF_UNITS = new Float64Array(256);
const POWERS = new Float64Array(256);
const DECIMALS = new Int32Array(256);
for (let exponent = 1; exponent < 255; exponent++) {
  const halfUnit = 2 ** (exponent - 127 - 24);
  let decimals = 0;
  while (2 * halfUnit * 10 ** decimals < 0.1) decimals++;
  HALF_UNITS[exponent] = halfUnit;
  DECIMALS[exponent] = decimals;
  POWERS[exponent] = 10 ** decimals;
}

/** The tables as the kernel of assembly/csv/csv-rows.ts takes them. */
export const SHORTEST_SINGLES = { halfUnits: HALF_UNITS, powers: POWERS, decimals: DECIMALS, surely: SURELY } as const;

export class ShortestSingles {
  readonly #out: Uint8Array;
  readonly #single = new Float32Array(1);
  readonly #bits = new Int32Array(this.#single.buffer);

  constructor(out: Uint8Array) {
    this.#out = out;
  }

  /** Writes an f32 at that place, nothing for one that is not finite; gives the place behind it. */
  write(value: number, start: number): number {
    const out = this.#out;
    let at = start;
    let magnitude = value;
    if (value < 0) {
      magnitude = -value;
      out[at++] = MINUS;
    }
    if (!(magnitude >= LEAST && magnitude < GREATEST)) return this.#writeSlowly(value, start);
    this.#single[0] = magnitude;
    const bits = this.#bits[0] as number;
    const exponent = bits >> 23;
    // At a power of two the unit below is half of that above.
    if ((bits & 0x7f_ffff) === 0) return this.#writeSlowly(value, start);
    const power = POWERS[exponent] as number;
    const reach = (HALF_UNITS[exponent] as number) * power;
    let decimals = DECIMALS[exponent] as number;
    const scaled = magnitude * power;
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
      return this.#writeSlowly(value, start);
    } else {
      const fine = scaled * 10;
      whole = Math.floor(fine + 0.5);
      decimals++;
      const off = Math.abs(fine - whole);
      // Between two whole numbers the nearer one has to be told for sure.
      if (off > 0.4999 || off > 10 * reach * SURELY) return this.#writeSlowly(value, start);
    }
    return writeDecimal(out, at, whole, decimals);
  }

  #writeSlowly(value: number, start: number): number {
    if (!Number.isFinite(value)) return start;
    const text = shortestSingleText(value);
    let at = start;
    for (let nth = 0; nth < text.length; nth++) this.#out[at++] = text.charCodeAt(nth);
    return at;
  }
}

/** The fewest digits by trying: a precision's decimal is the nearest to the value that it has, or the next above. */
export function shortestSingleText(value: number): string {
  if (value === 0) return Object.is(value, -0) ? "-0" : "0";
  for (let precision = 1; precision < 9; precision++) {
    const decimal = Number(value.toPrecision(precision));
    if (Math.fround(decimal) === value) return String(decimal);
    // Above a power of two, the range that reads back to it is twice as wide as below. If the nearest decimal lies too far below, the next above may do.
    const next = nextDecimal(value, precision);
    if (Math.fround(next) === value) return String(next);
  }
  return String(Number(value.toPrecision(9)));
}

/** Of so many digits, the nearest decimal counted on by one in its last digit, away from zero. */
function nextDecimal(value: number, precision: number): number {
  const [digits = "", exponent = ""] = value.toExponential(precision - 1).split("e");
  const whole = Number(digits.replace(".", ""));
  return Number(`${whole + Math.sign(value)}e${Number(exponent) - (precision - 1)}`);
}
