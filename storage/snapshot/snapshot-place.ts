import type { FileSystem, StoreFile } from "../disk/file-system-interface.js";
import { readFully, withFile } from "../disk/whole-files.js";
import type { LogStart } from "../log/log-options.js";
import {
  isContentIntact,
  isRecordHeader,
  LOG_RECORD_TYPE,
  MAXIMUM_RECORD_BYTES,
  RECORD_HEADER_BYTES,
  readRecordHeader,
  recordLength,
  sealOf,
} from "../log/record-format.js";
import { readSegmentHeader, segmentBaseOf, segmentName } from "../log/segment.js";
import { type LogPosition, type SegmentSalt, SnapshotError, type SnapshotHead } from "./snapshot-format.js";

/**
 * Holds a snapshot against the log: it is of this very log when every segment that it knows is there with its salt, no other one lies before
 * its position, and the record at its position stands there byte for byte.
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
    if ((await saltOf(fileSystem, directory, base)) !== salt)
      throw new SnapshotError(`segment ${segmentName(base)} is another one than it knows`);
  }
  // What recovery moved out of the position's segment, it moved into one with a base at or below the sequence number.
  for (const base of bases) {
    if (base <= position.sequence) throw new SnapshotError(`it does not know segment ${segmentName(base)}`);
  }
  const own = segments.at(-1);
  if (own === undefined || own.base !== position.segmentBase) {
    throw new SnapshotError("its position lies in no segment that it knows");
  }
  return withFile(fileSystem, `${directory}/${segmentName(own.base)}`, (file) => recordAt(file, own, position, timeUs));
}

/**
 * Whether a snapshot was made of this log, however little is left of that: a segment that it knows is there with its salt, or nothing is
 * there that says otherwise.
 */
export async function isOfLog(
  fileSystem: FileSystem,
  directory: string,
  { position, segments }: Pick<SnapshotHead, "position" | "segments">,
): Promise<boolean> {
  const unknown = new Set(await segmentBases(fileSystem, directory));
  let isAnother = false;
  for (const { base, salt } of segments) {
    if (!unknown.delete(base)) continue;
    const found = await saltOf(fileSystem, directory, base).catch(() => null);
    if (found === null) continue;
    if (found === salt) return true;
    isAnother = true;
  }
  return !isAnother && [...unknown].every((base) => base > position.sequence);
}

/** Bases of all segments in the folder, ascending. */
export async function segmentBases(fileSystem: FileSystem, directory: string): Promise<number[]> {
  const entries = await fileSystem.readDirectory(directory);
  const bases = entries.map(({ name, isDirectory }) => (isDirectory ? undefined : segmentBaseOf(name)));
  return bases.filter((base) => base !== undefined).sort((a, b) => a - b);
}

/** Null when the segment's header is not readable. */
function saltOf(fileSystem: FileSystem, directory: string, base: number): Promise<number | null> {
  return withFile(fileSystem, `${directory}/${segmentName(base)}`, async (file) => {
    const { header } = await readSegmentHeader(file);
    return header?.base === base ? header.salt : null;
  });
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
    nextSequence: sequence + 1,
    timeUs,
    claimedSequence: header.durableUpTo,
    lastDataSequence: isMark ? sequence - 1 : sequence,
  };
}
