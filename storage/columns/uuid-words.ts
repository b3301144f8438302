/**
 * UUIDs as four 32-bit words, most significant first, so that words compare like the canonical texts.
 *
 * Only the canonical lower-case form is read (8-4-4-4-12 hex digits). So a stored id formats back to exactly the text that came in, and any other
 * spelling is an unknown id.
 */
import { lowerBound } from "../../core/lower-bound.js";
import type { TypedColumn } from "./typed-column.js";

const TEXT_LENGTH = 36;

/** The value of a lower-case hex digit by its character code, 255 for anything else. */
const DIGIT_VALUES = new Uint8Array(128).fill(255);
for (let value = 0; value < 16; value++) DIGIT_VALUES[value.toString(16).charCodeAt(0)] = value;

/** Writes the four words of the 16 bytes at `from` to `words[0..3]`. */
export function readUuidWords(bytes: Uint8Array, from: number, words: Uint32Array): void {
  for (let word = 0, at = from; word < 4; word++, at += 4) {
    words[word] = (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
  }
}

/** Writes the four words of `text` to `words[at..at + 3]`; false, with nothing useful written, if it is no UUID. */
export function parseUuidWords(text: string, words: Uint32Array, at: number): boolean {
  if (text.length !== TEXT_LENGTH) return false;
  let digits = 0;
  let word = 0;
  for (let i = 0; i < TEXT_LENGTH; i++) {
    const code = text.charCodeAt(i);
    if (i === 8 || i === 13 || i === 18 || i === 23) {
      if (code !== 0x2d) return false;
      continue;
    }
    const value = code < 128 ? DIGIT_VALUES[code]! : 255;
    if (value === 255) return false;
    word = (word << 4) | value;
    if ((++digits & 7) === 0) words[at + (digits >>> 3) - 1] = word;
  }
  return true;
}

/** The row of the wanted id among rows that ascend, found by halves; -1 if it is not there. @param rowAt the row of four words at a place */
export function findUuidWords(
  wanted: Uint32Array,
  words: TypedColumn<Uint32Array>,
  length: number,
  rowAt = (place: number) => place,
): number {
  const place = lowerBound(0, length, (at) => compareUuidWords(wanted, words, rowAt(at)) > 0);
  return place < length && compareUuidWords(wanted, words, rowAt(place)) === 0 ? rowAt(place) : -1;
}

/** Above 0 if the wanted id is above the one in that row of four words, below 0 if below it. */
export function compareUuidWords(wanted: Uint32Array, words: TypedColumn<Uint32Array>, row: number): number {
  for (let word = 0; word < 4; word++) {
    const difference = wanted[word]! - words.get(row * 4 + word);
    if (difference !== 0) return difference;
  }
  return 0;
}
