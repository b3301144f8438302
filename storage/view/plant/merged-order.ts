import { lowerBound } from "../../../core/lower-bound.js";

/** Most ordinals of a block: a run that comes late moves at most so many. */
const BLOCK_RUNS = 512;

/**
 * The runs of all cells in the order of their ids, as ordinals of the joined table: so a page costs the same with any number of cells. Each block is an
 * array in ascending order, and so are the blocks. A page skips whole blocks. About 8 bytes a run.
 */
export class MergedOrder {
  readonly #wordOf: (ordinal: number, word: number) => number;
  readonly #blocks: number[][] = [];
  #size = 0;

  /** @param wordOf one of the four words of a run's id (uuid-words.ts): a text for each comparison would take seconds for a million runs */
  constructor(wordOf: (ordinal: number, word: number) => number) {
    this.#wordOf = wordOf;
  }

  get size(): number {
    return this.#size;
  }

  /** Most runs are newer than all others, which takes one comparison. The others are mostly near the end. */
  add(ordinal: number): void {
    const isBelow = (other: number): boolean => this.#isBelow(other, ordinal);
    const blocks = this.#blocks;
    let at = Math.max(0, blocks.length - 1);
    const last = blocks[at]?.at(-1);
    const isNewest = last === undefined || isBelow(last);
    if (!isNewest) {
      let back = 1;
      while (back < blocks.length && !isBelow(blocks[blocks.length - back]![0]!)) back *= 2;
      const from = Math.max(0, blocks.length - back);
      at = Math.max(0, lowerBound(from, blocks.length, (nth) => isBelow(blocks[nth]![0]!)) - 1);
    }
    const block = blocks[at] ?? [];
    const place = isNewest ? block.length : lowerBound(0, block.length, (nth) => isBelow(block[nth]!));
    block.splice(place, 0, ordinal);
    this.#size++;
    if (blocks.length === 0) blocks.push(block);
    if (block.length <= BLOCK_RUNS) return;
    // What comes in order leaves full blocks behind it.
    const kept = isNewest ? BLOCK_RUNS : BLOCK_RUNS / 2;
    blocks.splice(at, 1, block.slice(0, kept), block.slice(kept));
  }

  /** The runs have other ordinals now, and are in the same order. */
  renumber(ordinalOf: (before: number) => number): void {
    for (const block of this.#blocks) for (let nth = 0; nth < block.length; nth++) block[nth] = ordinalOf(block[nth]!);
  }

  #isBelow(left: number, right: number): boolean {
    for (let word = 0; word < 4; word++) {
      const difference = this.#wordOf(left, word) - this.#wordOf(right, word);
      if (difference !== 0) return difference < 0;
    }
    return false;
  }

  /** Newest first. */
  page(offset: number, limit: number): number[] {
    const ordinals: number[] = [];
    let left = offset;
    for (let at = this.#blocks.length - 1; at >= 0 && ordinals.length < limit; at--) {
      const block = this.#blocks[at]!;
      for (let nth = block.length - 1 - left; nth >= 0 && ordinals.length < limit; nth--) ordinals.push(block[nth]!);
      left = Math.max(0, left - block.length);
    }
    return ordinals;
  }
}
