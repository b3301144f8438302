import type { Random } from "../../../../core/random.js";
import {
  isContentIntact,
  isRecordHeader,
  RECORD_ALIGNMENT_BYTES,
  RECORD_HEADER_BYTES,
  readRecordHeader,
  recordLength,
} from "../../../../storage/log/record-format.js";
import { decodeSegmentHeader, SEGMENT_HEADER_BYTES } from "../../../../storage/log/segment.js";
import type { SimulatedDisk } from "../../disk/simulated-disk.js";
import { viewOf } from "../segment-bytes.js";

const SECTOR_BYTES = 512;
const KINDS = ["bits", "bits", "sector", "stray", "sectors", "cut", "cut", "removal"] as const;

export interface StoreDamage {
  path: string;
  what: string;
  /** Null for a file that is gone. */
  after: Uint8Array | null;
  before: Uint8Array;
}

/**
 * Damages one file of a store somewhere: flipped bits, a sector of zeros or a run of them, another file's sector, an end cut off, or the
 * whole file gone.
 *
 * @param lengthOf how much of a file matters; 0: nothing
 * @returns what was done, and to which file; null when nothing changed
 */
export function damageDisk(
  disk: SimulatedDisk,
  random: Random,
  lengthOf: (path: string) => number,
): StoreDamage | null {
  const candidates = disk.paths().filter((path) => lengthOf(path) > 0);
  if (candidates.length === 0) return null;
  const path = random.pick(candidates);
  const before = disk.bytesOf(path);
  let bytes = before.slice();
  const length = lengthOf(path);
  const kind = random.pick(KINDS);
  const at = random.integer(0, length - 1);
  const sector = at - (at % SECTOR_BYTES);
  const end = Math.min(length, sector + SECTOR_BYTES);
  if (kind === "removal") {
    disk.removeFile(path);
    return { path, what: `removal of ${path}`, before, after: null };
  }
  let place = `${sector}`;
  if (kind === "bits") {
    place = "some of";
    for (let bits = random.integer(1, 3); bits > 0; bits--)
      bytes[random.integer(0, length - 1)]! ^= 1 << random.integer(0, 7);
  } else if (kind === "sector") {
    bytes.fill(0, sector, end);
  } else if (kind === "sectors") {
    const last = random.chance(0.5) ? length : Math.min(length, end + random.integer(0, 8) * SECTOR_BYTES);
    // Within a sector too: what a file system had given the file no place for begins anywhere.
    const from = random.chance(0.5) ? sector : at;
    bytes.fill(0, from, last);
    place = `${from} to ${last}`;
  } else if (kind === "cut") {
    // Around the header of a segment, and anywhere.
    const size = random.chance(0.3) ? Math.min(at, random.integer(0, 130)) : at;
    bytes = bytes.slice(0, size);
    place = `${size}`;
  } else {
    bytes.set(disk.bytesOf(random.pick(candidates)).subarray(0, end - sector), sector);
  }
  if (Buffer.compare(before, bytes) === 0) return null;
  disk.setBytes(path, bytes);
  return { path, what: `${kind} at ${place} in ${path}, which had ${before.length} bytes`, before, after: bytes };
}

export interface LossContext {
  /** Bases of all segments before the damage, ascending. */
  bases: readonly number[];
  /** The last record that a hint file which is there still has; 0 without one. */
  hintedSequence: number;
  /** Bases of segments whose first records the segment before still has, from before a recovery moved them. */
  doubled: ReadonlySet<number>;
  /** Captures or quarantine have a file: there was a log. */
  hasOtherFiles: boolean;
}

export function baseOf(path: string): number {
  return Number(/(\d+)\.seg$/.exec(path)?.[1]);
}

/** The segments of the store that belong in `LossContext.doubled`. */
export function doubledSegments(disk: SimulatedDisk): Set<number> {
  const paths = disk.paths().filter((path) => path.endsWith(".seg"));
  const isDoubled = (nth: number): boolean => {
    const base = baseOf(paths[nth] as string);
    return headersIn(disk.bytesOf(paths[nth - 1] as string)).some(({ sequence }) => sequence >= base);
  };
  return new Set(paths.filter((_, nth) => nth > 0 && isDoubled(nth)).map(baseOf));
}

function isHeader(segment: Uint8Array, offset: number): boolean {
  const salt = decodeSegmentHeader(segment).header?.salt;
  if (salt === undefined || offset + RECORD_HEADER_BYTES > segment.length) return false;
  return isRecordHeader(segment, viewOf(segment), offset, salt, offset);
}

interface PlacedHeader {
  offset: number;
  /** The end of the whole record; beyond the segment's end where the rest of the record was torn off. */
  end: number;
  sequence: number;
  durableUpTo: number;
  /** The whole record is there, not only its header. */
  isWhole: boolean;
}

/**
 * All intact record headers, wherever they stand: after what a crash has torn there are zeros, parts of records, and whole ones that count for
 * nothing.
 */
