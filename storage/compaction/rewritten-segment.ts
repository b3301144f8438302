import type { FileSystem } from "../disk/file-system-interface.js";
import { forEachRecord } from "../log/log-batch.js";
import { readSegmentHeader, segmentName } from "../log/segment.js";
import { isKnownRecordType } from "../records/record-index.js";
import { scanSegment } from "../recovery/segment-scan.js";
import { SnapshotError } from "../snapshot/snapshot-format.js";
import { MovesCollector, type SegmentMoves } from "./segment-moves.js";

export interface RewrittenReading {
  /** Where the records up to the sequence number lie whose places are held. */
  moves: SegmentMoves;
  /** Of the first record that covers a number above it; the file's end when none does. */
  offset: number;
  /** The first number that it covers. */
  nextSequence: number;
}

/**
 * Reads a segment that compaction has written anew since a snapshot was made: all that the snapshot needs to know of it. Every byte is
 * verified.
 *
 * @param nextBase of the next segment: the newest one is never written anew
 * @throws {SnapshotError} It is damaged, or does not cover its numbers.
 */
export async function readRewritten(
  fileSystem: FileSystem,
  directory: string,
  base: number,
  nextBase: number,
  throughSequence: number,
): Promise<RewrittenReading> {
  const name = segmentName(base);
  const file = await fileSystem.open(`${directory}/${name}`, "read");
  try {
    const { header } = await readSegmentHeader(file);
    if (header?.base !== base) throw new SnapshotError(`segment ${name} has no readable header`);
    const sizeBytes = await file.size();
    const collector = new MovesCollector();
    const understandsType = isKnownRecordType;
    const scan = { file, name, base, salt: header.salt, endSequence: nextBase, sizeBytes, understandsType };
    let expected = base;
    let behind: { offset: number; nextSequence: number } | null = null;
    for await (const item of scanSegment(scan)) {
      if (item.kind === "opening") continue;
      if (item.kind !== "records" || item.firstSequence !== expected) {
        throw new SnapshotError(`segment ${name} is damaged at offset ${item.offset}`);
      }
      forEachRecord({ ...item, segmentBase: base }, (record, location) => {
        if (record.sequence > throughSequence) behind ??= { offset: location.offset, nextSequence: expected };
        else collector.take(record, location);
        expected = record.sequence + 1;
      });
    }
    if (expected !== nextBase) throw new SnapshotError(`segment ${name} ends before ${expected}`);
    return { moves: collector.finish(base), ...(behind ?? { offset: sizeBytes, nextSequence: nextBase }) };
  } finally {
    await file.close();
  }
}
