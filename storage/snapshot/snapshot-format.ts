/**
 * A snapshot: one file, `<sequence, 16 digits>.snap`, with the view and the recorder's state as the records up to that sequence number
 * add up to. It is never more than a shortcut: what the log says counts, and without the file everything is read from the log.
 *
 * The head, then the sections without a gap, to the last byte of the file. Integers are little-endian; a 53-bit integer is two u32,
 * low first; a column is its values as they lie in a typed array, little-endian too.
 *
 * | offset | size | field | |
 * |---|---|---|---|
 * | 0 | 8 | magic | bytes `49 52 53 53 4e 41 50 31` ("IRSSNAP1") |
 * | 8 | 4 | format version | 1: this table |
 * | 12 | 4 | content version | 4: which sections there are, and what they hold |
 * | 16 | 8 | sequence | the last record that is in it |
 * | 24 | 8 | time_us | the largest time of any record up to there |
 * | 32 | 8 | position | base of the segment that holds that record |
 * | 40 | 8 | | its offset there |
 * | 48 | 4 | | the CRC of its header |
 * | 52 | 4 | g | count of segments |
 * | 56 | 4 | n | count of sections |
 * | 60 | 4 | reserved | 0 |
 * | 64 | 12 g | segments | of each up to the position: base (8), salt (4) |
 * | … | 24 n | sections | of each: id (4), CRC-32 (4), offset (8), length in bytes (8) |
 * | … | 4 | CRC-32 of all before | |
 *
 * A format version that this release does not know is believed, unless the head matches its CRC with the version of this release in its
 * place: then the version was damaged, and nothing else. Of one that matches neither way it cannot be told: a later version may have its CRC
 * elsewhere.
 *
 * Example: sequence 7 at offset 176 of segment 1, header CRC 0xefbeadde, time 1,700,000,000,000,001 µs, one segment of salt
 * 0x12345678, one section of id 1 with the 4 bytes `01 02 03 04`:
 *
 *     495253534e415031 01000000 04000000 0700000000000000 01401e18240a0600 0100000000000000 b000000000000000
 *     deadbeef 01000000 01000000 00000000 0100000000000000 78563412
 *     01000000 cdfb3cb6 6800000000000000 0400000000000000 38414669 01020304
 */
import { crc32 } from "node:zlib";

export const SNAPSHOT_FORMAT_VERSION = 1;
/** Raised with every change of what a section holds: a snapshot of another version is made anew from the log. */
export const SNAPSHOT_CONTENT_VERSION = 4;
export const SNAPSHOT_FIXED_BYTES = 64;

const SEGMENT_BYTES = 12;
const SECTION_BYTES = 24;
const CRC_BYTES = 4;
/** "IRSS" and "NAP1", read as little-endian u32. */
const MAGIC_LOW = 0x53535249;
const MAGIC_HIGH = 0x3150414e;
const HIGH = 0x1_0000_0000;

/**
 * What is in a snapshot, by section: the id in the file and the type of its values. Only what cannot be worked out from the rest: hash
 * slots, bitmaps, lists and sorted blocks are built anew at open. The front reads the view's sections, the recorder its own.
 */
