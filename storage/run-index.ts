/**
 * Answers the list queries over runs: exact totals and any offset, newest created first, while runs come and change.
 *
 * It knows no ids and no domain: a run is its ordinal (0, 1, 2, … in creation order), a program a small integer, a
 * status one of a few small integers, a time a number. All state lies in typed arrays.
 *
 * What a query costs, with n runs:
 *
 * | filters | cost of total and page |
 * |---|---|
 * | none | O(1) |
 * | status, program, serial number, each alone | O(log n) |
 * | program + status, serial number + status | O(log n); a list below 512 runs is walked whole instead |
 * | serial number + program (+ status) | as without the program, while the serial number's runs are all of one program; else the shorter of the two lists is walked |
 * | updated_since | n/1024 comparisons, and a binary search for each block of 1,024 runs that straddles the mark |
 * | updated_since + any other | that, and a walk over the smaller of: the straddling blocks' runs updated since, the runs that match the rest |
 *
 * To all add the page itself: O(limit), at worst O(limit log n).
 */
import { LONG_LIST_LENGTH, OrdinalLists } from "./ordinal-lists.js";
import { AllOrdinals, BitmapOrdinals, FoundOrdinals, ListedOrdinals, type OrdinalSet } from "./ordinal-set.js";
import { StatusBitmaps } from "./status-bitmaps.js";
import { TextTable } from "./text-table.js";
import { TypedColumn } from "./typed-column.js";
import { BLOCK_RUNS, UpdatedTimes } from "./updated-times.js";

export interface RunEntry {
  /** The program's number, a small integer: numbers are given in order of first use. */
  readonly programOrdinal: number;
  /** Null for a run without one: no filter finds it. */
  readonly serialNumber: string | null;
  /** A small integer. */
  readonly status: number;
  /** When the run was last updated. */
  readonly timeUs: number;
}

/** Filters, all of which must hold; one left out holds for every run. */
export interface RunQuery {
  readonly programOrdinal?: number;
  readonly serialNumber?: string;
  readonly status?: number;
  /** Only runs updated after this, strictly. */
  readonly updatedSinceUs?: number;
  readonly offset: number;
  readonly limit: number;
}

export interface RunPage {
  /** How many runs match, on every page. */
  readonly total: number;
  /** The page's runs, newest created first. */
  readonly ordinals: readonly number[];
}

/** What the index is made of; the rest follows from it. A serial number that a run has not is `NO_SERIAL`. */
export interface RunColumns {
  programs: Uint32Array;
  serials: Uint32Array;
  statuses: Uint8Array;
  timesUs: Float64Array;
  /** The serial numbers as UTF-8, end to end, and where each ends. */
  serialBytes: Uint8Array;
  serialEnds: Uint32Array;
}

const EMPTY = new FoundOrdinals([]);
/** Stands for "no serial number" in a column of ordinals. */
export const NO_SERIAL = 0xffff_ffff;
/** Stands for "several programs" where a serial number's one program is noted. */
const SEVERAL = 0xffff_ffff;
/** Stands for "none yet" there, while a column is filled. */
const UNSEEN = 0xffff_fffe;

export class RunIndex {
  readonly #serials = new TextTable();
  /** Per serial number: the program of all its runs, or SEVERAL. */
  readonly #programOfSerial = new TypedColumn(Uint32Array);
  readonly #programs = new TypedColumn(Uint32Array);
  readonly #serialOrdinals = new TypedColumn(Uint32Array);
  readonly #statuses = new TypedColumn(Uint8Array);
  readonly #byStatus = new StatusBitmaps();
  readonly #byProgram = new OrdinalLists();
  readonly #bySerial = new OrdinalLists();
  readonly #updated = new UpdatedTimes();
  readonly #statusOf = (ordinal: number): number => this.#statuses.get(ordinal);

  /** How many runs there are. */
  get size(): number {
    return this.#statuses.length;
  }

  /** Bytes of all arrays, spare room included. */
  get bytesUsed(): number {
    return [
      this.#serials,
      this.#programOfSerial,
      this.#programs,
      this.#serialOrdinals,
      this.#statuses,
      this.#byStatus,
      this.#byProgram,
      this.#bySerial,
      this.#updated,
    ].reduce((bytes, part) => bytes + part.bytesUsed, 0);
  }

