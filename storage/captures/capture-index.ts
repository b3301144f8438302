import { lowerBound } from "../../core/lower-bound.js";
import type { RecordLocation } from "../log/committed-batch.js";
import type { IndexedRun } from "../records/indexed-run.js";
import type { CapturesIndex } from "../records/record-index.js";

/**
 * The most runs that one batch of retention marks. The files of a batch are unlinked, durably, before the next batch is marked. So after a crash the
 * files of at most so many runs are left. This number may grow but never shrink, because an earlier release may have left a store that way.
 */
export const RETENTION_BATCH_RUNS = 32;

/** An ended run that still has captured bytes. */
export interface KeptCaptures {
  /** When the run was created. It is unique, and rises with the run's id unless the store's clock was set back. */
  createdAtUs: number;
  completedAtUs: number;
  /** Bytes of the capture file. */
  bytes: number;
  /** Where the run's consolidated record lies. */
  location: RecordLocation;
}

/** What the index section of a run's consolidated record says about captures. */
export function keptCaptures(
  { createdAtUs, completedAtUs, updatedAtUs }: Pick<IndexedRun, "createdAtUs" | "completedAtUs" | "updatedAtUs">,
  { bytes }: CapturesIndex,
  location: RecordLocation,
): KeptCaptures {
  return { createdAtUs, completedAtUs: completedAtUs ?? updatedAtUs, bytes, location };
}

/** A run whose captures have a tombstone. */
export interface RemovedRun {
  runId: string;
  removedAtUs: number;
}

const STRIDE = 6;
const INITIAL_ROWS = 256;

/**
 * What retention needs to know, folded from the index sections of consolidated records: the runs that keep captures, oldest first, with
 * their bytes (48 bytes of memory a run), and the runs that were removed last, whose files may still be there. Without `keepsRuns`, and after
 * `forgetRuns`, it keeps only the latter.
 */
export class CaptureIndex {
  #keepsRuns: boolean;
  /** Rows of createdAtUs, completedAtUs, bytes, segmentBase, offset, length; ascending by the first. */
  #rows: Float64Array = new Float64Array(INITIAL_ROWS * STRIDE);
  #head = 0;
  #end = 0;
  #bytes = 0;
  /** Runs that do not count until they are taken back, by creation time. */
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

  /** Captured bytes of these runs. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Forgets the single runs, for a service that never removes captures. @returns the sum of their captured bytes */
  forgetRuns(): number {
    const bytes = this.#bytes;
    this.#keepsRuns = false;
    this.#rows = new Float64Array(0);
    this.#head = 0;
    this.#end = 0;
    this.#bytes = 0;
    this.#aside.clear();
    return bytes;
  }

  /** Creation time of the oldest run that keeps captures; null without one. */
  get oldestCreatedAtUs(): number | null {
    return this.runs === 0 ? null : this.#at(this.#head, 0);
  }

  /** Adds a run that has ended with captures, or notes the new place of its record. */
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
        run.bytes,
        run.location.segmentBase,
        run.location.offset,
        run.location.length,
      ],
      row * STRIDE,
    );
    this.#count(row, 1);
  }

  /** Where the run's record lies now; undefined for a run that keeps no captures. */
  locationOf(createdAtUs: number): RecordLocation | undefined {
    const row = this.#lowerBound(createdAtUs);
    return this.#isRow(row, createdAtUs) ? this.#run(row).location : undefined;
  }

  /** Leaves the run out until `takeBack`, because its captures cannot be removed now and others should not wait for it. */
  setAside(createdAtUs: number): void {
    const row = this.#lowerBound(createdAtUs);
    if (!this.#isRow(row, createdAtUs)) return;
    const run = this.#run(row);
    this.drop(createdAtUs);
    this.#aside.set(createdAtUs, run);
  }

  /** Counts all runs that were set aside again. */
  takeBack(): void {
    for (const run of [...this.#aside.values()]) this.keep(run);
  }

  /** Forgets a run whose captures have a tombstone, or that has none. */
  drop(createdAtUs: number): void {
    this.#aside.delete(createdAtUs);
    const row = this.#lowerBound(createdAtUs);
    if (!this.#isRow(row, createdAtUs)) return;
    this.#count(row, -1);
    // The run is the oldest, or close to it: only the few rows before it move up.
    this.#rows.copyWithin((this.#head + 1) * STRIDE, this.#head * STRIDE, row * STRIDE);
    this.#head++;
  }

  /** Notes that a tombstone was recorded. The file may still be there. */
  removed(createdAtUs: number, runId: string, removedAtUs: number): void {
    this.drop(createdAtUs);
    const last = this.#lastRemoved;
    let at = last.length;
    // Nearly always the last: the log is in order of time.
    while (at > 0 && (last[at - 1]?.removedAtUs ?? 0) > removedAtUs) at--;
    // A tombstone can be recorded twice, when formats come late.
    for (let before = at - 1; last[before]?.removedAtUs === removedAtUs; before--) {
      if (last[before]?.runId === runId) {
        last.splice(before, 1);
        at--;
        break;
      }
    }
    last.splice(at, 0, { runId, removedAtUs });
    if (last.length > RETENTION_BATCH_RUNS) last.shift();
  }

  /** The store's clock was set to this time. Removals with a later time get this one, so that newer ones can replace them in the list. */
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

  /** Notes that the files of all removed runs are gone, durably. */
  finish(): void {
    this.#lastRemoved = [];
  }

  /**
   * The run to remove next: the oldest while all captures together exceed `maximumBytes`, else the oldest that ended at `endedByUs` or before. A
   * bound that is null is off.
   *
   * @param lastTimeUs of the store's clock; runs that were created later are from before the clock was set back, and go first
   */
  next(endedByUs: number | null, maximumBytes: number | null, lastTimeUs: number): KeptCaptures | undefined {
    if (this.runs === 0) return undefined;
    if (maximumBytes !== null && this.#bytes > maximumBytes) {
      const ahead = this.#lowerBound(lastTimeUs + 1);
      return this.#run(ahead < this.#end ? ahead : this.#head);
    }
    if (endedByUs === null) return undefined;
    // A run ends after it was created. So all runs after the first one that was created too late are too young.
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
    return {
      createdAtUs: this.#at(row, 0),
      completedAtUs: this.#at(row, 1),
      bytes: this.#at(row, 2),
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
    this.#bytes += sign * this.#at(row, 2);
  }

  /** The first row whose run was created at `createdAtUs` or later. */
  #lowerBound(createdAtUs: number): number {
    const isBelow = (row: number): boolean => this.#at(row, 0) < createdAtUs;
    if (this.#end > this.#head && isBelow(this.#end - 1)) return this.#end;
    return lowerBound(this.#head, this.#end, isBelow);
  }

  /** Makes room for a new row at `row`; returns where it is then. */
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
