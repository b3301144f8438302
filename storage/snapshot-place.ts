import { type FileSystem, readFully, type StoreFile } from "./file-system.js";
import type { LogStart } from "./log-options.js";
import {
  isContentIntact,
  isRecordHeader,
  LOG_RECORD_TYPE,
  MAXIMUM_RECORD_BYTES,
  RECORD_HEADER_BYTES,
  readRecordHeader,
  recordLength,
  sealOf,
} from "./record-format.js";
import { readSegmentHeader, segmentBaseOf, segmentName } from "./segment.js";
import { type LogPosition, type SegmentSalt, SnapshotError, type SnapshotHead } from "./snapshot-format.js";

/**
 * Holds a snapshot against the log: it is of this very log when every segment that it knows is there with its salt, no other one lies
 * before its position, and the record at its position stands there byte for byte. Gives where the log goes on behind it.
 *
 * @throws {SnapshotError} It is not of this log, or the log ends before its position, or was begun anew before it.
 */
export async function placeInLog(
  fileSystem: FileSystem,
  directory: string,
  { position, timeUs, segments }: Omit<SnapshotHead, "sections">,
): Promise<LogStart> {
  const bases = new Set(await segmentBases(fileSystem, directory));
  for (const { base, salt } of segments) {
    if (!bases.delete(base)) throw new SnapshotError(`segment ${segmentName(base)}, which it knows, is not there`);
    if ((await saltOf(fileSystem, directory, base)) !== salt) {
      throw new SnapshotError(`segment ${segmentName(base)} is another one than it knows`);
    }
  }
  // What recovery moved out of the position's segment, it moved into one with a base at or below the sequence number.
  for (const base of bases) {
    if (base <= position.sequence) throw new SnapshotError(`it does not know segment ${segmentName(base)}`);
  }
  const own = segments.at(-1);
  if (own === undefined || own.base !== position.segmentBase) {
    throw new SnapshotError("its position lies in no segment that it knows");
  }
  return await withFile(fileSystem, directory, own.base, (file) => recordAt(file, own, position, timeUs));
}

/** Bases of all segments in the folder, ascending. */
export async function segmentBases(fileSystem: FileSystem, directory: string): Promise<number[]> {
  const entries = await fileSystem.readDirectory(directory);
  const bases = entries.map(({ name, isDirectory }) => (isDirectory ? undefined : segmentBaseOf(name)));
  return bases.filter((base) => base !== undefined).sort((a, b) => a - b);
}

/** Null when the segment's header is not readable. */
function saltOf(fileSystem: FileSystem, directory: string, base: number): Promise<number | null> {
  return withFile(fileSystem, directory, base, async (file) => {
    const { header } = await readSegmentHeader(file);
    return header?.base === base ? header.salt : null;
  });
}

async function withFile<T>(
  fileSystem: FileSystem,
  directory: string,
  base: number,
  use: (file: StoreFile) => Promise<T>,
): Promise<T> {
  const file = await fileSystem.open(`${directory}/${segmentName(base)}`, "read");
  try {
    return await use(file);
  } finally {
    await file.close();
  }
}

async function recordAt(
  file: StoreFile,
  { base, salt }: SegmentSalt,
  { sequence, offset, headerCrc }: LogPosition,
  timeUs: number,
): Promise<LogStart> {
  const headerBytes = new Uint8Array(RECORD_HEADER_BYTES);
  const headerView = new DataView(headerBytes.buffer);
  const isThere =
    (await readFully(file, headerBytes, offset)) === RECORD_HEADER_BYTES &&
    isRecordHeader(headerBytes, headerView, 0, salt, offset) &&
    sealOf(headerView, 0) === headerCrc;
  if (!isThere) throw new SnapshotError("the log does not have the record at its position");
  const header = readRecordHeader(headerView, 0);
  const length = recordLength(header.indexLength, header.bodyLength);
  if (header.sequence !== sequence || length > MAXIMUM_RECORD_BYTES) {
    throw new SnapshotError("the record at its position is another one");
  }
  const bytes = new Uint8Array(length);
  if ((await readFully(file, bytes, offset)) < length || !isContentIntact(bytes, 0, header)) {
    throw new SnapshotError("the record at its position is damaged");
  }
  const isMark = header.type === LOG_RECORD_TYPE.mark;
  return {
    sequence,
    segmentBase: base,
    offset: offset + length,
    timeUs,
    claimedSequence: header.durableUpTo,
    lastDataSequence: isMark ? sequence - 1 : sequence,
  };
}
