import { orWhereMissing } from "../../storage/disk/file-system-error.js";
import type { FileSystem } from "../../storage/disk/file-system-interface.js";
import { withFile } from "../../storage/disk/whole-files.js";
import { readRecordHeader, recordLength } from "../../storage/log/record-format.js";
import { readSegmentHeader, segmentBaseOf, segmentName } from "../../storage/log/segment.js";
import { type RecordBatch, type ScanItem, scanSegment } from "../../storage/recovery/segment-scan.js";
import { BATCH_BYTES } from "./log-message.js";

/** Successive records as the log has them. */
export interface LogBatch {
  firstSequence: number;
  lastSequence: number;
  bytes: Uint8Array;
}

interface Segment {
  base: number;
  /** Undefined for the newest. */
  nextBase: number | undefined;
}

/** Where a record begins: the scan of the segment goes on from there. */
interface Place {
  base: number;
  offset: number;
  /** The sequence number before it. */
  after: number;
}

/**
 * Reads the durable records of a log in order, from files alone, while its writer goes on. What proves that a record is durable is what recovery
 * goes by, too: a later record that says so, or the name of the next segment. The log writes a mark when it is idle, so every record is proven soon.
 */
export class LogTail {
  readonly #fileSystem: FileSystem;
  readonly #directory: string;
  #after = 0;
  #place: Place | null = null;
  #durable = 0;

  constructor(options: { fileSystem: FileSystem; directory: string }) {
    this.#fileSystem = options.fileSystem;
    this.#directory = options.directory;
  }

  /** The largest sequence number that is known to be durable. */
  get durableSequence(): number {
    return this.#durable;
  }

  /** The next batch is that behind this sequence number. */
  seek(afterSequence: number): void {
    this.#after = afterSequence;
    this.#place = null;
  }

  /**
   * The next durable records: at most `BATCH_BYTES`, or one record that is larger. Sequence numbers that the log does not have, because their bytes
   * are damaged, are passed over. Null while there are none.
   */
  async next(): Promise<LogBatch | null> {
    for (;;) {
      const segment = await this.#segmentOf(this.#after + 1);
      if (segment === null) return null;
      const from = this.#place;
      let batch = await this.#nextIn(segment);
      if (batch !== null && segment.nextBase === undefined && batch.firstSequence > this.#after + 1) {
        // The writer may have been at work on the bytes before it. Damage is still there when one looks again.
        this.#place = from;
        batch = await this.#nextIn(segment);
      }
      if (batch !== null) {
        this.#after = batch.lastSequence;
        return batch;
      }
      if (segment.nextBase === undefined) return null;
      this.seek(segment.nextBase - 1);
    }
  }

