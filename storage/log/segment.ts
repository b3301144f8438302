/**
 * A segment is one file of the log, `<base, 16 digits>.seg`. The base is the sequence number of its first record. A segment holds a header, an
 * opening state, then records in order of their sequence numbers, from the base on. Its records end before the next segment's base: what follows them
 * does not count, because recovery has superseded it.
 *
 * The header is written twice, so that damage in one place does not make the whole segment unreadable:
 *
 * | offset | size | field | |
 * |---|---|---|---|
 * | 0 | 8 | magic | bytes `49 52 53 4c 4f 47 53 31` ("IRSLOGS1") |
 * | 8 | 4 | format version | 1 |
 * | 12 | 4 | salt | random; the CRC of every record header of the segment starts from it |
 * | 16 | 8 | base | two u32, low first |
 * | 24 | 4 | reserved | 0 |
 * | 28 | 4 | CRC-32 of bytes 0 to 27 | |
 * | 32 | 32 | the same again | |
 *
 * The first record is at offset 64.
 *
 * A segment gets its name only when its header, its opening state and everything before it are durable (temporary file, fdatasync, rename, folder
 * fsync). So a segment's name proves everything before its base, and a crash cannot leave a segment with a damaged or cut header.
 */
import { crc32 } from "node:zlib";
import bin from "typed-binary";
import { isRepeatable } from "../disk/file-system-error.js";
import type { FileSystem, StoreFile } from "../disk/file-system-interface.js";
import { readFully, TEMPORARY_SUFFIX, writeFully } from "../disk/whole-files.js";
import { StorageError } from "../storage-error.js";
import type { RecordContent } from "./log-options.js";
import {
  LOG_RECORD_TYPE,
  MAXIMUM_BODY_BYTES,
  MAXIMUM_INDEX_BYTES,
  RECORD_FLAG_MUST_UNDERSTAND,
  RECORD_HEADER_BYTES,
  recordLength,
  writeRecordHeader,
} from "./record-format.js";

export const SEGMENT_FORMAT_VERSION = 1;
export const SEGMENT_HEADER_BYTES = 64;
const COPY_BYTES = SEGMENT_HEADER_BYTES / 2;
const CRC_OFFSET = 28;
/** "IRSL" and "OGS1", read as little-endian u32. */
const MAGIC_LOW = 0x4c535249;
const MAGIC_HIGH = 0x3153474f;
const HIGH = 0x1_0000_0000;
/** More records than a segment can have: its default size and the largest group at its end have room for 24 million. */
const MOST_RECORDS = 2 ** 25;

const HEADER = bin.object({
  magicLow: bin.u32,
  magicHigh: bin.u32,
  version: bin.u32,
  salt: bin.u32,
  baseLow: bin.u32,
  baseHigh: bin.u32,
  reserved: bin.u32,
  crc: bin.u32,
});

export interface SegmentHeader {
  version: number;
  salt: number;
  base: number;
}

const SEGMENT_NAME = /^(\d{16})\.seg$/;

export function segmentName(base: number): string {
  return `${String(base).padStart(16, "0")}.seg`;
}

/** The base of a segment's file name; undefined for any other name. */
export function segmentBaseOf(name: string): number | undefined {
  const match = SEGMENT_NAME.exec(name);
  return match === null ? undefined : Number(match[1]);
}

/**
 * The base of a new segment after one whose count of records nobody knows. It is so high that no sequence number is
 * used twice. It is a round number: by that, later starts see that the sequence numbers in between were never used.
 */
export function baseBehindUnknownEnd(base: number, sizeBytes: number): number {
  const most = Math.max(MOST_RECORDS, Math.ceil(sizeBytes / RECORD_HEADER_BYTES));
  return Math.ceil((base + most) / MOST_RECORDS) * MOST_RECORDS;
}

export function isBaseBehindUnknownEnd(base: number): boolean {
  return base % MOST_RECORDS === 0;
}

export function encodeSegmentHeader(header: SegmentHeader): Uint8Array {
  const bytes = new Uint8Array(SEGMENT_HEADER_BYTES);
  const view = new DataView(bytes.buffer);
  HEADER.write(new bin.BufferWriter(bytes.buffer, { endianness: "little" }), {
    magicLow: MAGIC_LOW,
    magicHigh: MAGIC_HIGH,
    version: header.version,
    salt: header.salt,
    baseLow: header.base % HIGH,
    baseHigh: Math.floor(header.base / HIGH),
    reserved: 0,
    crc: 0,
  });
  view.setUint32(CRC_OFFSET, crc32(bytes.subarray(0, CRC_OFFSET)), true);
  bytes.copyWithin(COPY_BYTES, 0, COPY_BYTES);
  return bytes;
}

/** What the two copies of a segment's header say. `header` is null when neither is intact. */
export interface SegmentHeaderReading {
  header: SegmentHeader | null;
  /** 0 or 1 when that copy is damaged and the other one is intact. */
  damagedCopy: 0 | 1 | null;
}

export function decodeSegmentHeader(bytes: Uint8Array): SegmentHeaderReading {
  const [first, second] = [decodeCopy(bytes, 0), decodeCopy(bytes, 1)];
  if (first === null) return { header: second, damagedCopy: second === null ? null : 0 };
  const same = second !== null && second.salt === first.salt && second.base === first.base;
  return { header: first, damagedCopy: same ? null : 1 };
}

