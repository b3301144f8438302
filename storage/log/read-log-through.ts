import type { FileSystem } from "../disk/file-system-interface.js";
import { scanSegment } from "../recovery/segment-scan.js";
import { type LogPosition, type SegmentSalt, SnapshotError } from "../snapshot/snapshot-format.js";
import { segmentBases } from "../snapshot/snapshot-place.js";
import { StorageError } from "../storage-error.js";
import type { CommittedBatch } from "./log-batch.js";
import type { LogStart } from "./log-options.js";
import { readRecordHeader, recordLength, sealOf } from "./record-format.js";
import { assertReadableVersion, readSegmentHeader, segmentName } from "./segment.js";

export interface ReadThroughOptions {
  fileSystem: FileSystem;
  /** Folder of the segments. The log may be written to meanwhile: what is behind `throughSequence` is not looked at. */
  directory: string;
  /** Null: at the start of the log. */
  from: LogStart | null;
  /** The last record to read; it is durable. */
  throughSequence: number;
  understandsType(type: number): boolean;
  onRecords(batch: Pick<CommittedBatch, "bytes" | "segmentBase" | "offset" | "lastSequence">): void;
}

/**
 * Reads the log up to a record that is known to be durable, and no further; gives where that record stands and the segments up to there.
 *
 * @throws {SnapshotError} The log is damaged before that record, or does not have it: its cause is the damage.
 */
export async function readLogThrough(options: ReadThroughOptions): Promise<{
  position: LogPosition;
  timeUs: number;
  segments: SegmentSalt[];
}> {
  const { fileSystem, directory, from, throughSequence } = options;
  const bases = (await segmentBases(fileSystem, directory)).filter((base) => base <= throughSequence);
  const segments: SegmentSalt[] = [];
  let expected = from === null ? 1 : from.nextSequence;
  let timeUs = from?.timeUs ?? 0;
  let last: LogPosition | null = null;
  for (const [nth, base] of bases.entries()) {
    const name = segmentName(base);
    const file = await fileSystem.open(`${directory}/${name}`, "read");
    try {
      const { header } = await readSegmentHeader(file);
      if (header === null || header.base !== base) throw damaged(name, 0, "its header");
      assertReadableVersion(header, name);
      segments.push({ base, salt: header.salt });
      if (from !== null && base < from.segmentBase) continue;
      const nextBase = bases[nth + 1] ?? Number.POSITIVE_INFINITY;
      const isStart = from?.segmentBase === base;
      if (!isStart && base !== expected) throw damaged(name, 0, `the log goes on at ${base} instead of ${expected}`);
      const items = scanSegment({
        file,
        name,
        base,
        salt: header.salt,
        endSequence: nextBase,
        sizeBytes: await file.size(),
        understandsType: (type) => options.understandsType(type),
        ...(isStart && { fromOffset: from.offset, afterSequence: from.nextSequence - 1 }),
      });
      for await (const item of items) {
        if (expected > Math.min(throughSequence, nextBase - 1)) break;
        if (item.kind === "damage") throw damaged(name, item.offset, item.reason);
        if (item.kind === "superseded") throw damaged(name, item.offset, "records of the next segment come too early");
        if (item.kind === "opening") {
          timeUs = item.timeUs;
          options.onRecords({ bytes: item.bytes, segmentBase: base, offset: item.offset, lastSequence: base - 1 });
          continue;
        }
        if (item.firstSequence !== expected) throw damaged(name, item.offset, `no record ${expected}`);
        const part = recordsThrough(item.bytes, throughSequence);
        options.onRecords({
          bytes: item.bytes.subarray(0, part.length),
          segmentBase: base,
          offset: item.offset,
          lastSequence: part.lastSequence,
        });
        timeUs = Math.max(timeUs, part.timeUs);
        expected = part.lastSequence + 1;
        const { lastSequence: sequence, lastAt, lastHeaderCrc: headerCrc } = part;
        last = { sequence, segmentBase: base, offset: item.offset + lastAt, headerCrc };
      }
      if (expected < nextBase && nextBase <= throughSequence) throw damaged(name, 0, `it ends before ${expected}`);
    } finally {
      await file.close();
    }
  }
  if (expected !== throughSequence + 1) {
    const message = `the log ends before record ${throughSequence}`;
    throw new SnapshotError(message, { cause: new StorageError("record_missing", message) });
  }
  // Nothing is new: what was known of the position is what the caller began with.
  if (last === null) throw new SnapshotError(`nothing was recorded behind ${throughSequence}`);
  return { position: last, timeUs, segments };
}

/** The records at the start of whole consecutive ones with numbers up to `sequence`; the first is one. */
function recordsThrough(bytes: Uint8Array, sequence: number) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const through = { length: 0, lastSequence: 0, lastAt: 0, lastHeaderCrc: 0, timeUs: 0 };
  while (through.length < bytes.length) {
    const header = readRecordHeader(view, through.length);
    if (header.sequence > sequence) break;
    through.lastSequence = header.sequence;
    through.lastAt = through.length;
    through.lastHeaderCrc = sealOf(view, through.length);
    through.timeUs = Math.max(through.timeUs, header.timeUs);
    through.length += recordLength(header.indexLength, header.bodyLength);
  }
  return through;
}

function damaged(segment: string, offset: number, detail: string): SnapshotError {
  const cause = new StorageError("record_damaged", `segment ${segment}, offset ${offset}: ${detail}`, {
    segment,
    offset,
  });
  return new SnapshotError(`the log is damaged: ${cause.message}`, { cause });
}