  /**
   * The records from `firstSequence` to `lastSequence` that the log has. Recovery may have moved some of them to a later segment. Damage may have
   * taken some; the log goes on behind them if `isPassed` is true, and ends before `lastSequence` if it is false.
   */
  async range(firstSequence: number, lastSequence: number): Promise<{ batches: LogBatch[]; isPassed: boolean }> {
    const batches: LogBatch[] = [];
    let isPassed = false;
    let next: number | undefined = firstSequence;
    while (!isPassed && next !== undefined) {
      const segment = await this.#segmentOf(next);
      if (segment === null) break;
      await this.#scan(segment, null, (item) => {
        if (item.kind !== "records") return false;
        const { bytes, ...cut } = cutBatch(item, firstSequence, lastSequence);
        if (bytes.length > 0) batches.push({ ...cut, bytes: bytes.slice() });
        isPassed = item.lastSequence >= lastSequence;
        return isPassed;
      });
      next = segment.nextBase;
      if (next !== undefined && next > lastSequence) isPassed = true;
    }
    return { batches, isPassed };
  }

  /** Bytes of the log's files behind the last batch. */
  async unreadBytes(): Promise<number> {
    const place = this.#place;
    let bytes = 0;
    for (const { name } of await this.#fileSystem.readDirectory(this.#directory)) {
      const base = segmentBaseOf(name);
      if (base === undefined || (place !== null && base < place.base)) continue;
      const size = await orWhereMissing(this.#fileSystem.sizeOf(`${this.#directory}/${name}`), 0);
      bytes += base === place?.base ? Math.max(0, size - place.offset) : size;
    }
    return bytes;
  }

  async #nextIn(segment: Segment): Promise<LogBatch | null> {
    let found: LogBatch | null = null;
    let place: Place | null = null;
    await this.#scan(segment, this.#place, (item) => {
      // What is not written yet looks like damage, too. Only records behind it that are proven make it a gap.
      if (item.kind === "damage") return false;
      if (item.kind === "superseded") return true;
      this.#durable = Math.max(this.#durable, item.durableUpTo);
      if (item.kind === "opening") return false;
      if (found === null && item.lastSequence > this.#after) {
        const cut = cutBatch(item, this.#after + 1, item.lastSequence, BATCH_BYTES);
        found = { firstSequence: cut.firstSequence, lastSequence: cut.lastSequence, bytes: cut.bytes.slice() };
        place = { base: segment.base, offset: item.offset + cut.end, after: cut.lastSequence };
      }
      // Later records prove the earlier ones.
      return found !== null && found.lastSequence <= this.#durable;
    });
    // Narrowing does not see what the callback has set.
    const batch = found as LogBatch | null;
    if (batch === null || batch.firstSequence > this.#durable) return null;
    if (batch.lastSequence <= this.#durable) {
      this.#place = place;
      return batch;
    }
    const proven = cutBatch(batch, batch.firstSequence, this.#durable);
    const end = place as Place | null;
    if (end !== null) {
      const offset = end.offset - (batch.bytes.length - proven.bytes.length);
      this.#place = { base: segment.base, offset, after: proven.lastSequence };
    }
    return proven;
  }

  /** Calls back for each item from the place on, until the callback returns true. */
  async #scan(segment: Segment, from: Place | null, take: (item: ScanItem) => boolean): Promise<void> {
    const name = segmentName(segment.base);
    await withFile(this.#fileSystem, `${this.#directory}/${name}`, async (file) => {
      const { header } = await readSegmentHeader(file);
      if (header === null || header.base !== segment.base) return;
      const place = from?.base === segment.base ? { fromOffset: from.offset, afterSequence: from.after } : {};
      const items = scanSegment({
        file,
        name,
        ...header,
        endSequence: segment.nextBase ?? Number.MAX_SAFE_INTEGER,
        sizeBytes: await file.size(),
        chunkBytes: BATCH_BYTES,
        ...place,
      });
      for await (const item of items) if (take(item)) return;
    });
  }

  /** The segment that has this sequence number, or the first one behind it. */
  async #segmentOf(sequence: number): Promise<Segment | null> {
    const entries = await this.#fileSystem.readDirectory(this.#directory);
    const bases = entries.flatMap(({ name }) => segmentBaseOf(name) ?? []).sort((left, right) => left - right);
    this.#durable = Math.max(this.#durable, (bases.at(-1) ?? 1) - 1);
    const at = Math.max(
      0,
      bases.findLastIndex((base) => base <= sequence),
    );
    const base = bases[at];
    return base === undefined ? null : { base, nextBase: bases[at + 1] };
  }
}

/**
 * The records of a batch from `first` to `last`, as far as it has them: at most `mostBytes`, or one record that is larger. The bytes are a view, which
 * ends at `end` of the batch.
 */
function cutBatch(
  batch: LogBatch | RecordBatch,
  first: number,
  last: number,
  mostBytes = Number.POSITIVE_INFINITY,
): LogBatch & { end: number } {
  const { bytes } = batch;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let from = 0;
  let at = 0;
  let firstSequence = Math.max(batch.firstSequence, first);
  let lastSequence = firstSequence - 1;
  while (at < bytes.length) {
    const { sequence, indexLength, bodyLength } = readRecordHeader(view, at);
    const end = at + recordLength(indexLength, bodyLength);
    if (sequence > last || (sequence > firstSequence && end - from > mostBytes)) break;
    at = end;
    if (sequence < first) from = at;
    else lastSequence = sequence;
  }
  firstSequence = Math.min(firstSequence, lastSequence + 1);
  return { firstSequence, lastSequence, bytes: bytes.subarray(from, at), end: at };
}
