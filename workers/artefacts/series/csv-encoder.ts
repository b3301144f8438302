/**
 * A measurement series as CSV: header `timestamp,channel_1,…`, LF; an invalid value is an empty cell.
 *
 * - Integers whose scale is a power of ten are written as exact decimals, with as many digits after the point as the
 *   scale has. That holds for scales from 10^-15 to 1. For other scales, digits that are not needed are left out, and
 *   exponents are written as JavaScript does.
 * - With an offset the same holds if sixteen digits hold the sum. The number of digits after the point is that of the
 *   scale or of the offset, whichever is more. If that is more than 15, digits that are not needed are left out.
 * - An unscaled f32 is written with the fewest digits that read back to the same f32.
 * - Everything else is written with the fewest digits that read back to the same f64.
 */
import { itemBytes, type SeriesAppend } from "../../../core/capture/capture.js";
import { formatTimeUs } from "../../../core/timestamps.js";
import { DIGITS_SLACK_BYTES, writeDecimal, writeFraction, writeText } from "./decimal-digits.js";
import { writeShortestSingle } from "./shortest-singles.js";

/** 2026-01-02T03:04:05.678901Z */
const TIMESTAMP_BYTES = 27;
/**
 * The longest f64 is -1.2345678901234567e-300. An i32 with 15 digits after the point fits too. The comma is counted.
 */
const VALUE_BYTES = 25;
const SECOND_US = 1_000_000;
const COMMA = 0x2c;
const NEWLINE = 0x0a;
const LETTER_Z = 0x5a;

export function csvHeader(channels: number): Uint8Array {
  const names = Array.from({ length: channels }, (_, nth) => `,channel_${nth + 1}`);
  return Buffer.from(`timestamp${names.join("")}\n`, "latin1");
}

/** The most room that this many rows take. */
export function csvRoomBytes(channels: number, rows: number): number {
  return rows * (TIMESTAMP_BYTES + channels * VALUE_BYTES + 1) + DIGITS_SLACK_BYTES;
}

/** What the encoder needs to know of an append. */
export type CsvAppend = Pick<
  SeriesAppend,
  "dtype" | "firstTimestampUs" | "samplePeriodUs" | "valueScale" | "valueOffset" | "invalid"
>;

/**
 * Writes rows of one append.
 *
 * @param values little-endian, [rows, channels], row-major; aligned to its items
 * @param firstRow the first of these rows within the append
 * @returns bytes written to `out`, which has room for the rows
 */
export function encodeCsvRows(
  append: CsvAppend,
  channels: number,
  firstRow: number,
  values: Uint8Array,
  out: Uint8Array,
): number {
  const text = new DataView(out.buffer, out.byteOffset, out.byteLength);
  const writeCells = cellsWriter(append, values, text);
  const rows = values.length / (channels * itemBytes(append.dtype));
  let second = Number.NaN;
  let prefix: Uint8Array = new Uint8Array(0);
  let at = 0;
  for (let row = 0; row < rows; row++) {
    const timeUs = append.firstTimestampUs + Math.round((firstRow + row) * append.samplePeriodUs);
    const ownSecond = Math.floor(timeUs / SECOND_US);
    if (ownSecond !== second) {
      second = ownSecond;
      prefix = Buffer.from(formatTimeUs(second * SECOND_US), "latin1");
    }
    out.set(prefix, at);
    writeFraction(text, at + 20, timeUs - second * SECOND_US, 6);
    text.setUint8(at + 26, LETTER_Z);
    at = writeCells(row * channels, (row + 1) * channels, at + TIMESTAMP_BYTES);
    text.setUint8(at++, NEWLINE);
  }
  return at;
}

/** Writes the values of these indices at that place, each after a comma. Gives the place after them. */
type CellsWriter = (first: number, end: number, at: number) => number;

function cellsWriter(append: CsvAppend, bytes: Uint8Array, out: DataView): CellsWriter {
  const { dtype, invalid } = append;
  const scale = append.valueScale ?? 1;
  const offset = append.valueOffset ?? 0;
  if (dtype === "i32") {
    const values = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
    const codes = new Set(invalid);
    const decimals = offset === 0 ? decimalsOf(scale) : undefined;
    if (decimals !== undefined) return decimalCells(values, codes, decimals, out);
    const sum = sumOf(scale, offset);
    return sum === undefined ? doubleCells(values, codes, scale, offset, out) : sumCells(values, codes, sum, out);
  }
  if (dtype === "f64") {
    const values = new Float64Array(bytes.buffer, bytes.byteOffset, bytes.length / 8);
    return doubleCells(values, new Set(invalid), scale, offset, out);
  }
  const values = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  // A code that is no f32 means the f32 nearest to it.
  const codes = new Set(invalid.map(Math.fround));
  return scale === 1 && offset === 0 ? singleCells(values, codes, out) : doubleCells(values, codes, scale, offset, out);
}

/** Most digits after the point that are written in full. */
const MOST_DECIMALS = 15;

/** The k of a scale of 10^-k, 0 to 15. It is undefined for any other scale. */
export function decimalsOf(scale: number): number | undefined {
  for (let decimals = 0; decimals <= MOST_DECIMALS; decimals++) if (scale === Number(`1e-${decimals}`)) return decimals;
  return undefined;
}

