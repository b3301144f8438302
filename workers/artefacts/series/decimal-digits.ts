/** Digits of numbers into bytes, four at a time by a table. */
const ZERO = 0x30;
const POINT = 0x2e;

/** Four digits of each number up to 9999. */
const DIGITS = Uint8Array.from({ length: 40_000 }, (_, at) => {
  const number = Math.floor(at / 4);
  return ZERO + (Math.floor(number / 10 ** (3 - (at % 4))) % 10);
});
const POWERS = Float64Array.from({ length: 16 }, (_, exponent) => 10 ** exponent);
/** Decimals that are written in three groups of four, whatever their number. */
const GROUPED_DECIMALS = 12;

/** Bytes behind the last digit that `writeDecimal` may overwrite. */
export const DIGITS_SLACK_BYTES = 12;

/** Writes `number x 10^-decimals` with all its decimals, 0 to 15; a whole number below 2^53. Gives the place behind it. */
export function writeDecimal(out: Uint8Array, start: number, number: number, decimals: number): number {
  if (decimals === 0) return writeWhole(out, start, number);
  const power = POWERS[decimals] as number;
  const whole = Math.floor(number / power);
  let at = writeWhole(out, start, whole);
  out[at++] = POINT;
  const fraction = number - whole * power;
  if (decimals > GROUPED_DECIMALS) {
    let rest = fraction;
    for (let left = decimals - 1; left >= 0; left--) {
      const next = Math.floor(rest / 10);
      out[at + left] = ZERO + (rest - next * 10);
      rest = next;
    }
    return at + decimals;
  }
  if (decimals <= 4) {
    writeFour(out, at, fraction * (POWERS[4 - decimals] as number));
  } else if (decimals <= 8) {
    const eight = fraction * (POWERS[8 - decimals] as number);
    const high = (eight / 10_000) | 0;
    writeFour(out, at, high);
    writeFour(out, at + 4, eight - high * 10_000);
  } else {
    const twelve = fraction * (POWERS[12 - decimals] as number);
    const high = Math.floor(twelve / 100_000_000);
    const eight = twelve - high * 100_000_000;
    const middle = (eight / 10_000) | 0;
    writeFour(out, at, high);
    writeFour(out, at + 4, middle);
    writeFour(out, at + 8, eight - middle * 10_000);
  }
  return at + decimals;
}

/** Six digits. */
export function writeSixDigits(out: Uint8Array, at: number, number: number): void {
  const high = (number / 100) | 0;
  writeFour(out, at, high);
  const low = 4 * (number - high * 100);
  out[at + 4] = DIGITS[low + 2] as number;
  out[at + 5] = DIGITS[low + 3] as number;
}

function writeFour(out: Uint8Array, at: number, number: number): void {
  const from = 4 * number;
  out[at] = DIGITS[from] as number;
  out[at + 1] = DIGITS[from + 1] as number;
  out[at + 2] = DIGITS[from + 2] as number;
  out[at + 3] = DIGITS[from + 3] as number;
}

function writeWhole(out: Uint8Array, start: number, number: number): number {
  if (number < 10) {
    out[start] = ZERO + number;
    return start + 1;
  }
  let digits = 2;
  for (let power = 100; number >= power; power *= 10) digits++;
  let rest = number;
  for (let at = start + digits - 1; at >= start; at--) {
    const next = Math.floor(rest / 10);
    out[at] = ZERO + (rest - next * 10);
    rest = next;
  }
  return start + digits;
}