function decodeCopy(bytes: Uint8Array, copy: 0 | 1): SegmentHeader | null {
  const at = copy * COPY_BYTES;
  if (bytes.length < at + COPY_BYTES) return null;
  const header = HEADER.read(
    new bin.BufferReader(bytes.buffer as ArrayBuffer, { endianness: "little", byteOffset: bytes.byteOffset + at }),
  );
  if (header.magicLow !== MAGIC_LOW || header.magicHigh !== MAGIC_HIGH) return null;
  if (header.crc !== crc32(bytes.subarray(at, at + CRC_OFFSET))) return null;
  return { version: header.version, salt: header.salt, base: header.baseHigh * HIGH + header.baseLow };
}

/** Reads and judges the header of an open segment file. */
export async function readSegmentHeader(file: StoreFile): Promise<SegmentHeaderReading> {
  const bytes = new Uint8Array(SEGMENT_HEADER_BYTES);
  const count = await readFully(file, bytes, 0);
  return decodeSegmentHeader(bytes.subarray(0, count));
}

/** @throws StorageError `format_unsupported` for a segment of a format that this release does not read */
export function assertReadableVersion(header: SegmentHeader, name: string): void {
  if (header.version === SEGMENT_FORMAT_VERSION) return;
  throw new StorageError(
    "format_unsupported",
    `segment ${name} has format version ${header.version}, but this release reads version ${SEGMENT_FORMAT_VERSION}: ` +
      "open the store with the release that wrote it, or a newer one",
    { segment: name, version: header.version, readable: SEGMENT_FORMAT_VERSION },
  );
}

/** A segment that is open for appending. */
export interface WritableSegment {
  base: number;
  salt: number;
  path: string;
  file: StoreFile;
  /** Offset of the next record. */
  endOffset: number;
}

export interface SegmentPlan {
  base: number;
  salt: number;
  openingState: RecordContent;
  /** Time of the opening state's record: the largest so far, or the time to which the clock was reset. */
  timeUs: number;
}

/** The segment that comes next; `start` is its first bytes. */
export interface Rotation {
  base: number;
  salt: number;
  start: Uint8Array;
}

/** Header and opening state: the first bytes of a new segment. */
export function encodeSegmentStart(plan: SegmentPlan): Uint8Array {
  const { base, salt, openingState, timeUs } = plan;
  const { index, body } = openingState;
  assertContentFits("the opening state", index.length, body.length);
  const bytes = new Uint8Array(SEGMENT_HEADER_BYTES + recordLength(index.length, body.length));
  bytes.set(encodeSegmentHeader({ version: SEGMENT_FORMAT_VERSION, salt, base }));
  bytes.set(index, SEGMENT_HEADER_BYTES + RECORD_HEADER_BYTES);
  bytes.set(body, SEGMENT_HEADER_BYTES + RECORD_HEADER_BYTES + index.length);
  const header = {
    type: LOG_RECORD_TYPE.openingState,
    flags: RECORD_FLAG_MUST_UNDERSTAND,
    sequence: base - 1,
    durableUpTo: base - 1,
    timeUs,
    indexLength: index.length,
    bodyLength: body.length,
  };
  writeRecordHeader(bytes, new DataView(bytes.buffer), SEGMENT_HEADER_BYTES, header, salt, SEGMENT_HEADER_BYTES);
  return bytes;
}

/**
 * Creates a segment durably under its name, replacing a file of that name. Everything before its base must be durable already.
 *
 * @param fill writes more records after the opening state and returns the new end offset; they become durable with the rest
 */
export async function createSegment(
  fileSystem: FileSystem,
  directory: string,
  base: number,
  salt: number,
  start: Uint8Array,
  fill?: (file: StoreFile, path: string, endOffset: number) => Promise<number>,
): Promise<WritableSegment> {
  const path = `${directory}/${segmentName(base)}`;
  const temporary = `${path}${TEMPORARY_SUFFIX}`;
  const created = await fileSystem.open(temporary, "createOrUpdate");
  let endOffset = start.length;
  try {
    await created.truncate(0);
    await writeFully(created, start, 0, temporary);
    if (fill !== undefined) endOffset = await fill(created, temporary, endOffset);
    await created.datasync();
  } finally {
    await created.close();
  }
  await fileSystem.rename(temporary, path);
  await fileSystem.syncDirectory(directory);
  // Opened again, so that an error names the final file.
  return { base, salt, path, file: await fileSystem.open(path, "update"), endOffset };
}

/**
 * Writes the bytes at `offset`. If room or memory is lacking, it cuts off what the write left. That gives the room
 * back, and the same write can be made again.
 *
 * @throws FileSystemError
 */
export async function writeOrCutBack(segment: WritableSegment, bytes: Uint8Array, offset: number): Promise<void> {
  try {
    await writeFully(segment.file, bytes, offset, segment.path);
  } catch (error) {
    if (isRepeatable(error)) await cutBack(segment, offset);
    throw error;
  }
}

async function cutBack(segment: WritableSegment, endOffset: number): Promise<void> {
  try {
    await segment.file.truncate(endOffset);
  } catch (error) {
    // Some file systems need room to truncate. Then the next attempt overwrites what is left.
    if (!isRepeatable(error)) throw error;
  }
}

/** @throws StorageError `record_too_large` when a part is over the limits of the format */
export function assertContentFits(what: string, indexLength: number, bodyLength: number): void {
  if (indexLength <= MAXIMUM_INDEX_BYTES && bodyLength <= MAXIMUM_BODY_BYTES) return;
  throw new StorageError(
    "record_too_large",
    `${what} is too large: its index section has ${indexLength} bytes (at most ${MAXIMUM_INDEX_BYTES}), its body ${bodyLength} ` +
      `bytes (at most ${MAXIMUM_BODY_BYTES})`,
    {
      index_bytes: indexLength,
      maximum_index_bytes: MAXIMUM_INDEX_BYTES,
      body_bytes: bodyLength,
      maximum_body_bytes: MAXIMUM_BODY_BYTES,
    },
  );
}