export const SNAPSHOT_SECTIONS = {
  /** The table of all runs by ordinal (view-runs.ts). */
  viewRunIds: { id: 1, Type: Uint32Array },
  viewRunPrograms: { id: 2, Type: Uint32Array },
  viewRunSerials: { id: 3, Type: Uint32Array },
  viewRunStates: { id: 4, Type: Uint8Array },
  viewRunTimes: { id: 5, Type: Float64Array },
  viewSerialBytes: { id: 6, Type: Uint8Array },
  viewSerialEnds: { id: 7, Type: Uint32Array },
  viewSegmentBases: { id: 8, Type: Float64Array },
  viewRecordSegments: { id: 9, Type: Uint32Array },
  viewRecordOffsets: { id: 10, Type: Uint32Array },
  viewRecordLengths: { id: 11, Type: Uint32Array },
  viewFrameIds: { id: 12, Type: Uint32Array },
  viewFrameRuns: { id: 13, Type: Uint32Array },
  viewRunProgramIds: { id: 14, Type: Uint32Array },
  /** Packed values (packed-values.ts). */
  viewPrograms: { id: 15, Type: Uint8Array },
  viewProgramIdsEver: { id: 16, Type: Uint32Array },
  viewCell: { id: 17, Type: Uint8Array },
  /** Records of runs that have not ended (kept-records.ts). */
  viewKeptRecords: { id: 18, Type: Uint8Array },
  /** Webhooks without their secrets (view-webhooks.ts), packed; and the table of deliveries by row (view-deliveries.ts). */
  viewWebhooks: { id: 19, Type: Uint8Array },
  viewDeliveryIds: { id: 20, Type: Uint32Array },
  viewDeliveryStatuses: { id: 21, Type: Uint8Array },
  viewDeliveryTimes: { id: 22, Type: Float64Array },
  viewDeliveryRuns: { id: 23, Type: Uint32Array },
  viewDeliveryRunIds: { id: 24, Type: Uint32Array },
  viewDeliveryWebhooks: { id: 25, Type: Uint32Array },
  viewDeliveryWebhookIds: { id: 26, Type: Uint32Array },
  viewDeliverySegmentBases: { id: 27, Type: Float64Array },
  viewDeliverySegments: { id: 28, Type: Uint32Array },
  viewDeliveryOffsets: { id: 29, Type: Uint32Array },
  viewDeliveryLengths: { id: 30, Type: Uint32Array },
  /** The recorder's state (recorder-state.ts), by order of arrival. */
  recorderRunIds: { id: 32, Type: Uint32Array },
  recorderRunStatuses: { id: 33, Type: Uint32Array },
  recorderFrameIds: { id: 34, Type: Uint32Array },
  recorderFrameRuns: { id: 35, Type: Uint32Array },
  recorderSerialBytes: { id: 36, Type: Uint8Array },
  recorderSerialEnds: { id: 37, Type: Uint32Array },
  recorderRevisions: { id: 38, Type: Uint32Array },
  recorderCaptures: { id: 39, Type: Float64Array },
  /** Packed values. */
  recorderFacts: { id: 40, Type: Uint8Array },
  recorderPrograms: { id: 41, Type: Uint8Array },
  recorderProducers: { id: 42, Type: Uint8Array },
  /** Records of runs that have not ended. */
  recorderKeptRecords: { id: 43, Type: Uint8Array },
  /** Packed values: webhooks with their secrets, and deliveries that have not come to their end. */
  recorderWebhooks: { id: 44, Type: Uint8Array },
  recorderDeliveries: { id: 45, Type: Uint8Array },
} as const;

export type SnapshotSection = keyof typeof SNAPSHOT_SECTIONS;
export type SectionValues<S extends SnapshotSection> = OfType<(typeof SNAPSHOT_SECTIONS)[S]["Type"]>;
type OfType<Type> = Type extends typeof Uint8Array
  ? Uint8Array
  : Type extends typeof Uint32Array
    ? Uint32Array
    : Float64Array;

/** Takes what a part of the store is made of, section by section; the parts of a section follow one another. */
export interface SnapshotSink {
  write<S extends SnapshotSection>(section: S, parts: Iterable<SectionValues<S>>): Promise<void>;
}

/** Gives it back, verified; each section in a buffer of its own. */
export interface SnapshotSource {
  /** @throws {SnapshotError} */
  read<S extends SnapshotSection>(section: S): Promise<SectionValues<S>>;
}

/** Why a snapshot is not to be used. Never a loss: everything is in the log. */
export class SnapshotError extends Error {
  override name = "SnapshotError";
}

/** A snapshot of a release that writes another version: no damage, and of no use to this one. */
export class SnapshotVersionError extends SnapshotError {
  override name = "SnapshotVersionError";
}

/** Where the log stood. */
export interface LogPosition {
  sequence: number;
  segmentBase: number;
  /** Of the record of that number, in its segment. */
  offset: number;
  headerCrc: number;
}

/** A segment and the salt that tells it from a rewritten one. */
export interface SegmentSalt {
  base: number;
  salt: number;
}

export interface SectionPlace {
  id: number;
  crc: number;
  offset: number;
  length: number;
}

export interface SnapshotHead {
  position: LogPosition;
  /** The largest time of any record up to the position. */
  timeUs: number;
  /** All up to the position's, ascending. */
  segments: SegmentSalt[];
  sections: SectionPlace[];
}

const SNAPSHOT_NAME = /^(\d{16})\.snap$/;

export function snapshotName(sequence: number): string {
  return `${String(sequence).padStart(16, "0")}.snap`;
}

/** The sequence number of a snapshot's file name; undefined for any other name. */
export function snapshotSequenceOf(name: string): number | undefined {
  const match = SNAPSHOT_NAME.exec(name);
  return match === null ? undefined : Number(match[1]);
}

/** Bytes of the whole head. */
export function snapshotHeadBytes(segmentCount: number, sectionCount: number): number {
  return SNAPSHOT_FIXED_BYTES + segmentCount * SEGMENT_BYTES + sectionCount * SECTION_BYTES + CRC_BYTES;
}

