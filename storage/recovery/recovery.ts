import { type FileSystem, type StoreFile, writeFully } from "../disk/file-system.js";
import { FAILS_WITHOUT_ROOM } from "../disk/write-room.js";
import type { LogOptions } from "../log/log-options.js";
import { quarantineBytes, setAside } from "../log/quarantine.js";
import { readRecordHeader, recordLength, sealRecordHeader } from "../log/record-format.js";
import { createSegment, encodeSegmentStart, segmentName, type WritableSegment } from "../log/segment.js";
import { StorageError } from "../storage-error.js";
import { type LogTail, type NewestSegment, walkLog } from "./log-walk.js";
import { type RecoveryReport, RecoveryReportBuilder } from "./recovery-report.js";
import { scanSegment } from "./segment-scan.js";

export interface RecoveredLog {
  segment: WritableSegment;
  report: RecoveryReport;
  /** All before it is durable now. */
  nextSequence: number;
  /** The largest number that a record on disk claims to be durable. */
  claimedSequence: number;
  /** The last record that is not a mark, when it lies behind `claimedSequence`; else that. */
  lastDataSequence: number;
}

/**
 * Reads the log by the decision table (recovery-table.ts), delivers what it holds, and leaves a segment to append to.
 *
 * A crash in here is harmless, and the next recovery comes to the same end: bytes are copied to the quarantine folder before anything
 * else is done about them, a new segment appears whole or not at all, and old bytes are cut only when the new segment has what was good
 * of them; until then the new segment's base says that they do not count.
 */
export async function recoverLog(options: LogOptions): Promise<RecoveredLog> {
  const { fileSystem, directory, quarantineDirectory, room = FAILS_WITHOUT_ROOM } = options;
  const builder = new RecoveryReportBuilder();
  const { report } = builder;
  report.snapshotSequence = options.from?.sequence ?? null;
  const end = await walkLog({
    fileSystem,
    directory,
    firstSequence: options.firstSequence ?? 1,
    understandsType: (type) => options.understandsType(type),
    builder,
    from: options.from,
    evidence: options.evidence,
    onRecords: (batch) => options.onRecords(batch),
    quarantine: (segment, file, offset, lengthBytes) =>
      room.attempt(() => quarantineBytes(fileSystem, quarantineDirectory, segment, file, offset, lengthBytes)),
    deliversTail: false,
  });
  // A process that was killed amid a recovery may have left names there in the cache only, and what they tell of is cut off the log next.
  await fileSystem.syncDirectory(quarantineDirectory);
  for (const name of end.temporaryFiles) await fileSystem.unlink(`${directory}/${name}`);
  for (const name of end.strays) await setAside(fileSystem, directory, quarantineDirectory, name);
  // What took the place of these bytes may have its name in the cache only, where a process was killed amid a recovery.
  if (end.superseded.length > 0) await fileSystem.syncDirectory(directory);
  for (const { name, sizeBytes } of end.superseded) await shorten(fileSystem, `${directory}/${name}`, sizeBytes);
  // A process that was killed behind the cut that it had begun the newest segment for has it in the cache only.
  if (end.beforeNewest !== null)
    await shorten(fileSystem, `${directory}/${end.beforeNewest}`, Number.POSITIVE_INFINITY);

  const { newest } = end;
  if (newest === null) builder.decided("no_segment");
  if (newest?.isContinuable && newest.tail.onlyMarks && newest.salt !== null) {
    if (newest.tail.endOffset > newest.tail.offset) builder.decided("tail_marks");
    return await continueSegment(options, newest, newest.salt, report);
  }
  return await beginSegment(options, newest, end.nextSequence, builder);
}

/** Goes on in the newest segment, with the marks at its end written once more: see `tail_marks`. */
async function continueSegment(
  options: LogOptions,
  newest: NewestSegment,
  salt: number,
  report: RecoveryReport,
): Promise<RecoveredLog> {
  const { fileSystem, directory } = options;
  const { tail, name, base } = newest;
  const path = `${directory}/${name}`;
  // A process that was killed amid a rotation may have left the segment's name in the cache only.
  await fileSystem.syncDirectory(directory);
  const file = await fileSystem.open(path, "update");
  try {
    if (tail.endOffset > tail.offset) {
      for await (const run of tailRuns(options, file, newest, salt)) {
        await writeFully(file, run.bytes, run.offset, path);
        await options.onRecords({ ...run, segmentBase: base });
      }
      await file.datasync();
    }
  } catch (error) {
    await file.close();
    throw error;
  }
  report.lastSequence = tail.lastSequence;
  return {
    segment: { base, salt, path, file, endOffset: tail.endOffset },
    report,
    nextSequence: tail.lastSequence + 1,
    claimedSequence: newest.claimedSequence,
    lastDataSequence: newest.lastDataSequence,
  };
}

