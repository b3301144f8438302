import type { SegmentMoves } from "../compaction/segment-moves.js";
import type { RecordLocation } from "../log/log-batch.js";
import type { CapturesIndex, StoredSummary } from "../records/record-index.js";

/**
 * Most runs that one slice of retention marks, and so the most whose files a crash can leave behind: a slice's files are unlinked, durably,
 * before the next slice is marked. A store may have been left so by an earlier release: this number may grow and never shrink.
 */
export const RETENTION_SLICE_RUNS = 32;

/** An ended run that keeps captured bytes. */
export interface KeptCaptures {
  /** Of the run; no two runs have the same, and it rises with the run's id but where the store's clock was set back. */
  createdAtUs: number;
  completedAtUs: number;
  /** Bytes of the capture file; null where the record, of before retention, does not say. */
  bytes: number | null;
  /** Of the run's consolidated record. */
  location: RecordLocation;
}

/** What the consolidated record of a run says, by its index section. */
export function keptCaptures(
  { summary, captures }: { summary: StoredSummary; captures: CapturesIndex },
  location: RecordLocation,
): KeptCaptures {
  const { createdAtUs, completedAtUs, updatedAtUs } = summary;
  return { createdAtUs, completedAtUs: completedAtUs ?? updatedAtUs, bytes: captures.bytes, location };
}

/** A run whose captures have a tombstone. */
export interface RemovedRun {
  runId: string;
  removedAtUs: number;
}

const STRIDE = 6;
const INITIAL_ROWS = 256;
const UNKNOWN = -1;

/**
 * What retention goes by, folded from the index sections of consolidated records: the runs that keep captures, oldest first, with
 * their bytes, 48 bytes a run; and the runs removed last, whose files may still be there. Without `keepsRuns`, and after
 * `forgetRuns`, only the latter.
 */
export class CaptureIndex {
  #keepsRuns: boolean;
  /** Rows of createdAtUs, completedAtUs, bytes, segmentBase, offset, length; ascending by the first. */
  #rows: Float64Array = new Float64Array(INITIAL_ROWS * STRIDE);
  #head = 0;
  #end = 0;
  #bytes = 0;
  #unknown = 0;
  /** Runs that count no more until they are taken back, by creation. */
  readonly #aside = new Map<number, KeptCaptures>();
  /** Oldest first. */
  #lastRemoved: RemovedRun[] = [];

  constructor(options: { keepsRuns: boolean }) {
    this.#keepsRuns = options.keepsRuns;
  }

  /** Runs that keep captures. */
  get runs(): number {
    return this.#end - this.#head;
  }

  /** Captured bytes of these runs, as far as they are known. */
  get bytes(): number {
    return this.#bytes;
  }

  get bytesUsed(): number {
    return this.#rows.byteLength;
  }

  /** Where nothing is ever removed, the runs are of use for the sum of their bytes alone. @returns that sum, as far as it is known */
  forgetRuns(): number {
    const bytes = this.#bytes;
    this.#keepsRuns = false;
    this.#rows = new Float64Array(0);
    this.#head = 0;
    this.#end = 0;
    this.#bytes = 0;
    this.#unknown = 0;
    this.#aside.clear();
    return bytes;
  }

  /** Creation of the oldest run that keeps captures. */
  get oldestCreatedAtUs(): number | null {
    return this.runs === 0 ? null : this.#at(this.#head, 0);
  }

