/**
 * When each run was last updated, and which runs were updated after a given time (the mark), in creation order.
 *
 * The query "updated after t, newest created first, exact total, any offset" has two dimensions, time and creation order. A list in order of time
 * would have to sort all runs after t for a page, and every update would leave a dead entry. So there are blocks of 1,024 neighbouring ordinals, each
 * with its times sorted. Two short columns have each block's earliest and latest time. For a mark, a block counts whole or not at all. If it
 * straddles the mark, one binary search counts its runs. Runs are mostly updated near their creation, so hardly any block straddles. A million runs
 * take about a thousand comparisons, some microseconds, and at worst a thousand binary searches.
 *
 * Memory: 8 bytes a run for its time, 10 for its place in the sorted block.
 */
import { TypedColumn } from "../columns/typed-column.js";

const BLOCK_SHIFT = 10;
/** Count of the runs in a full block. */
export const BLOCK_RUNS = 1 << BLOCK_SHIFT;
const BLOCK_MASK = BLOCK_RUNS - 1;

export class UpdatedTimes {
  /** By run: the time of its last update in microseconds since the Unix epoch. */
  readonly #timesUs = new TypedColumn(Float64Array);
  /** By block: its times, ascending. `#sortedLocals` has beside each the run's ordinal less the block's first. */
  readonly #sortedTimesUs = new TypedColumn(Float64Array);
  readonly #sortedLocals = new TypedColumn(Uint16Array);
  readonly #earliestUs = new TypedColumn(Float64Array, BLOCK_RUNS);
  readonly #latestUs = new TypedColumn(Float64Array, BLOCK_RUNS);
  /** One bit for each run of a block, to put a block's runs in order. All are clear between uses. */
  readonly #marks = new Uint32Array(BLOCK_RUNS / 32);

  get blockCount(): number {
    return this.#earliestUs.length;
  }

  timeUs(ordinal: number): number {
    return this.#timesUs.get(ordinal);
  }

