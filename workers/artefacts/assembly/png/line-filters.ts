/**
 * Filters of PNG, and the checksum of the filtered bytes. `bpp` zero bytes come before a line: the filters read them as
 * the pixel before the first.
 */

export const SUB: i32 = 1;
export const UP: i32 = 2;
export const PAETH: i32 = 4;

/**
 * Writes the type and the filtered bytes at `out`. Up to 16 bytes after them are overwritten.
 *
 * @param pitch from the line above, in bytes
 */
export function filterLine(from: usize, pitch: i32, lineBytes: i32, bpp: i32, type: i32, out: usize): void {
  store<u8>(out, type);
  const to = out + 1;
  if (type === PAETH) {
    filterPaeth(from, <usize>pitch, lineBytes, <usize>bpp, to);
    return;
  }
  const before = from - <usize>(type === UP ? pitch : bpp);
  for (let at: usize = 0; at < <usize>lineBytes; at += 16) {
    v128.store(to + at, i8x16.sub(v128.load(from + at), v128.load(before + at)));
  }
}

/**
 * Gives the byte among left, above and above left that is nearest to left + above - above left. If two are equally
 * near, the first in this order counts.
 *
 * Each gap is held as its part above zero and its part below zero, so that bytes are enough. If both differences have
 * the same sign, their sum is never nearer than either of them, however large it is.
 */
function filterPaeth(from: usize, pitch: usize, lineBytes: i32, bpp: usize, to: usize): void {
  for (let at: usize = 0; at < <usize>lineBytes; at += 16) {
    const left = v128.load(from + at - bpp);
    const above = v128.load(from + at - pitch);
    const corner = v128.load(from + at - pitch - bpp);
    const leftUp = i8x16.sub_sat_u(left, corner);
    const leftDown = i8x16.sub_sat_u(corner, left);
    const aboveUp = i8x16.sub_sat_u(above, corner);
    const aboveDown = i8x16.sub_sat_u(corner, above);
    const up = i8x16.add_sat_u(leftUp, aboveUp);
    const down = i8x16.add_sat_u(leftDown, aboveDown);
    const leftGap = v128.or(aboveUp, aboveDown);
    const aboveGap = v128.or(leftUp, leftDown);
    const cornerGap = v128.or(i8x16.sub_sat_u(up, down), i8x16.sub_sat_u(down, up));
    const least = i8x16.min_u(aboveGap, cornerGap);
    const isLeft = i8x16.eq(i8x16.min_u(leftGap, least), leftGap);
    const predicted = v128.bitselect(left, v128.bitselect(above, corner, i8x16.eq(least, aboveGap)), isLeft);
    v128.store(to + at, i8x16.sub(v128.load(from + at), predicted));
  }
}

/** Adler-32 (RFC 1950), continued from `before`. */
export function adler32(bytes: i32, length: i32, before: u32): u32 {
  let a = before & 0xffff;
  let b = before >> 16;
  let at = <usize>bytes;
  let rest = length;
  const low = i8x16(16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1);
  while (rest >= 16) {
    // As many as fit before a sum could pass 2^32: 5552 bytes as in zlib, which are 347 times 16.
    const blocks = min(rest >> 4, 347);
    let sums = i32x4.splat(0);
    let weighted = i32x4.splat(0);
    let prefix = i32x4.splat(0);
    for (let nth = 0; nth < blocks; nth++) {
      const v = v128.load(at);
      prefix = i32x4.add(prefix, sums);
      sums = i32x4.add(sums, i32x4.extadd_pairwise_i16x8_u(i16x8.extadd_pairwise_i8x16_u(v)));
      const products = i16x8.add(i16x8.extmul_low_i8x16_u(v, low), i16x8.extmul_high_i8x16_u(v, low));
      weighted = i32x4.add(weighted, i32x4.extadd_pairwise_i16x8_u(products));
      at += 16;
    }
    const count = <u32>blocks * 16;
    b = (b + count * a + 16 * across(prefix) + across(weighted)) % 65521;
    a = (a + across(sums)) % 65521;
    rest -= <i32>count;
  }
  for (; rest > 0; rest--) {
    a = (a + load<u8>(at)) % 65521;
    b = (b + a) % 65521;
    at++;
  }
  return (b << 16) | a;
}

function across(v: v128): u32 {
  return <u32>(
    (i32x4.extract_lane(v, 0) + i32x4.extract_lane(v, 1) + i32x4.extract_lane(v, 2) + i32x4.extract_lane(v, 3))
  );
}
