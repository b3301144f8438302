/** Random edits of bytes, as a disk, a line or a wicked writer makes them. Each gives new bytes and leaves its argument as it is. */
import type { Random } from "../../../core/random.js";

/** Where a length, a count or a number of 32 bits goes wrong most: at its ends, and where signs, alignments and limits change. */
const EXTREMES = [0, 1, 7, 8, 0x7f, 0xff, 0xffff, 0x1_0000, 1 << 20, 32 << 20, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];

export function bitFlipped(random: Random, bytes: Uint8Array): Uint8Array {
  const copy = bytes.slice();
  if (copy.length > 0) copy[random.integer(0, copy.length - 1)]! ^= 1 << random.integer(0, 7);
  return copy;
}

export function byteSet(random: Random, bytes: Uint8Array): Uint8Array {
  const copy = bytes.slice();
  if (copy.length > 0) copy[random.integer(0, copy.length - 1)] = random.integer(0, 255);
  return copy;
}

export function truncated(random: Random, bytes: Uint8Array): Uint8Array {
  return bytes.slice(0, random.integer(0, bytes.length));
}

/** Zeros as a file system shows them where nothing was written, or anything at all. */
export function overwritten(random: Random, bytes: Uint8Array): Uint8Array {
  const copy = bytes.slice();
  const at = random.integer(0, copy.length);
  const part = copy.subarray(at, at + random.integer(1, 64));
  if (random.chance(0.5)) part.fill(0);
  else part.set(random.bytes(part.length));
  return copy;
}

export function extended(random: Random, bytes: Uint8Array): Uint8Array {
  const tail = random.chance(0.5) ? new Uint8Array(random.integer(1, 200)) : random.bytes(random.integer(1, 200));
  return Buffer.concat([bytes, tail]);
}

/** A part repeated, moved or cut out, on steps of `alignment` bytes or anywhere. */
export function rearranged(random: Random, bytes: Uint8Array, alignment: number): Uint8Array {
  const step = random.chance(0.5) ? alignment : 1;
  const place = (): number => Math.min(bytes.length, random.integer(0, Math.floor(bytes.length / step)) * step);
  const [from, end] = [place(), place()].sort((left, right) => left - right) as [number, number];
  const part = bytes.subarray(from, end);
  const rest = random.chance(0.5) ? bytes : Buffer.concat([bytes.subarray(0, from), bytes.subarray(end)]);
  if (random.chance(0.3)) return Uint8Array.from(rest);
  const at = Math.min(place(), rest.length);
  return Buffer.concat([rest.subarray(0, at), part, rest.subarray(at)]);
}

/** The begin of one and the end of another. */
export function spliced(random: Random, bytes: Uint8Array, other: Uint8Array): Uint8Array {
  return Buffer.concat([truncated(random, bytes), other.subarray(random.integer(0, other.length))]);
}

/** A 32-bit integer, in either byte order, at an extreme. */
export function extremeSet(random: Random, bytes: Uint8Array): Uint8Array {
  const copy = bytes.slice();
  if (copy.length < 4) return copy;
  const at = random.integer(0, copy.length - 4);
  const value = random.pick(EXTREMES) - (random.chance(0.2) ? 1 : 0);
  new DataView(copy.buffer).setUint32(at, value >>> 0, random.chance(0.5));
  return copy;
}

/** One of the above. */
export function mutatedBytes(
  random: Random,
  bytes: Uint8Array,
  other: Uint8Array,
  alignment = 8,
): { bytes: Uint8Array; how: string } {
  const [how, mutate] = random.pick<[string, () => Uint8Array]>([
    ["bit flipped", () => bitFlipped(random, bytes)],
    ["byte set", () => byteSet(random, bytes)],
    ["truncated", () => truncated(random, bytes)],
    ["overwritten", () => overwritten(random, bytes)],
    ["extended", () => extended(random, bytes)],
    ["rearranged", () => rearranged(random, bytes, alignment)],
    ["spliced", () => spliced(random, bytes, other)],
    ["extreme", () => extremeSet(random, bytes)],
  ]);
  return { bytes: mutate(), how };
}