/** Integers that make values exact decimals if the scale is a power of ten: (raw x factor + offset) x 10^exponent. */
interface DecimalSum {
  factor: number;
  offset: number;
  exponent: number;
}

/** Undefined if the scale is no power of ten, or if sixteen digits do not hold the sum for every raw value. */
function sumOf(scale: number, offset: number): DecimalSum | undefined {
  // The scale means the shortest decimal that reads as this f64. The f64 itself is no power of ten, for example for
  // 10^-16.
  const [digits, last] = shortestDecimal(scale);
  if (digits !== "1") return undefined;
  if (offset === 0) return { factor: 1, offset: 0, exponent: last };
  const [offsetDigits, offsetLast] = shortestDecimal(Math.abs(offset));
  const exponent = Math.min(last, offsetLast);
  const factor = Number(`1e${last - exponent}`);
  const size = Number(`${offsetDigits}e${offsetLast - exponent}`);
  // 2^31 is the size of the largest raw value.
  if (!Number.isSafeInteger(size) || !Number.isSafeInteger(2 ** 31 * factor + size)) return undefined;
  return { factor, offset: offset < 0 ? -size : size, exponent };
}

/**
 * The digits that JavaScript writes of a number, without trailing zeros, and the exponent of the last one. A negative
 * number gives no digits.
 */
function shortestDecimal(value: number): [digits: string, lastExponent: number] {
  const match = /^(\d)(?:\.(\d+))?e([+-]\d+)$/.exec(value.toExponential());
  const [, whole = "", fraction = "", power = "0"] = match ?? [];
  return [whole + fraction, Number(power) - fraction.length];
}

function sumCells(values: Int32Array, invalid: ReadonlySet<number>, sum: DecimalSum, out: DataView): CellsWriter {
  const { factor, offset, exponent } = sum;
  const isWrittenOut = exponent <= 0 && exponent >= -MOST_DECIMALS;
  return textCells(values, invalid, out, (raw) => {
    const number = raw * factor + offset;
    return isWrittenOut ? decimalText(number, -exponent) : shortestText(number, exponent);
  });
}

/** `number x 10^-decimals` with all its decimals. */
function decimalText(number: number, decimals: number): string {
  const digits = String(Math.abs(number)).padStart(decimals + 1, "0");
  const point = digits.length - decimals;
  const fraction = decimals === 0 ? "" : `.${digits.slice(point)}`;
  return `${number < 0 ? "-" : ""}${digits.slice(0, point)}${fraction}`;
}

/**
 * `number x 10^exponent` as JavaScript would write it (ECMA-262, Number::toString), if every decimal were a number of
 * its own.
 */
function shortestText(number: number, exponent: number): string {
  if (number === 0) return "0";
  const written = String(Math.abs(number));
  const digits = written.replace(/0+$/, "");
  const sign = number < 0 ? "-" : "";
  /** The position of the point, counted from that of 0.digits. */
  const point = written.length + exponent;
  if (point > 21 || point < -5) {
    const fraction = digits.length === 1 ? "" : `.${digits.slice(1)}`;
    return `${sign}${digits[0]}${fraction}e${point < 1 ? "" : "+"}${point - 1}`;
  }
  if (point <= 0) return `${sign}0.${"0".repeat(-point)}${digits}`;
  if (point >= digits.length) return `${sign}${digits.padEnd(point, "0")}`;
  return `${sign}${digits.slice(0, point)}.${digits.slice(point)}`;
}

function doubleCells(
  values: Int32Array | Float32Array | Float64Array,
  invalid: ReadonlySet<number>,
  scale: number,
  offset: number,
  out: DataView,
): CellsWriter {
  const isUnscaled = scale === 1 && offset === 0;
  return textCells(values, invalid, out, (raw) => {
    // The sum of -0 and 0 would be 0.
    const value = isUnscaled ? raw : raw * scale + offset;
    // NaN, and values too large for a number, are no measurement.
    if (!Number.isFinite(value)) return "";
    return Object.is(value, -0) ? "-0" : String(value);
  });
}

function textCells(
  values: Int32Array | Float32Array | Float64Array,
  invalid: ReadonlySet<number>,
  out: DataView,
  textOf: (raw: number) => string,
): CellsWriter {
  return (first, end, start) => {
    let at = start;
    for (let index = first; index < end; index++) {
      out.setUint8(at++, COMMA);
      const raw = values[index] as number;
      if (!invalid.has(raw)) at = writeText(out, at, textOf(raw));
    }
    return at;
  };
}

// Long series have these two kinds. They need no text and no call for each value.

function decimalCells(values: Int32Array, invalid: ReadonlySet<number>, decimals: number, out: DataView): CellsWriter {
  const hasCodes = invalid.size > 0;
  return (first, end, start) => {
    let at = start;
    for (let index = first; index < end; index++) {
      out.setUint8(at++, COMMA);
      const value = values[index] as number;
      if (!(hasCodes && invalid.has(value))) at = writeDecimal(out, at, value, decimals);
    }
    return at;
  };
}

function singleCells(values: Float32Array, invalid: ReadonlySet<number>, out: DataView): CellsWriter {
  const hasCodes = invalid.size > 0;
  return (first, end, start) => {
    let at = start;
    for (let index = first; index < end; index++) {
      out.setUint8(at++, COMMA);
      const value = values[index] as number;
      if (!(hasCodes && invalid.has(value))) at = writeShortestSingle(out, at, value);
    }
    return at;
  };
}
