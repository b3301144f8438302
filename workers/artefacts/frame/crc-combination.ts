/**
 * The CRC-32 of bytes from the CRCs of their parts.
 *
 * A CRC is a polynomial over GF(2) modulo P (ISO 3309; RFC 1952, section 8). Bit 31 of the word represents x^0. The CRC
 * of A followed by n bytes B is crc(A) x^(8n) + crc(B) modulo P. The inversions at the beginning and end of the
 * register cancel out. (Method: M. Adler's `crc32_combine` of zlib.)
 */

/** P without x^32. */
const POLYNOMIAL = 0xedb88320;
const ONE = 0x8000_0000;
/** x^8. */
const BYTE = 0x0080_0000;

/**
 * Makes the CRC-32 of two byte strings, one after the other, from the CRC-32 of each. All second parts have one length.
 *
 * The sum is its own inverse. So it also makes the CRC-32 of the second part from those of the first part and of the
 * whole.
 */
export function crc32Combiner(nextLengthBytes: number): (crc: number, nextCrc: number) => number {
  let power = BYTE;
  let shift = ONE;
  for (let rest = nextLengthBytes; rest > 0; rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) shift = product(shift, power);
    power = product(power, power);
  }
  return (crc, nextCrc) => (product(crc, shift) ^ nextCrc) >>> 0;
}

/** The product of two polynomials, modulo P. */
function product(one: number, other: number): number {
  let sum = 0;
  let multiple = other;
  for (let bit = ONE; bit !== 0; bit >>>= 1) {
    if ((one & bit) !== 0) sum ^= multiple;
    multiple = (multiple & 1) === 0 ? multiple >>> 1 : (multiple >>> 1) ^ POLYNOMIAL;
  }
  return sum >>> 0;
}
