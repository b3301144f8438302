/**
 * Rows of a measurement series as csv-encoder.ts writes them, for i32 with a scale that is a power of ten and for unscaled f32. Digits of f32
 * as shortest-singles.ts explains, by the same operations on the same numbers; what it leaves to trying precisions it is asked for here.
 */

// @ts-nocheck: AssemblyScript

import { firstLane, eightDigits, significant, storeText, tenDigits } from "./decimal-digits.js";
import { f64At, i32At } from "../linear-memory.js";

/** Items of the block that describes rows (csv-kernels.ts): f64 first. */
const FIRST_US: i32 = 0;
const PERIOD_US: i32 = 1;
const FIRST_ROW: i32 = 2;
/** Words (i32), behind these. */
const CHANNELS: i32 = 6;
const DECIMALS: i32 = 7;
const CODES: i32 = 8;
const CODE_COUNT: i32 = 9;
const MASKS: i32 = 10;
const EXPONENTS: i32 = 11;
const PREFIX: i32 = 12;

/** Of an entry of the table of exponents: power, what is surely within reach of it and what surely is not (f64), decimals (i32; -1: outside). */
const EXPONENT_SHIFT: i32 = 5;

const COMMA: u32 = 0x2c;
const NEWLINE: u32 = 0x0a;
const SECOND_US: f64 = 1000000;
/** Added, it leaves a number below 2^32 rounded to the nearest whole one in the low bits, ties to even. */
const ROUNDER: f64 = 4503599627370496;

/** Writes a finite f32 as shortest-singles.ts does; gives the address behind it. */
@external("env", "writeSingle")
declare function writeSingle(value: f64, at: i32): i32;

/** i32; 16 bytes behind what is written may be overwritten. @returns bytes written */
export function writeDecimalRows(series: i32, values: i32, rows: i32, out: i32): i32 {
  const channels = i32At(series, CHANNELS);
  const decimals = i32At(series, DECIMALS);
  const masks = i32At(series, MASKS);
  const codes = i32At(series, CODES);
  const codeCount = i32At(series, CODE_COUNT);
  const point = decimals > 0 ? 1 : 0;
  let to = <usize>out;
  let from = <usize>values;
  let second: f64 = -1;
  for (let row = 0; row < rows; row++) {
    second = writeTime(series, row, second, to);
    to += 27;
    for (let channel = 0; channel < channels; channel++) {
      const value = load<i32>(from);
      from += 4;
      store<u8>(to++, COMMA);
      if (codeCount != 0 && isCode(codes, codeCount, value)) continue;
      const isNegative = <i32>(<u32>value >> 31);
      const digits = tenDigits(<u32>((value ^ -isNegative) + isNegative));
      const first = firstLane(significant(digits), decimals);
      storeText(to, digits, masks, decimals, isNegative, first);
      to += <usize>(isNegative + 16 - first + point);
    }
    store<u8>(to++, NEWLINE);
  }
  return <i32>to - out;
}

/** f32; as `writeDecimalRows`. */
export function writeSingleRows(series: i32, values: i32, rows: i32, out: i32): i32 {
  const channels = i32At(series, CHANNELS);
  const masks = i32At(series, MASKS);
  const exponents = i32At(series, EXPONENTS);
  const codes = i32At(series, CODES);
  const codeCount = i32At(series, CODE_COUNT);
  let to = <usize>out;
  let from = <usize>values;
  let second: f64 = -1;
  for (let row = 0; row < rows; row++) {
    second = writeTime(series, row, second, to);
    to += 27;
    for (let channel = 0; channel < channels; channel++) {
      const bits = load<u32>(from);
      const value = load<f32>(from);
      from += 4;
      store<u8>(to++, COMMA);
      if (codeCount != 0 && isSingleCode(codes, codeCount, value)) continue;
      to = writeShortest(to, bits, value, masks, exponents);
    }
    store<u8>(to++, NEWLINE);
  }
  return <i32>to - out;
}