  /** When any run was last updated; 0 without runs. */
  get latestUs(): number {
    let latestUs = 0;
    for (let block = 0; block < this.blockCount; block++) latestUs = Math.max(latestUs, this.#latestUs.get(block));
    return latestUs;
  }

  /**
   * The runs updated after `afterUs`, the earliest update first, at most `limit`. Runs are mostly updated near their
   * creation. So the first blocks that have any fill the list, and most other blocks cost one comparison.
   */
  earliestAfter(afterUs: number, limit: number): number[] {
    let found: number[] = [];
    for (let block = 0; block < this.blockCount; block++) {
      if (this.#latestUs.get(block) <= afterUs) continue;
      const beforeUs = found.length < limit ? Number.POSITIVE_INFINITY : this.timeUs(found[limit - 1]!);
      if (this.#earliestUs.get(block) >= beforeUs) continue;
      const first = block << BLOCK_SHIFT;
      const place = this.#firstAfter(block, afterUs);
      const end = Math.min(this.blockSize(block), place + limit);
      const ofBlock: number[] = [];
      for (let at = place; at < end; at++) ofBlock.push(first + this.#sortedLocals.get(first + at));
      found = found.length === 0 ? ofBlock : this.#merged(found, ofBlock, limit);
    }
    return found;
  }

  #merged(left: readonly number[], right: readonly number[], limit: number): number[] {
    const merged: number[] = [];
    for (let l = 0, r = 0; merged.length < limit && (l < left.length || r < right.length); ) {
      const takesLeft = r === right.length || (l < left.length && this.timeUs(left[l]!) <= this.timeUs(right[r]!));
      merged.push(takesLeft ? left[l++]! : right[r++]!);
    }
    return merged;
  }

  /** Adds the next run. */
  push(timeUs: number): void {
    const ordinal = this.#timesUs.length;
    this.#timesUs.push(timeUs);
    this.#sortedTimesUs.push(timeUs);
    this.#sortedLocals.push(ordinal & BLOCK_MASK);
    if ((ordinal & BLOCK_MASK) === 0) {
      this.#earliestUs.push(timeUs);
      this.#latestUs.push(timeUs);
    } else {
      this.#place(ordinal >>> BLOCK_SHIFT, ordinal & BLOCK_MASK, timeUs, ordinal & BLOCK_MASK);
    }
  }

  set(ordinal: number, timeUs: number): void {
    const block = ordinal >>> BLOCK_SHIFT;
    const local = ordinal & BLOCK_MASK;
    const oldTimeUs = this.#timesUs.get(ordinal);
    this.#timesUs.set(ordinal, timeUs);
    // The place of the old time. Equal times lie side by side, but the service's clock never gives any.
    let place = this.#firstAfter(block, oldTimeUs) - 1;
    const first = block << BLOCK_SHIFT;
    while (this.#sortedLocals.get(first + place) !== local) place--;
    this.#place(block, place, timeUs, local);
  }

  /** Count of the runs in a block. All blocks except the last are full. */
  blockSize(block: number): number {
    return Math.min(BLOCK_RUNS, this.#timesUs.length - (block << BLOCK_SHIFT));
  }

  /** How many runs of a block were updated after `afterUs`. */
  countInBlock(block: number, afterUs: number): number {
    if (this.#latestUs.get(block) <= afterUs) return 0;
    if (this.#earliestUs.get(block) > afterUs) return this.blockSize(block);
    return this.blockSize(block) - this.#firstAfter(block, afterUs);
  }

  /** Calls `visit` with the ordinals of a block's runs that were updated after `afterUs`, highest first. */
  forEachInBlockDescending(block: number, afterUs: number, visit: (ordinal: number) => void): void {
    const first = block << BLOCK_SHIFT;
    const size = this.blockSize(block);
    const marks = this.#marks;
    for (let place = this.#firstAfter(block, afterUs); place < size; place++) {
      const local = this.#sortedLocals.get(first + place);
      marks[local >>> 5]! |= 1 << (local & 31);
    }
    for (let word = marks.length - 1; word >= 0; word--) {
      let bits = marks[word]!;
      marks[word] = 0;
      while (bits !== 0) {
        const bit = 31 - Math.clz32(bits);
        bits &= ~(1 << bit);
        visit(first + word * 32 + bit);
      }
    }
  }

  /** The first place in the block with a time after `afterUs`; the block's size if there is none. */
  #firstAfter(block: number, afterUs: number): number {
    const first = block << BLOCK_SHIFT;
    const times = this.#sortedTimesUs.chunkOf(first);
    const start = first & (times.length - 1);
    let low = start;
    let high = start + this.blockSize(block);
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (times[middle]! <= afterUs) low = middle + 1;
      else high = middle;
    }
    return low - start;
  }

  /** Moves the run at `place` of the block's order to where `timeUs` belongs. */
  #place(block: number, place: number, timeUs: number, local: number): void {
    const first = block << BLOCK_SHIFT;
    const times = this.#sortedTimesUs.chunkOf(first);
    const locals = this.#sortedLocals.chunkOf(first);
    const start = first & (times.length - 1);
    const end = start + this.blockSize(block);
    let at = start + place;
    // Time moves forward, so the new place is nearly always the last, and no search is needed.
    if (at < end - 1 && times[end - 1]! <= timeUs) {
      times.copyWithin(at, at + 1, end);
      locals.copyWithin(at, at + 1, end);
      at = end - 1;
    }
    for (; at < end - 1 && times[at + 1]! < timeUs; at++) {
      times[at] = times[at + 1]!;
      locals[at] = locals[at + 1]!;
    }
    for (; at > start && times[at - 1]! > timeUs; at--) {
      times[at] = times[at - 1]!;
      locals[at] = locals[at - 1]!;
    }
    times[at] = timeUs;
    locals[at] = local;
    this.#earliestUs.set(block, times[start]!);
    this.#latestUs.set(block, times[end - 1]!);
  }
}
