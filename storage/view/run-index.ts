/**
 * Answers list queries over runs, newest first, with exact totals and any offset, while runs come and change.
 *
 * It knows no ids. A run is its ordinal (0, 1, 2, … in creation order). Programs, statuses and outcomes are small
 * integers (state-bitmaps.ts), and a time is a number. All state is in typed arrays.
 *
 * The table shows what a query costs, with n runs. A state is a status, an outcome or both.
 *
 * | filters | cost of total and page |
 * |---|---|
 * | none | O(1) |
 * | state, program, serial number, each alone | O(log n) |
 * | program + state, serial number + state | O(log n); a list of fewer than 512 runs is walked whole instead |
 * | serial number + program (+ state) | the shorter of the two lists is walked: a serial number has few runs |
 * | updated_since | n/1024 comparisons, and a binary search for each block of 1,024 runs that straddles the mark |
 * | updated_since + any other | that, and a walk over the smaller of two sets: the runs of straddling blocks updated since, the runs that match the rest |
 *
 * The page itself adds O(limit) to all of them, at worst O(limit log n).
 */
import { LONG_LIST_LENGTH, OrdinalLists } from "../columns/ordinal-lists.js";
import { AllOrdinals, FoundOrdinals, ListedOrdinals, type OrdinalSet } from "../columns/ordinal-set.js";
import { TextTable } from "../columns/text-table.js";
import { TypedColumn } from "../columns/typed-column.js";
import type { IndexedRun } from "../records/indexed-run.js";
import { packKind } from "./plant/kind-counts.js";
import {
  isAnyState,
  matchesState,
  outcomeOf,
  packState,
  StateBitmaps,
  type StateFilter,
  statusOf,
} from "./state-bitmaps.js";
import { BLOCK_RUNS, UpdatedTimes } from "./updated-times.js";

export interface RunEntry {
  /** The program's number. Numbers are given in order of first use. */
  readonly programOrdinal: number;
  /** Null for a run without a serial number: no filter finds it. */
  readonly serialNumber: string | null;
  /** 0 to 7. */
  readonly status: number;
  /** 0 to 3. */
  readonly outcome: number;
  /** When the run was last updated. */
  readonly timeUs: number;
}

/** Filters, all of which must hold. A filter that is left out holds for every run. */
export interface RunQuery extends StateFilter {
  readonly programOrdinal?: number | undefined;
  readonly serialNumber?: string;
  /** Only runs updated strictly after this time. */
  readonly updatedSinceUs?: number;
  readonly offset: number;
  readonly limit: number;
}

export interface RunPage {
  /** How many runs match, on all pages together. */
  readonly total: number;
  /** The page's runs, newest created first. */
  readonly ordinals: readonly number[];
}

const EMPTY = new FoundOrdinals([]);
/** Stands for "no serial number" in a column of ordinals. */
const NO_SERIAL = 0xffff_ffff;

export class RunIndex {
  readonly #serials = new TextTable();
  readonly #programs = new TypedColumn(Uint32Array);
  readonly #serialOrdinals = new TypedColumn(Uint32Array);
  readonly #states = new TypedColumn(Uint8Array);
  readonly #byState = new StateBitmaps();
  readonly #byProgram = new OrdinalLists();
  readonly #bySerial = new OrdinalLists();
  readonly #updated = new UpdatedTimes();
  readonly #stateOf = (ordinal: number): number => this.#states.get(ordinal);

  /** How many runs there are. */
  get size(): number {
    return this.#states.length;
  }

  /** Adds the next run and returns its ordinal. */
  addRun({ programOrdinal, serialNumber, status, outcome, timeUs }: RunEntry): number {
    const serial = serialNumber === null ? NO_SERIAL : this.#serials.findOrAdd(serialNumber);
    return this.#add(programOrdinal, serial, status, outcome, timeUs);
  }

  /** Does what `addRun` does, without making a text. */
  addIndexedRun(run: IndexedRun, programOrdinal: number, timeUs: number): number {
    const { bytes, serialNumberAt, serialNumberEnd } = run;
    const serial = run.hasSerialNumber
      ? this.#serials.findOrAddBytes(bytes, serialNumberAt, serialNumberEnd)
      : NO_SERIAL;
    return this.#add(programOrdinal, serial, run.statusCode, run.qualityCode, timeUs);
  }