@inline function writeShortest(to: usize, bits: u32, value: f32, masks: i32, exponents: i32): usize {
  const entry = <usize>(exponents + (((bits >> 23) & 255) << EXPONENT_SHIFT));
  const decimals = load<i32>(entry, 24);
  if (decimals < 0) return writeOutside(to, bits, value);
  // At a power of two the unit below is half of that above.
  const sure = load<f64>(entry, 8) * ((bits & 0x7fffff) == 0 ? 0.5 : 1.0);
  const scaled = <f64>abs(value) * load<f64>(entry);
  const rounded = scaled + ROUNDER;
  const distance = abs(scaled - (rounded - ROUNDER));
  const fine = scaled * 10;
  const fineRounded = fine + ROUNDER;
  const off = abs(fine - (fineRounded - ROUNDER));
  const isWhole = distance < sure;
  // Between two whole numbers the nearer one has to be told for sure.
  const isFine = i32(distance > load<f64>(entry, 16)) & i32(off <= 0.4999) & i32(off <= 10 * sure);
  if ((i32(isWhole) | isFine) == 0) return <usize>writeSingle(<f64>value, <i32>to);
  const number = <u32>reinterpret<u64>(isWhole ? rounded : fineRounded);
  const places = decimals + 1 - i32(isWhole);
  const isNegative = <i32>(bits >> 31);
  const digits = tenDigits(number);
  const lanes = significant(digits);
  const first = firstLane(lanes, places);
  storeText(to, digits, masks, places, isNegative, first);
  // Without zeros at the end, and without a point that nothing stands behind.
  const zeros = min(clz(lanes) - 16, places);
  return to + <usize>(isNegative + 16 - first - zeros + i32(zeros < places));
}

function writeOutside(to: usize, bits: u32, value: f32): usize {
  if ((bits & 0x7f800000) == 0x7f800000) return to;
  if (value != 0) return <usize>writeSingle(<f64>value, <i32>to);
  store<u16>(to, bits == 0 ? 0x30 : 0x302d);
  return to + (bits == 0 ? 1 : 2);
}

@inline function isCode(codes: i32, count: i32, value: i32): bool {
  for (let nth = 0; nth < count; nth++) if (load<i32>(<usize>(codes + (nth << 2))) == value) return true;
  return false;
}

@inline function isSingleCode(codes: i32, count: i32, value: f32): bool {
  for (let nth = 0; nth < count; nth++) if (load<f32>(<usize>(codes + (nth << 2))) == value) return true;
  return false;
}

/** 2026-01-02T03:04:05.678901Z of a row; gives its second, whose text is kept. */
@inline function writeTime(series: i32, row: i32, before: f64, to: usize): f64 {
  const timeUs = f64At(series, FIRST_US) + roundHalfUp((f64At(series, FIRST_ROW) + row) * f64At(series, PERIOD_US));
  const prefix = <usize>i32At(series, PREFIX);
  let second = before;
  let ofSecond = timeUs - second * SECOND_US;
  if (!(ofSecond >= 0 && ofSecond < SECOND_US)) {
    second = Math.floor(timeUs / SECOND_US);
    ofSecond = timeUs - second * SECOND_US;
    writeSecond(<i64>second, prefix);
  }
  v128.store(to, v128.load(prefix));
  store<u32>(to, load<u32>(prefix, 16), 16);
  store<u64>(to, (eightDigits(<u32>ofSecond * 100) & 0x0000_ffff_ffff_ffff) + 0x005a_3030_3030_3030, 20);
  return second;
}

/** Math.round of JavaScript, of a number that is not negative. */
@inline function roundHalfUp(value: f64): f64 {
  const whole = Math.floor(value);
  return value - whole >= 0.5 ? whole + 1 : whole;
}

/** `2026-01-02T03:04:05.`; days to a date after Hinnant, "chrono-Compatible Low-Level Date Algorithms", 2021: years that begin in March. */
function writeSecond(second: i64, to: usize): void {
  const days = <i32>(second / 86400);
  const ofDay = <i32>(second - <i64>days * 86400);
  const shifted = days + 719468;
  const era = shifted / 146097;
  const ofEra = shifted - era * 146097;
  const yearOfEra = (ofEra - ofEra / 1460 + ofEra / 36524 - ofEra / 146096) / 365;
  const ofYear = ofEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100);
  const monthFromMarch = (5 * ofYear + 2) / 153;
  const day = ofYear - (153 * monthFromMarch + 2) / 5 + 1;
  const month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  writeTwo(to, year / 100);
  writeTwo(to + 2, year % 100);
  writeTwo(to + 5, month);
  writeTwo(to + 8, day);
  writeTwo(to + 11, ofDay / 3600);
  writeTwo(to + 14, (ofDay / 60) % 60);
  writeTwo(to + 17, ofDay % 60);
  store<u8>(to, 0x2d, 4);
  store<u8>(to, 0x2d, 7);
  store<u8>(to, 0x54, 10);
  store<u8>(to, 0x3a, 13);
  store<u8>(to, 0x3a, 16);
  store<u8>(to, 0x2e, 19);
}

function writeTwo(to: usize, number: i32): void {
  store<u8>(to, 0x30 + number / 10);
  store<u8>(to, 0x30 + (number % 10), 1);
}
