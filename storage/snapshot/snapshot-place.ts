import { type RewrittenReading, readRewritten } from "../compaction/rewritten-segment.js";
import type { SegmentMoves } from "../compaction/segment-moves.js";
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

/** Where the log goes on behind a snapshot, and what has moved in it since. */
export interface PlaceInLog {
  start: LogStart;
  /** Of the segments that compaction has written anew. That their runs are the snapshot's is for who loads it to see. */
  moves: SegmentMoves[];
}

/**
 * Holds a snapshot against the log: it is of this very log when every segment that it knows is there, with its salt or written anew, no
 * other one lies before its position, and the record at its position stands there byte for byte, unless its segment was written anew.
 *
 * @throws {SnapshotError} It is not of this log, or the log ends before its position, or was begun anew before it.
 */
export async function placeInLog(
  fileSystem: FileSystem,
  directory: string,
  { position, timeUs, segments }: Omit<SnapshotHead, "sections">,
): Promise<PlaceInLog> {
  const all = await segmentBases(fileSystem, directory);
  const bases = new Set(all);
  const moves: SegmentMoves[] = [];
  let rewritten: RewrittenReading | null = null;
  for (const { base, salt } of segments) {
    if (!bases.delete(base)) throw new SnapshotError(`segment ${segmentName(base)}, which it knows, is not there`);
    rewritten = null;
    if ((await saltOf(fileSystem, directory, base)) === salt) continue;
    const nextBase = all[all.indexOf(base) + 1];
    if (nextBase === undefined) throw new SnapshotError(`segment ${segmentName(base)} is another one than it knows`);
    rewritten = await readRewritten(fileSystem, directory, base, nextBase, position.sequence);
    moves.push(rewritten.moves);
  }
  // What recovery moved out of the position's segment, it moved into one with a base at or below the sequence number.
  for (const base of bases) {
    if (base <= position.sequence) throw new SnapshotError(`it does not know segment ${segmentName(base)}`);
  }
  const own = segments.at(-1);
  if (own === undefined || own.base !== position.segmentBase) {
    throw new SnapshotError("its position lies in no segment that it knows");
  }
  if (rewritten !== null) return { start: startBehind(rewritten, position, timeUs), moves };
  const start = await withFile(fileSystem, `${directory}/${segmentName(own.base)}`, (file) =>
    recordAt(file, own, position, timeUs),
  );
  return { start, moves };
}

/**
 * Whether a snapshot was made of this log, however little is left of that: a segment that it knows is there, with its salt or written
 * anew, or nothing is there that says otherwise.
 */
export async function isOfLog(
  fileSystem: FileSystem,
  directory: string,
  { position, segments }: Pick<SnapshotHead, "position" | "segments">,
): Promise<boolean> {
  const unknown = new Set(await segmentBases(fileSystem, directory));
  let isAnother = false;
  for (const [nth, { base, salt }] of segments.entries()) {
    if (!unknown.delete(base)) continue;
    const found = await saltOf(fileSystem, directory, base).catch(() => null);
    if (found === null) continue;
    if (found === salt) return true;
    const nextBase = segments[nth + 1]?.base;
    if (nextBase !== undefined && (await isRewritten(fileSystem, directory, base, nextBase))) return true;
    isAnother = true;
  }
  return !isAnother && [...unknown].every((base) => base > position.sequence);
}

async function isRewritten(
  fileSystem: FileSystem,
  directory: string,
  base: number,
  nextBase: number,
): Promise<boolean> {
  try {
    await readRewritten(fileSystem, directory, base, nextBase, nextBase - 1);
    return true;
  } catch {
    return false;
  }
}

/** In a segment that is followed by another: what it claims is not asked. */
function startBehind({ offset, nextSequence }: RewrittenReading, position: LogPosition, timeUs: number): LogStart {
  const { sequence, segmentBase } = position;
  const known = { claimedSequence: sequence, lastDataSequence: sequence };
  return { sequence, segmentBase, offset, nextSequence, timeUs, ...known };
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