  /** A run has ended with captures, or its record has moved. */
  keep(run: KeptCaptures): void {
    if (!this.#keepsRuns || run.bytes === 0) return;
    this.#aside.delete(run.createdAtUs);
    let row = this.#lowerBound(run.createdAtUs);
    if (this.#isRow(row, run.createdAtUs)) this.#count(row, -1);
    else row = this.#insert(row);
    this.#rows.set(
      [
        run.createdAtUs,
        run.completedAtUs,
        run.bytes ?? UNKNOWN,
        run.location.segmentBase,
        run.location.offset,
        run.location.length,
      ],
      row * STRIDE,
    );
    this.#count(row, 1);
  }

  /** Records of a segment lie elsewhere in it now. */
  moved({ segmentBase, runs: { createdAtUs, offsets, lengths } }: SegmentMoves): void {
    for (const [at, created] of createdAtUs.entries()) {
      const aside = this.#aside.get(created);
      if (aside?.location.segmentBase === segmentBase) {
        this.#aside.set(created, { ...aside, location: { segmentBase, offset: offsets[at]!, length: lengths[at]! } });
        continue;
      }
      const row = this.#lowerBound(created);
      if (!this.#isRow(row, created) || this.#at(row, 3) !== segmentBase) continue;
      this.#rows.set([offsets[at]!, lengths[at]!], row * STRIDE + 4);
    }
  }

  /** Where the run's record lies by now; undefined for one that keeps no captures. */
  locationOf(createdAtUs: number): RecordLocation | undefined {
    const row = this.#lowerBound(createdAtUs);
    return this.#isRow(row, createdAtUs) ? this.#run(row).location : undefined;
  }

  /** Nothing can be done about the run's captures for now: until `takeBack` they count no more, and others have their turn. */
  setAside(createdAtUs: number): void {
    const row = this.#lowerBound(createdAtUs);
    if (!this.#isRow(row, createdAtUs)) return;
    const run = this.#run(row);
    this.drop(createdAtUs);
    this.#aside.set(createdAtUs, run);
  }

  /** What was set aside counts again. */
  takeBack(): void {
    for (const run of [...this.#aside.values()]) this.keep(run);
  }

  /** The run's captures count no more: they have a tombstone, or there are none. */
  drop(createdAtUs: number): void {
    this.#aside.delete(createdAtUs);
    const row = this.#lowerBound(createdAtUs);
    if (!this.#isRow(row, createdAtUs)) return;
    this.#count(row, -1);
    // What goes is the oldest, or close to it: the few before it move up.
    this.#rows.copyWithin((this.#head + 1) * STRIDE, this.#head * STRIDE, row * STRIDE);
    this.#head++;
  }

  /** A tombstone was recorded: the file may still be there. */
  removed(createdAtUs: number, runId: string, removedAtUs: number): void {
    this.drop(createdAtUs);
    const last = this.#lastRemoved;
    let at = last.length;
    // Nearly always behind all others: the log is in order of time, but for what compaction moved.
    while (at > 0 && (last[at - 1]?.removedAtUs ?? 0) > removedAtUs) at--;
    // Recorded again, as when formats come late: compaction drops the record before, which must make no difference.
    for (let before = at - 1; last[before]?.removedAtUs === removedAtUs; before--) {
      if (last[before]?.runId === runId) {
        last.splice(before, 1);
        at--;
        break;
      }
    }
    last.splice(at, 0, { runId, removedAtUs });
    if (last.length > RETENTION_SLICE_RUNS) last.shift();
  }

  /** The store's clock goes on from here: what was removed at a later time was removed before, and must not outlast what comes. */
  clockSet(timeUs: number): void {
    this.#lastRemoved = this.#lastRemoved.map(({ runId, removedAtUs }) => ({
      runId,
      removedAtUs: Math.min(removedAtUs, timeUs),
    }));
  }

  /** Runs with a tombstone whose files may still be there. */
  unfinished(): string[] {
    return this.#lastRemoved.map(({ runId }) => runId);
  }

  /** Their files are gone, durably. */
  finish(): void {
    this.#lastRemoved = [];
  }

  /** The rows of the runs that keep captures, oldest first, and the runs removed last. */
  snapshot(): { rows: Float64Array; lastRemoved: readonly RemovedRun[] } {
    return { rows: this.#rows.subarray(this.#head * STRIDE, this.#end * STRIDE), lastRemoved: this.#lastRemoved };
  }

  /** Takes what `snapshot` gave, in place of what it held. */
  load(rows: Float64Array, lastRemoved: readonly RemovedRun[]): void {
    this.#lastRemoved = [...lastRemoved];
    if (!this.#keepsRuns) return;
    this.#rows = rows;
    this.#head = 0;
    this.#end = rows.length / STRIDE;
    this.#bytes = 0;
    this.#unknown = 0;
    for (let row = 0; row < this.#end; row++) this.#count(row, 1);
  }

  /** The first run created after that whose bytes are not known. */
  nextUnknown(createdAfterUs: number): KeptCaptures | undefined {
    if (this.#unknown === 0) return undefined;
    for (let row = this.#lowerBound(createdAfterUs + 1); row < this.#end; row++) {
      if (this.#at(row, 2) === UNKNOWN) return this.#run(row);
    }
    return undefined;
  }

  /**
   * The run to remove next: the oldest while there are more than `maximumBytes`, else the oldest that ended at `endedByUs` or before.
   * Null: that bound is off.
   *
   * @param lastTimeUs of the store's clock: runs that were created later are from before it was set back, and go before all that came since
   */
  next(endedByUs: number | null, maximumBytes: number | null, lastTimeUs: number): KeptCaptures | undefined {
    if (this.runs === 0) return undefined;
    if (maximumBytes !== null && this.#bytes > maximumBytes) {
      const ahead = this.#lowerBound(lastTimeUs + 1);
      return this.#run(ahead < this.#end ? ahead : this.#head);
    }
    if (endedByUs === null) return undefined;
    // A run ends after it was created: behind the first that is too young, all are.
    for (let row = this.#head; row < this.#end && this.#at(row, 0) <= endedByUs; row++) {
      if (this.#at(row, 1) <= endedByUs) return this.#run(row);
    }
    return undefined;
  }

  /** The end of the last run, by creation, that ended at `byUs` or before and keeps captures; null for none. */
  lastEndedUs(byUs: number): number | null {
    for (let row = this.#lowerBound(byUs + 1) - 1; row >= this.#head; row--) {
      if (this.#at(row, 1) <= byUs) return this.#at(row, 1);
    }
    return null;
  }

  #run(row: number): KeptCaptures {
    const bytes = this.#at(row, 2);
    return {
      createdAtUs: this.#at(row, 0),
      completedAtUs: this.#at(row, 1),
      bytes: bytes === UNKNOWN ? null : bytes,
      location: { segmentBase: this.#at(row, 3), offset: this.#at(row, 4), length: this.#at(row, 5) },
    };
  }

  #at(row: number, field: number): number {
    return this.#rows[row * STRIDE + field] as number;
  }

  #isRow(row: number, createdAtUs: number): boolean {
    return row < this.#end && this.#at(row, 0) === createdAtUs;
  }

  #count(row: number, sign: 1 | -1): void {
    const bytes = this.#at(row, 2);
    if (bytes === UNKNOWN) this.#unknown += sign;
    else this.#bytes += sign * bytes;
  }

  /** The first row whose run was not created before. */
  #lowerBound(createdAtUs: number): number {
    let low = this.#head;
    let high = this.#end;
    if (high > low && this.#at(high - 1, 0) < createdAtUs) return high;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#at(middle, 0) < createdAtUs) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Makes room for a row there; gives the place that it has then. */
  #insert(row: number): number {
    let at = row;
    if ((this.#end + 1) * STRIDE > this.#rows.length) {
      const rows = new Float64Array(Math.max(INITIAL_ROWS, 2 * (this.runs + 1)) * STRIDE);
      rows.set(this.#rows.subarray(this.#head * STRIDE, this.#end * STRIDE));
      at -= this.#head;
      this.#end -= this.#head;
      this.#head = 0;
      this.#rows = rows;
    }
    this.#rows.copyWithin((at + 1) * STRIDE, at * STRIDE, this.#end * STRIDE);
    this.#end++;
    return at;
  }
}