/** Begins a segment for what comes next, with the records that were not proven as its first. */
async function beginSegment(
  options: LogOptions,
  newest: NewestSegment | null,
  base: number,
  builder: RecoveryReportBuilder,
): Promise<RecoveredLog> {
  const { fileSystem, directory } = options;
  const { report } = builder;
  const salt = (options.createSalt ?? randomSalt)();
  const start = encodeSegmentStart({ base, salt, openingState: options.openingState(), timeUs: report.lastTimeUs });
  const tail = newest !== null && newest.tail.endOffset > newest.tail.offset ? newest.tail : null;
  if (tail !== null) builder.decided("tail_records");
  else if (newest !== null && newest.salt !== null) builder.decided("newest_ends_in_damage");
  const create = () =>
    createSegment(fileSystem, directory, base, salt, start, async (file, path, endOffset) => {
      if (newest === null || tail === null || newest.salt === null) return endOffset;
      return await copyTail(options, newest, newest.salt, { file, path, salt, endOffset });
    });
  const segment = await (options.room ?? FAILS_WITHOUT_ROOM).attempt(create);
  try {
    if (newest !== null && newest.salt !== null && newest.base !== base) {
      await shorten(fileSystem, `${directory}/${newest.name}`, newest.tail.offset);
    }
    if (newest !== null && tail !== null) {
      const created = { ...newest, name: segmentName(base), base, tail: { ...tail, ...placeOf(start, segment) } };
      for await (const run of tailRuns(options, segment.file, created, salt)) {
        await options.onRecords({ ...run, segmentBase: base });
      }
    }
  } catch (error) {
    await segment.file.close();
    throw error;
  }
  const lastSequence = tail?.lastSequence ?? base - 1;
  report.lastSequence = lastSequence;
  report.newSegmentBase = base;
  return {
    segment,
    report,
    nextSequence: lastSequence + 1,
    claimedSequence: base - 1,
    lastDataSequence: tail === null || tail.onlyMarks ? base - 1 : lastSequence,
  };
}

function placeOf(start: Uint8Array, segment: WritableSegment): Pick<LogTail, "offset" | "endOffset"> {
  return { offset: start.length, endOffset: segment.endOffset };
}

/** Copies the tail behind `target.endOffset`, its headers sealed for the new place; gives the new end. */
async function copyTail(
  options: LogOptions,
  newest: NewestSegment,
  salt: number,
  target: { file: StoreFile; path: string; salt: number; endOffset: number },
): Promise<number> {
  const source = await options.fileSystem.open(`${options.directory}/${newest.name}`, "read");
  let { endOffset } = target;
  try {
    for await (const { bytes } of tailRuns(options, source, newest, salt)) {
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      for (let at = 0; at < bytes.length; ) {
        const header = readRecordHeader(view, at);
        sealRecordHeader(bytes, view, at, target.salt, endOffset + at);
        at += recordLength(header.indexLength, header.bodyLength);
      }
      await writeFully(target.file, bytes, endOffset, target.path);
      endOffset += bytes.length;
    }
  } finally {
    await source.close();
  }
  return endOffset;
}

/** The tail's records once more, run by run; the bytes may be changed. */
async function* tailRuns(options: LogOptions, file: StoreFile, segment: NewestSegment, salt: number) {
  const { name, base, tail } = segment;
  const scan = scanSegment({
    file,
    name,
    base,
    salt,
    endSequence: Number.POSITIVE_INFINITY,
    sizeBytes: tail.endOffset,
    fromOffset: tail.offset,
    afterSequence: tail.firstSequence - 1,
    understandsType: (type) => options.understandsType(type),
  });
  let expected = tail.firstSequence;
  for await (const item of scan) {
    if (item.kind !== "records" || item.firstSequence !== expected) break;
    const { bytes, offset, firstSequence, lastSequence, lastTimeUs } = item;
    yield { bytes, offset, firstSequence, lastSequence, lastTimeUs };
    expected = lastSequence + 1;
  }
  if (expected === tail.lastSequence + 1) return;
  throw new StorageError(
    "record_damaged",
    `segment ${name}: sequence ${expected} read well a moment ago and does not now: the disk is not to be trusted`,
    { segment: name, sequence: expected },
  );
}

/**
 * Cuts off what does not count any more, and has it durable before anything is taken: what a power cut brought back could stand in for acknowledged
 * records of the same numbers, should the segment that has them be lost.
 *
 * What is short already is opened to be read: a sync asks no more, and a closed segment that was restored from a backup may be read-only.
 *
 * @param sizeBytes Infinity: what was cut before is made durable, no more
 */
async function shorten(fileSystem: FileSystem, path: string, sizeBytes: number): Promise<void> {
  const isLonger = (await fileSystem.sizeOf(path)) > sizeBytes;
  const file = await fileSystem.open(path, isLonger ? "update" : "read");
  try {
    if (isLonger) await file.truncate(sizeBytes);
    await file.datasync();
  } finally {
    await file.close();
  }
}

export function randomSalt(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;
}
