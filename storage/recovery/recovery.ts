import type { FileSystem, StoreFile } from "../disk/file-system-interface.js";
import { FAILS_WITHOUT_ROOM } from "../disk/retried-writes.js";
import { writeFully } from "../disk/whole-files.js";
import type { LogOptions } from "../log/log-options.js";
import { readRecordHeader, recordLength, writeHeaderCrc } from "../log/record-format.js";
import { createSegment, encodeSegmentStart, segmentName, type WritableSegment } from "../log/segment.js";
import { StorageError } from "../storage-error.js";
import { walkLog } from "./log-walk.js";
import { quarantineBytes, setAside } from "./quarantine.js";
import { type RecoveryReport, RecoveryReportBuilder } from "./recovery-report.js";
import { scanSegment } from "./segment-scan.js";
import type { LogTail, NewestSegment } from "./walked-log.js";

export interface RecoveredLog {
  segment: WritableSegment;
  report: RecoveryReport;
  /** Everything before it is durable now. */
  nextSequence: number;
  /** The largest durable_up_to of any record on disk. */
  claimedSequence: number;
  /** The last record that is not a mark, if it comes after `claimedSequence`; otherwise `claimedSequence`. */
  lastDataSequence: number;
}

/**
 * Reads the log case by case (recovery-cases.ts), delivers its records, and returns a segment to append to.
 *
 * A crash during recovery is harmless: the next recovery comes to the same result. Damaged bytes are copied to the
 * quarantine folder first. A new segment appears whole or not at all. Old bytes are cut off only when the new segment
 * has their good part. Until then the base of the new segment says that they do not count.
 */
export async function recoverLog(options: LogOptions): Promise<RecoveredLog> {
  const { fileSystem, directory, quarantineDirectory, room = FAILS_WITHOUT_ROOM } = options;
  const builder = new RecoveryReportBuilder();
  const { report } = builder;
  const end = await walkLog({
    fileSystem,
    directory,
    builder,
    evidence: options.evidence,
    usesHints: options.usesHints,
    onRecords: (batch) => options.onRecords(batch),
    quarantine: (segment, file, offset, lengthBytes) =>
      room.attempt(() => quarantineBytes(fileSystem, quarantineDirectory, segment, file, offset, lengthBytes)),
    deliversTail: false,
  });
  // A process that was killed during a recovery may have left copies here whose names are not durable. They must be, before the log is cut.
  await fileSystem.syncDirectory(quarantineDirectory);
  for (const name of end.temporaryFiles) await fileSystem.unlink(`${directory}/${name}`);
  for (const name of end.strayHints) await fileSystem.unlink(`${directory}/${name}`);
  for (const name of end.strays) await setAside(fileSystem, directory, quarantineDirectory, name);
  // After a recovery that was killed, the name of the segment that supersedes these bytes may not be durable.
  if (end.superseded.length > 0) await fileSystem.syncDirectory(directory);
  for (const { name, sizeBytes } of end.superseded) await shorten(fileSystem, `${directory}/${name}`, sizeBytes);
  // A recovery that began the newest segment and was killed after its cut may not have made the cut durable.
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

/** Goes on in the newest segment, after writing the marks at its end again: see `tail_marks`. */
async function continueSegment(
  options: LogOptions,
  newest: NewestSegment,
  salt: number,
  report: RecoveryReport,
): Promise<RecoveredLog> {
  const { fileSystem, directory } = options;
  const { tail, name, base } = newest;
  const path = `${directory}/${name}`;
  // A process that was killed during a rotation may not have made the segment's name durable.
  await fileSystem.syncDirectory(directory);
  const file = await fileSystem.open(path, "update");
  try {
    if (tail.endOffset > tail.offset) {
      for await (const batch of tailBatches(file, newest, salt)) {
        await writeFully(file, batch.bytes, batch.offset, path);
        await options.onRecords({ ...batch, segmentBase: base });
      }
      await file.datasync();
    }
  } catch (error) {
    await file.close();
    throw error;
  }
  report.lastSequence = tail.lastSequence;
  report.segmentBase = base;
  return {
    segment: { base, salt, path, file, endOffset: tail.endOffset },
    report,
    nextSequence: tail.lastSequence + 1,
    claimedSequence: newest.claimedSequence,
    lastDataSequence: newest.lastDataSequence,
  };
}

/** Begins a new segment, with the records that were not proven at its start. */
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
      for await (const batch of tailBatches(segment.file, created, salt)) {
        await options.onRecords({ ...batch, segmentBase: base });
      }
    }
  } catch (error) {
    await segment.file.close();
    throw error;
  }
  const lastSequence = tail?.lastSequence ?? base - 1;
  report.lastSequence = lastSequence;
  report.newSegmentBase = base;
  report.segmentBase = base;
  if (newest !== null && newest.base !== base) report.unhinted.push({ base: newest.base, nextBase: base });
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

/** Copies the tail to `target.endOffset`, with header CRCs for the new place; returns the new end offset. */
async function copyTail(
  options: LogOptions,
  newest: NewestSegment,
  salt: number,
  target: { file: StoreFile; path: string; salt: number; endOffset: number },
): Promise<number> {
  const source = await options.fileSystem.open(`${options.directory}/${newest.name}`, "read");
  let { endOffset } = target;
  try {
    for await (const { bytes } of tailBatches(source, newest, salt)) {
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      for (let at = 0; at < bytes.length; ) {
        const header = readRecordHeader(view, at);
        writeHeaderCrc(bytes, view, at, target.salt, endOffset + at);
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

/** Reads the tail's records again, batch by batch. The caller may change the bytes. */
async function* tailBatches(file: StoreFile, segment: NewestSegment, salt: number) {
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
    `segment ${name}: record ${expected} was intact a moment ago and is not now; the disk or the memory is faulty`,
    { segment: name, sequence: expected },
  );
}

/**
 * Cuts off what does not count any more, and makes that durable before new records are accepted. Otherwise a power cut could bring the old bytes
 * back. If the newer segment were lost then, they would be taken for acknowledged records of the same sequence numbers.
 *
 * A file that is short enough is opened only for reading. A sync needs no more, and a closed segment from a backup may be read-only.
 *
 * @param sizeBytes the new size; Infinity only makes an earlier cut durable
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
