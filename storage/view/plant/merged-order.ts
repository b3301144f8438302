/** Most ordinals of a block: a run that comes late moves at most so many. */
const BLOCK_RUNS = 512;

/**
 * The runs of all cells in the order of their ids, as ordinals of the joined table: so a page costs the same with any number of cells. Each block is an
 * array in ascending order, and so are the blocks. A page skips whole blocks. About 8 bytes a run.
 */
export class MergedOrder {
  readonly #idOf: (ordinal: number) => string;
  readonly #blocks: number[][] = [];
  #size = 0;

  constructor(idOf: (ordinal: number) => string) {
    this.#idOf = idOf;
  }

  get size(): number {
    return this.#size;
  }

  /** O(log runs) comparisons. Most runs are newer than almost all others. */
  add(ordinal: number): void {
    const id = this.#idOf(ordinal);
    const isAbove = (other: number): boolean => this.#idOf(other) > id;
    const at = Math.max(0, firstOf(this.#blocks.length, (nth) => isAbove(this.#blocks[nth]![0]!)) - 1);
    const block = this.#blocks[at] ?? [];
    const place = firstOf(block.length, (nth) => isAbove(block[nth]!));
    block.splice(place, 0, ordinal);
    this.#size++;
    if (this.#blocks.length === 0) this.#blocks.push(block);
    if (block.length <= BLOCK_RUNS) return;
    // What comes in order leaves full blocks behind it.
    const isLast = at === this.#blocks.length - 1 && place === BLOCK_RUNS;
    const kept = isLast ? BLOCK_RUNS : BLOCK_RUNS / 2;
    this.#blocks.splice(at, 1, block.slice(0, kept), block.slice(kept));
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

/** The first of `count` places for which it holds, and for all behind it; `count` if there is none. */
function firstOf(count: number, holds: (place: number) => boolean): number {
  let [from, end] = [0, count];
  while (from < end) {
    const middle = (from + end) >>> 1;
    if (holds(middle)) end = middle;
    else from = middle + 1;
  }
  return from;
}