  #add(programOrdinal: number, serial: number, status: number, outcome: number, timeUs: number): number {
    const ordinal = this.#states.length;
    const state = packState(status, outcome);
    this.#states.push(state);
    this.#byState.set(ordinal, state);
    this.#programs.push(programOrdinal);
    this.#byProgram.append(programOrdinal, this.#stateOf);
    this.#serialOrdinals.push(serial);
    this.#bySerial.append(serial === NO_SERIAL ? undefined : serial, this.#stateOf);
    this.#updated.push(timeUs);
    return ordinal;
  }

  /** Notes that a run was updated, and its new status and outcome if they changed. */
  update(ordinal: number, { timeUs, ...changed }: StateFilter & { readonly timeUs: number }): void {
    this.changeState(ordinal, changed);
    this.#updated.set(ordinal, timeUs);
  }

  changeState(ordinal: number, { status, outcome }: StateFilter): void {
    const previous = this.#states.get(ordinal);
    const state = packState(status ?? statusOf(previous), outcome ?? outcomeOf(previous));
    if (state === previous) return;
    this.#states.set(ordinal, state);
    this.#byState.move(ordinal, previous, state);
    this.#byProgram.moveState(this.#programs.get(ordinal), ordinal, previous, state);
    const serial = this.#serialOrdinals.get(ordinal);
    if (serial !== NO_SERIAL) this.#bySerial.moveState(serial, ordinal, previous, state);
  }

  /** What the index knows of a run. */
  entry(ordinal: number): RunEntry {
    const serial = this.#serialOrdinals.get(ordinal);
    return {
      programOrdinal: this.#programs.get(ordinal),
      serialNumber: serial === NO_SERIAL ? null : this.#serials.text(serial),
      status: this.status(ordinal),
      outcome: this.outcome(ordinal),
      timeUs: this.#updated.timeUs(ordinal),
    };
  }

  /** When the run was last updated. */
  timeUs(ordinal: number): number {
    return this.#updated.timeUs(ordinal);
  }

  /** When any run was last updated; 0 without runs. */
  get latestUs(): number {
    return this.#updated.latestUs;
  }

  /** The runs updated after `afterUs`, the earliest update first, at most `limit`. */
  earliestAfter(afterUs: number, limit: number): number[] {
    return this.#updated.earliestAfter(afterUs, limit);
  }

  /** A run's program and state in one number (plant/kind-counts.ts). */
  kind(ordinal: number): number {
    return packKind(this.#programs.get(ordinal), this.#states.get(ordinal));
  }

  status(ordinal: number): number {
    return statusOf(this.#states.get(ordinal));
  }

  outcome(ordinal: number): number {
    return outcomeOf(this.#states.get(ordinal));
  }

  /** How many runs a program has: O(1). */
  programRunCount(programOrdinal: number): number {
    return this.#byProgram.count(programOrdinal);
  }

  /** The newest run of a status: O(log n). */
  newestOfStatus(status: number): number | undefined {
    const bitmap = this.#byState.get({ status });
    return bitmap === undefined || bitmap.size === 0 ? undefined : bitmap.select(bitmap.size - 1);
  }

  query({ programOrdinal, serialNumber, status, outcome, updatedSinceUs, offset, limit }: RunQuery): RunPage {
    const filter = { status, outcome };
    const serial = serialNumber === undefined ? undefined : this.#serials.find(serialNumber);
    if (serial === -1) return { total: 0, ordinals: [] };
    const matching = this.#matching(programOrdinal, serial, filter);
    if (updatedSinceUs === undefined) return page(matching, offset, limit);
    return this.#pageUpdatedSince(matching, updatedSinceUs, offset, limit, (ordinal) =>
      this.#matches(ordinal, programOrdinal, serial, filter),
    );
  }

  #matches(
    ordinal: number,
    programOrdinal: number | undefined,
    serial: number | undefined,
    filter: StateFilter,
  ): boolean {
    return (
      (programOrdinal === undefined || this.#programs.get(ordinal) === programOrdinal) &&
      (serial === undefined || this.#serialOrdinals.get(ordinal) === serial) &&
      matchesState(this.#states.get(ordinal), filter)
    );
  }

  /** The runs that match every filter except updated_since. */
  #matching(programOrdinal: number | undefined, serial: number | undefined, filter: StateFilter): OrdinalSet {
    if (serial !== undefined && programOrdinal !== undefined) {
      const [lists, key] =
        this.#bySerial.count(serial) <= this.#byProgram.count(programOrdinal)
          ? [this.#bySerial, serial]
          : [this.#byProgram, programOrdinal];
      return new FoundOrdinals(
        lists.ascending(key).filter((ordinal) => this.#matches(ordinal, programOrdinal, serial, filter)),
      );
    }
    if (serial !== undefined) return this.#listed(this.#bySerial, serial, filter);
    if (programOrdinal !== undefined) return this.#listed(this.#byProgram, programOrdinal, filter);
    if (isAnyState(filter)) return new AllOrdinals(this.size);
    const bitmap = this.#byState.get(filter);
    return bitmap ?? EMPTY;
  }

  #listed(lists: OrdinalLists, key: number, filter: StateFilter): OrdinalSet {
    const list = lists.longList(key);
    if (list === undefined) {
      const ordinals = lists.ascending(key);
      return new FoundOrdinals(
        isAnyState(filter) ? ordinals : ordinals.filter((ordinal) => matchesState(this.#states.get(ordinal), filter)),
      );
    }
    if (isAnyState(filter)) return new ListedOrdinals(list);
    const positions = list.states.get(filter);
    return positions === undefined ? EMPTY : new ListedOrdinals(list, positions);
  }

  /** The page of those runs among `matching` that were updated after the mark. */
  #pageUpdatedSince(
    matching: OrdinalSet,
    afterUs: number,
    offset: number,
    limit: number,
    matches: (ordinal: number) => boolean,
  ): RunPage {
    const updated = this.#updated;
    const counts = new Uint16Array(updated.blockCount);
    let straddling = 0;
    for (let block = 0; block < counts.length; block++) {
      const count = updated.countInBlock(block, afterUs);
      counts[block] = count;
      if (count < updated.blockSize(block)) straddling += count;
    }
    const matchesAll = matching.size === this.size;
    if (!matchesAll && (matching.size <= LONG_LIST_LENGTH || matching.size <= straddling)) {
      const found: number[] = [];
      matching.forEachDescending(matching.size - 1, matching.size, (ordinal) => {
        if (updated.timeUs(ordinal) > afterUs) found.push(ordinal);
      });
      return page(new FoundOrdinals(found.reverse()), offset, limit);
    }

    let total = 0;
    const end = offset + limit;
    const ordinals: number[] = [];
    const visit = (ordinal: number): void => {
      if (total >= offset && total < end) ordinals.push(ordinal);
      total++;
    };
    const visitMatching = (ordinal: number): void => {
      if (matches(ordinal)) visit(ordinal);
    };
    for (let block = counts.length - 1; block >= 0; block--) {
      const count = counts[block]!;
      if (count === 0) continue;
      if (count === updated.blockSize(block)) {
        // Adjacent blocks that count whole are one range of ordinals.
        const last = block;
        while (block > 0 && counts[block - 1] === BLOCK_RUNS) block--;
        const highest = matching.rank(last * BLOCK_RUNS + updated.blockSize(last)) - 1;
        const inRange = highest + 1 - matching.rank(block * BLOCK_RUNS);
        const skipped = Math.min(inRange, Math.max(0, offset - total));
        const taken = Math.min(inRange - skipped, Math.max(0, end - Math.max(total, offset)));
        matching.forEachDescending(highest - skipped, taken, (ordinal) => ordinals.push(ordinal));
        total += inRange;
      } else if (matchesAll && (total + count <= offset || total >= end)) {
        total += count;
      } else {
        updated.forEachInBlockDescending(block, afterUs, matchesAll ? visit : visitMatching);
      }
    }
    return { total, ordinals };
  }
}

function page(matching: OrdinalSet, offset: number, limit: number): RunPage {
  const ordinals: number[] = [];
  matching.forEachDescending(matching.size - 1 - offset, limit, (ordinal) => ordinals.push(ordinal));
  return { total: matching.size, ordinals };
}
