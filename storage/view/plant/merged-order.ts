import { lowerBound } from "../../../core/lower-bound.js";
import type { RunPage } from "../run-index.js";
import type { RunTable } from "../view-runs.js";
import { KindCounts, type KindFilter, matchesKind } from "./kind-counts.js";

/** Most ordinals of a block: a run that comes late moves at most so many. */
const BLOCK_RUNS = 1_024;

/** Filters by what blocks count; one left out holds for every run. */
export interface OrderFilter extends KindFilter {
  /** Only runs updated strictly after this time. */
  readonly updatedSinceUs?: number | undefined;
}

interface Block {
  /** Ascending. */
  readonly ordinals: number[];
  readonly kinds: KindCounts;
  /** No run of the block was updated earlier. It may be too early: a run that is updated again does not change it. */
  earliestUs: number;
  latestUs: number;
}

/**
 * The runs of all cells in the order of their ids, as ordinals of the joined table: so a page costs the same with any number of cells. Blocks are in
 * ascending order, too. Each counts its runs by program and state, and knows its earliest and latest update. So a page skips whole blocks, and only
 * those of the page are walked, and those that straddle a mark. About 10 bytes a run.
 */
export class MergedOrder {
  readonly #runs: Pick<RunTable, "idWord" | "kind" | "updatedAtUs">;
  readonly #blocks: Block[] = [];
  #size = 0;

  /** @param runs ids are compared by their words (uuid-words.ts): a text for each comparison would take seconds for a million runs */
  constructor(runs: Pick<RunTable, "idWord" | "kind" | "updatedAtUs">) {
    this.#runs = runs;
  }

  get size(): number {
    return this.#size;
  }

  /** Most runs are newer than all others, which takes one comparison. The others are mostly near the end. */
  add(ordinal: number): void {
    const blocks = this.#blocks;
    const newest = blocks.at(-1)?.ordinals.at(-1);
    const isNewest = newest === undefined || this.#isBelow(newest, ordinal);
    const at = isNewest ? Math.max(0, blocks.length - 1) : this.#blockOf(ordinal);
    if (blocks.length === 0) blocks.push(this.#block([]));
    const block = blocks[at]!;
    const { ordinals } = block;
    const place = isNewest
      ? ordinals.length
      : lowerBound(0, ordinals.length, (nth) => this.#isBelow(ordinals[nth]!, ordinal));
    ordinals.splice(place, 0, ordinal);
    this.#size++;
    if (ordinals.length <= BLOCK_RUNS) {
      this.#count(block, ordinal);
      return;
    }
    // What comes in order leaves full blocks behind it.
    const kept = isNewest ? BLOCK_RUNS : BLOCK_RUNS / 2;
    blocks.splice(at, 1, this.#block(ordinals.slice(0, kept)), this.#block(ordinals.slice(kept)));
  }

  /** A run was updated. @param kindBefore its kind before */
  changed(ordinal: number, kindBefore: number): void {
    const block = this.#blocks[this.#blockOf(ordinal)]!;
    block.kinds.add(kindBefore, -1);
    this.#count(block, ordinal);
  }

  /** The runs have other ordinals now, and are in the same order. */
  renumber(ordinalOf: (before: number) => number): void {
    for (const { ordinals } of this.#blocks)
      for (let nth = 0; nth < ordinals.length; nth++) ordinals[nth] = ordinalOf(ordinals[nth]!);
  }

  /** In how many blocks some runs were updated after the mark, and perhaps not all: these are walked. */
  straddling(updatedSinceUs: number): number {
    let count = 0;
    for (const { earliestUs, latestUs } of this.#blocks)
      if (earliestUs <= updatedSinceUs && latestUs > updatedSinceUs) count++;
    return count;
  }

  /** Newest first. */
  page(filter: OrderFilter, offset: number, limit: number): RunPage {
    const hasAll = Object.values(filter).every((value) => value === undefined);
    const end = offset + limit;
    const ordinals: number[] = [];
    let total = 0;
    for (let at = this.#blocks.length - 1; at >= 0 && !(hasAll && total >= end); at--) {
      const block = this.#blocks[at]!;
      const count = hasAll ? block.ordinals.length : countOf(block, filter);
      if (count !== undefined && (total + count <= offset || total >= end)) {
        total += count;
        continue;
      }
      for (let nth = block.ordinals.length - 1; nth >= 0; nth--) {
        const ordinal = block.ordinals[nth]!;
        if (!hasAll && !this.#matches(ordinal, filter)) continue;
        if (total >= offset && total < end) ordinals.push(ordinal);
        total++;
      }
    }
    return { total: hasAll ? this.#size : total, ordinals };
  }

  #matches(ordinal: number, filter: OrderFilter): boolean {
    const { updatedSinceUs } = filter;
    if (updatedSinceUs !== undefined && this.#runs.updatedAtUs(ordinal) <= updatedSinceUs) return false;
    return matchesKind(this.#runs.kind(ordinal), filter);
  }

  /** The last block that begins with this run or one below it; 0 if there is none. */
  #blockOf(ordinal: number): number {
    const blocks = this.#blocks;
    const beginsAtOrBelow = (nth: number): boolean => !this.#isBelow(ordinal, blocks[nth]!.ordinals[0]!);
    let back = 1;
    while (back < blocks.length && !beginsAtOrBelow(blocks.length - back)) back *= 2;
    const from = Math.max(0, blocks.length - back);
    return Math.max(0, lowerBound(from, blocks.length, beginsAtOrBelow) - 1);
  }

  #block(ordinals: number[]): Block {
    const block = { ordinals, kinds: new KindCounts(), earliestUs: Number.POSITIVE_INFINITY, latestUs: 0 };
    for (const ordinal of ordinals) this.#count(block, ordinal);
    return block;
  }

  #count(block: Block, ordinal: number): void {
    const timeUs = this.#runs.updatedAtUs(ordinal);
    block.kinds.add(this.#runs.kind(ordinal), 1);
    block.earliestUs = Math.min(block.earliestUs, timeUs);
    block.latestUs = Math.max(block.latestUs, timeUs);
  }

  #isBelow(left: number, right: number): boolean {
    for (let word = 0; word < 4; word++) {
      const difference = this.#runs.idWord(left, word) - this.#runs.idWord(right, word);
      if (difference !== 0) return difference < 0;
    }
    return false;
  }
}

/** How many runs of the block match; undefined if only a walk can tell. */
function countOf({ kinds, earliestUs, latestUs }: Block, filter: OrderFilter): number | undefined {
  const { updatedSinceUs = -1 } = filter;
  if (latestUs <= updatedSinceUs) return 0;
  return earliestUs <= updatedSinceUs ? undefined : kinds.matching(filter);
}