  /** Adds the next run and returns its ordinal. */
  addRun({ programOrdinal, serialNumber, status, timeUs }: RunEntry): number {
    const ordinal = this.#statuses.length;
    this.#statuses.push(status);
    this.#byStatus.set(ordinal, status);
    this.#programs.push(programOrdinal);
    this.#byProgram.append(programOrdinal, this.#statusOf);
    if (serialNumber === null) {
      this.#serialOrdinals.push(NO_SERIAL);
      this.#bySerial.append(undefined, this.#statusOf);
    } else {
      const serial = this.#serials.findOrAdd(serialNumber);
      if (serial === this.#programOfSerial.length) this.#programOfSerial.push(programOrdinal);
      else if (this.#programOfSerial.get(serial) !== programOrdinal) this.#programOfSerial.set(serial, SEVERAL);
      this.#serialOrdinals.push(serial);
      this.#bySerial.append(serial, this.#statusOf);
    }
    this.#updated.push(timeUs);
    return ordinal;
  }

  /** Takes these runs in place of what it held. O(n), in tight loops. */
  load({ programs, serials, statuses, timesUs, serialBytes, serialEnds }: RunColumns): void {
    const programOfSerial = new Uint32Array(serialEnds.length).fill(UNSEEN);
    let programCount = 0;
    for (let ordinal = 0; ordinal < programs.length; ordinal++) {
      const program = programs[ordinal]!;
      if (program >= programCount) programCount = program + 1;
      const serial = serials[ordinal]!;
      if (serial === NO_SERIAL) continue;
      const before = programOfSerial[serial]!;
      if (before !== program) programOfSerial[serial] = before === UNSEEN ? program : SEVERAL;
    }
    this.#serials.load(serialBytes, serialEnds);
    this.#programOfSerial.load(programOfSerial);
    this.#programs.load(programs);
    this.#serialOrdinals.load(serials);
    this.#statuses.load(statuses);
    this.#byStatus.load(statuses);
    this.#byProgram.load(programs, programCount, statuses);
    this.#bySerial.load(serials, serialEnds.length, statuses);
    this.#updated.load(timesUs);
  }

  /** The columns that `load` takes, in parts. */
  parts(): { readonly [C in keyof RunColumns]: Iterable<RunColumns[C]> } {
    return {
      programs: this.#programs.parts(),
      serials: this.#serialOrdinals.parts(),
      statuses: this.#statuses.parts(),
      timesUs: this.#updated.timeParts(),
      serialBytes: this.#serials.byteParts(),
      serialEnds: this.#serials.endParts(),
    };
  }

  /** Notes that a run was updated, and its status if that changed. */
  update(ordinal: number, { status, timeUs }: { readonly status?: number; readonly timeUs: number }): void {
    const previous = this.#statuses.get(ordinal);
    if (status !== undefined && status !== previous) {
      this.#statuses.set(ordinal, status);
      this.#byStatus.move(ordinal, previous, status);
      this.#byProgram.moveStatus(this.#programs.get(ordinal), ordinal, previous, status);
      const serial = this.#serialOrdinals.get(ordinal);
      if (serial !== NO_SERIAL) this.#bySerial.moveStatus(serial, ordinal, previous, status);
    }
    this.#updated.set(ordinal, timeUs);
  }

  /** What the index knows of a run. */
  entry(ordinal: number): RunEntry {
    const serial = this.#serialOrdinals.get(ordinal);
    return {
      programOrdinal: this.#programs.get(ordinal),
      serialNumber: serial === NO_SERIAL ? null : this.#serials.text(serial),
      status: this.#statuses.get(ordinal),
      timeUs: this.#updated.timeUs(ordinal),
    };
  }

  /** When the run was last updated. */
  timeUs(ordinal: number): number {
    return this.#updated.timeUs(ordinal);
  }

  status(ordinal: number): number {
    return this.#statuses.get(ordinal);
  }

  /** How many runs a program has: O(1). */
  programRunCount(programOrdinal: number): number {
    return this.#byProgram.count(programOrdinal);
  }

  /** The newest run of a status: O(log n). */
  newestOfStatus(status: number): number | undefined {
    const bitmap = this.#byStatus.get(status);
    return bitmap === undefined || bitmap.count === 0 ? undefined : bitmap.select(bitmap.count - 1);
  }

  query({ programOrdinal, serialNumber, status, updatedSinceUs, offset, limit }: RunQuery): RunPage {
    const serial = serialNumber === undefined ? undefined : this.#serials.find(serialNumber);
    if (serial === -1) return { total: 0, ordinals: [] };
    const matching = this.#matching(programOrdinal, serial, status);
    if (updatedSinceUs === undefined) return page(matching, offset, limit);
    return this.#pageUpdatedSince(matching, updatedSinceUs, offset, limit, (ordinal) =>
      this.#matches(ordinal, programOrdinal, serial, status),
    );
  }

  #matches(
    ordinal: number,
    programOrdinal: number | undefined,
    serial: number | undefined,
    status: number | undefined,
  ): boolean {
    return (
      (programOrdinal === undefined || this.#programs.get(ordinal) === programOrdinal) &&
      (serial === undefined || this.#serialOrdinals.get(ordinal) === serial) &&
      (status === undefined || this.#statuses.get(ordinal) === status)
    );
  }

  /** The runs that match every filter but updated_since. */
  #matching(programOrdinal: number | undefined, serial: number | undefined, status: number | undefined): OrdinalSet {
    if (serial !== undefined && programOrdinal !== undefined) {
      const onlyProgram = this.#programOfSerial.get(serial);
      if (onlyProgram === programOrdinal) return this.#listed(this.#bySerial, serial, status);
      if (onlyProgram !== SEVERAL) return EMPTY;
      const [lists, key] =
        this.#bySerial.count(serial) <= this.#byProgram.count(programOrdinal)
          ? [this.#bySerial, serial]
          : [this.#byProgram, programOrdinal];
      return new FoundOrdinals(
        lists.ascending(key).filter((ordinal) => this.#matches(ordinal, programOrdinal, serial, status)),
      );
    }
    if (serial !== undefined) return this.#listed(this.#bySerial, serial, status);
    if (programOrdinal !== undefined) return this.#listed(this.#byProgram, programOrdinal, status);
    if (status === undefined) return new AllOrdinals(this.size);
    const bitmap = this.#byStatus.get(status);
    return bitmap === undefined ? EMPTY : new BitmapOrdinals(bitmap);
  }

  #listed(lists: OrdinalLists, key: number, status: number | undefined): OrdinalSet {
    const list = lists.longList(key);
    if (list === undefined) {
      const ordinals = lists.ascending(key);
      return new FoundOrdinals(
        status === undefined ? ordinals : ordinals.filter((ordinal) => this.#statuses.get(ordinal) === status),
      );
    }
    if (status === undefined) return new ListedOrdinals(list);
    const positions = list.statuses.get(status);
    return positions === undefined ? EMPTY : new ListedOrdinals(list, positions);
  }

  /** The page of those among `matching` (also given as a test of one run) that were updated after the mark. */
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
        // A stretch of blocks that count whole is one range of ordinals.
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
