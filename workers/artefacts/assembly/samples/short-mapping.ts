/** Maps heights and luminance of 16 bits to the samples of a PNG, whose bytes are in big-endian order. */
import { i32At } from "../linear-memory";

/**
 * Copies raw values as they are, except codes (i32), which become 0. It takes eight at a time: up to 14 bytes after the
 * samples are overwritten.
 */
export function swapSamples(raw: usize, count: i32, codes: usize, codeCount: i32, samples: usize): void {
  for (let at = 0; at < count; at += 8) {
    let values = v128.load(raw + (at << 1));
    for (let nth = 0; nth < codeCount; nth++) {
      values = v128.andnot(values, i16x8.eq(values, i16x8.splat(<i16>i32At(codes, nth))));
    }
    const bytes = v128.shuffle<i8>(values, values, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
    v128.store(samples + (at << 1), bytes);
  }
}

/** Looks each raw value up in a table of samples, whose two bytes are exchanged already. */
export function mapByTable(raw: usize, count: i32, table: usize, samples: usize): void {
  for (let at = 0; at < count; at++) {
    const value = <i32>load<u16>(raw + (at << 1));
    store<u16>(samples + (at << 1), load<u16>(table + (value << 1)));
  }
}

/** Sets the byte of each value that occurs. */
export function markValues(raw: usize, count: i32, seen: usize): void {
  for (let at = 0; at < count; at++) store<u8>(seen + <usize>load<u16>(raw + (at << 1)), 1);
}

/** Maps luminance to 8 bits, sixteen at a time: shifted down, at most 255. */
export function mapLuminance(raw: usize, count: i32, shift: i32, samples: usize): void {
  const most = i16x8.splat(255);
  let at = 0;
  for (; at + 16 <= count; at += 16) {
    const first = i16x8.min_u(i16x8.shr_u(v128.load(raw + (at << 1)), shift), most);
    const second = i16x8.min_u(i16x8.shr_u(v128.load(raw + (at << 1), 16), shift), most);
    v128.store(samples + at, i8x16.narrow_i16x8_u(first, second));
  }
  for (; at < count; at++) {
    const sample = <i32>load<u16>(raw + (at << 1)) >> shift;
    store<u8>(samples + at, <u8>min(sample, 255));
  }
}