function headersIn(segment: Uint8Array): PlacedHeader[] {
  const headers: PlacedHeader[] = [];
  for (let offset = SEGMENT_HEADER_BYTES; offset < segment.length; ) {
    if (!isHeader(segment, offset)) {
      offset += RECORD_ALIGNMENT_BYTES;
      continue;
    }
    const header = readRecordHeader(viewOf(segment), offset);
    const { sequence, durableUpTo } = header;
    const end = offset + recordLength(header.indexLength, header.bodyLength);
    const isWhole = end <= segment.length && isContentIntact(segment, offset, header);
    headers.push({ offset, end, sequence, durableUpTo, isWhole });
    offset = end;
  }
  return headers;
}

/**
 * True when all that was damaged is one of the two copies of a segment's header, and it is there no more: a recovery has since
 * written the header anew from the other copy.
 *
 * @param countsForNothing whether the rest of the damage is none that anything can tell, such as a last record that a recovery has cut as a torn tail
 */
export function isHealed(
  disk: SimulatedDisk,
  { path, before, after }: StoreDamage,
  countsForNothing: (rest: StoreDamage) => boolean,
): boolean {
  if (!path.endsWith(".seg") || after === null || decodeSegmentHeader(after).header === null) return false;
  const headerBefore = before.subarray(0, SEGMENT_HEADER_BYTES);
  const headerAfter = after.subarray(0, SEGMENT_HEADER_BYTES);
  const rest = Buffer.concat([headerBefore, after.subarray(SEGMENT_HEADER_BYTES)]);
  if (Buffer.compare(before, rest) !== 0 && !countsForNothing({ path, before, after: rest, what: "the rest" }))
    return false;
  if (Buffer.compare(headerBefore, headerAfter) === 0) return false;
  const now = disk.has(path) ? disk.bytesOf(path).subarray(0, SEGMENT_HEADER_BYTES) : undefined;
  return now === undefined || Buffer.compare(now, headerAfter) !== 0;
}

/**
 * What damage to a segment of a closed store must come to, by the bytes alone. `keptSequence`: the last one before the
 * damage. `isDamage` is false for the little that nothing can tell from what a crash leaves or from what never was: the newest segment
 * gone as a whole, or damaged after the last record that anything left says was durable. It is null where the segment before may stand
 * in for one that is gone: then nothing may be lost untold.
 */
export function expectedOfSegment(
  { path, before, after }: StoreDamage,
  { bases, hintedSequence, doubled, hasOtherFiles }: LossContext,
): { isDamage: boolean | null; keptSequence: number } {
  const base = baseOf(path);
  const keptSequence = base - 1;
  const hasHeader = after !== null && Buffer.compare(before.subarray(0, 64), after.subarray(0, 64)) === 0;
  if (doubled.has(base) && !hasHeader) return { isDamage: null, keptSequence };
  const nextBase = bases[bases.indexOf(base) + 1];
  const headers = headersIn(before);
  const isSame = (from: number, to: number): boolean =>
    after !== null && after.length >= to && Buffer.compare(before.subarray(from, to), after.subarray(from, to)) === 0;
  if (nextBase !== undefined) {
    // What an earlier recovery has moved into the next segment, or cut, counts for nothing here.
    const own = headers.filter(({ sequence }) => sequence < nextBase);
    return { isDamage: !isSame(0, own.at(-1)?.end ?? SEGMENT_HEADER_BYTES), keptSequence };
  }
  if (after === null) {
    const isKnown = bases.length === 1 && hasOtherFiles;
    return { isDamage: isKnown, keptSequence };
  }
  // Records must follow one another: an opening cuts a place that was never written, and all that stands behind it.
  const isNext = ({ offset, sequence, isWhole }: PlacedHeader, nth: number): boolean => {
    const last = headers[nth - 1];
    return isWhole && (last === undefined || (offset === last.end && sequence === last.sequence + 1));
  };
  const gap = headers.findIndex((header, nth) => !isNext(header, nth));
  const records = headers.slice(0, gap < 0 ? headers.length : gap).map(({ offset, end, sequence }) => {
    return { sequence, isIntact: isSame(offset, end) };
  });
  const [opening, ...others] = records;
  if (!isSame(0, SEGMENT_HEADER_BYTES) || !opening?.isIntact) return { isDamage: true, keptSequence };
  // A header counts even where the rest of its record is torn off.
  const claims = headers.map(({ offset, durableUpTo }) =>
    isSame(offset, offset + RECORD_HEADER_BYTES) ? durableUpTo : 0,
  );
  const proven = Math.max(keptSequence, hintedSequence, ...claims);
  const first = others.findIndex(({ isIntact }) => !isIntact);
  return {
    isDamage: others.some(({ sequence, isIntact }) => !isIntact && sequence <= proven),
    keptSequence: others[first - 1]?.sequence ?? (first < 0 ? (others.at(-1)?.sequence ?? keptSequence) : keptSequence),
  };
}