export function encodeSnapshotHead({ position, timeUs, segments, sections }: SnapshotHead): Uint8Array {
  const bytes = new Uint8Array(snapshotHeadBytes(segments.length, sections.length));
  const view = new DataView(bytes.buffer);
  const u53 = (at: number, value: number): void => {
    view.setUint32(at, value % HIGH, true);
    view.setUint32(at + 4, Math.floor(value / HIGH), true);
  };
  view.setUint32(0, MAGIC_LOW, true);
  view.setUint32(4, MAGIC_HIGH, true);
  view.setUint32(8, SNAPSHOT_FORMAT_VERSION, true);
  view.setUint32(12, SNAPSHOT_CONTENT_VERSION, true);
  u53(16, position.sequence);
  u53(24, timeUs);
  u53(32, position.segmentBase);
  u53(40, position.offset);
  view.setUint32(48, position.headerCrc, true);
  view.setUint32(52, segments.length, true);
  view.setUint32(56, sections.length, true);
  let at = SNAPSHOT_FIXED_BYTES;
  for (const { base, salt } of segments) {
    u53(at, base);
    view.setUint32(at + 8, salt, true);
    at += SEGMENT_BYTES;
  }
  for (const { id, crc, offset, length } of sections) {
    view.setUint32(at, id, true);
    view.setUint32(at + 4, crc, true);
    u53(at + 8, offset);
    u53(at + 16, length);
    at += SECTION_BYTES;
  }
  view.setUint32(at, crc32(bytes.subarray(0, at)), true);
  return bytes;
}

/**
 * Bytes of the whole head, by its first `SNAPSHOT_FIXED_BYTES`; they are verified only with the whole.
 * @param sizeBytes of the file: also what keeps a damaged count from asking for any amount of memory
 * @throws {SnapshotError} no snapshot, or of another version for sure
 */
export function headBytesOf(fixed: Uint8Array, sizeBytes = Number.POSITIVE_INFINITY): number {
  const view = new DataView(fixed.buffer, fixed.byteOffset, fixed.byteLength);
  if (fixed.length < SNAPSHOT_FIXED_BYTES) throw new SnapshotError("it is shorter than its head");
  if (view.getUint32(0, true) !== MAGIC_LOW || view.getUint32(4, true) !== MAGIC_HIGH) {
    throw new SnapshotError("it does not begin as a snapshot does");
  }
  const headBytes = snapshotHeadBytes(view.getUint32(52, true), view.getUint32(56, true));
  if (headBytes <= sizeBytes) return headBytes;
  // Where the rest of the head stands, its CRC too, is that version's own.
  if (view.getUint32(8, true) !== SNAPSHOT_FORMAT_VERSION) throw anotherVersion(view);
  throw new SnapshotError("it is shorter than its head");
}

/**
 * @param bytes the whole head, as long as `headBytesOf` says
 * @throws {SnapshotError} damaged, or of another version
 */
export function decodeSnapshotHead(bytes: Uint8Array): SnapshotHead {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const u53 = (at: number): number => view.getUint32(at + 4, true) * HIGH + view.getUint32(at, true);
  const crcAt = bytes.length - CRC_BYTES;
  const crc = view.getUint32(crcAt, true);
  if (view.getUint32(8, true) !== SNAPSHOT_FORMAT_VERSION) {
    throw crc === crcOfOwnVersion(bytes.subarray(0, crcAt)) ? damagedVersion(view) : anotherVersion(view);
  }
  if (crc !== crc32(bytes.subarray(0, crcAt))) {
    throw new SnapshotError("its head does not match its CRC");
  }
  if (view.getUint32(12, true) !== SNAPSHOT_CONTENT_VERSION) throw anotherVersion(view);
  const segmentCount = view.getUint32(52, true);
  const sectionCount = view.getUint32(56, true);
  const sectionsAt = SNAPSHOT_FIXED_BYTES + segmentCount * SEGMENT_BYTES;
  return {
    position: {
      sequence: u53(16),
      segmentBase: u53(32),
      offset: u53(40),
      headerCrc: view.getUint32(48, true),
    },
    timeUs: u53(24),
    segments: Array.from({ length: segmentCount }, (_, nth) => {
      const at = SNAPSHOT_FIXED_BYTES + nth * SEGMENT_BYTES;
      return { base: u53(at), salt: view.getUint32(at + 8, true) };
    }),
    sections: Array.from({ length: sectionCount }, (_, nth) => {
      const at = sectionsAt + nth * SECTION_BYTES;
      return {
        id: view.getUint32(at, true),
        crc: view.getUint32(at + 4, true),
        offset: u53(at + 8),
        length: u53(at + 16),
      };
    }),
  };
}

/** Of a head, had it the format version of this release. */
function crcOfOwnVersion(head: Uint8Array): number {
  const own = head.slice();
  new DataView(own.buffer).setUint32(8, SNAPSHOT_FORMAT_VERSION, true);
  return crc32(own);
}

function damagedVersion(head: DataView): SnapshotError {
  const said = head.getUint32(8, true);
  return new SnapshotError(`it says format version ${said}, and the CRC of its head ${SNAPSHOT_FORMAT_VERSION}`);
}

function anotherVersion(head: DataView): SnapshotVersionError {
  return new SnapshotVersionError(
    `it has format version ${head.getUint32(8, true)} and content version ${head.getUint32(12, true)}; this release reads ` +
      `${SNAPSHOT_FORMAT_VERSION} and ${SNAPSHOT_CONTENT_VERSION}`,
  );
}
