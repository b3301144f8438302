/**
 * A growing bitmap with rank (how many bits are set below a position) and select (where the k-th set bit is), both in O(log n) while bits change.
 *
 * The bits lie in 32-bit words; a Fenwick tree (P. Fenwick, "A new data structure for cumulative frequency tables",
 * 1994) over blocks of 512 bits holds the counts. Memory: 1 bit a position and 1/16 of that for the tree, both
 * doubled when full (a copy of 128 KiB at a million positions).
 */

const WORDS_PER_BLOCK = 16;
const BLOCK_SHIFT = 9; // 512 bits

/** Set bits of a 32-bit word (the classic SWAR count, H. Warren, Hacker's Delight, 5-1). */
function countBits(word: number): number {
  let x = word - ((word >>> 1) & 0x5555_5555);
  x = (x & 0x3333_3333) + ((x >>> 2) & 0x3333_3333);
  x = (x + (x >>> 4)) & 0x0f0f_0f0f;
  return Math.imul(x, 0x0101_0101) >>> 24;
}

/** An `OrdinalSet` of the positions whose bit is set. */
export class RankedBitmap {
  #words = new Uint32Array(WORDS_PER_BLOCK);
  /** Fenwick tree over the blocks, 1-based; its length is a power of two plus one. */
  #tree = new Uint32Array(2);
  #count = 0;

  /** How many bits are set. */
  get size(): number {
    return this.#count;
  }

  has(position: number): boolean {
    const word = this.#words[position >>> 5];
    return word !== undefined && (word & (1 << (position & 31))) !== 0;
  }

  /** Sets the bit; a bit that is set already stays so. */
  set(position: number): void {
    if (position >>> 5 >= this.#words.length) this.#grow(position);
    const word = this.#words[position >>> 5]!;
    const bit = 1 << (position & 31);
    if ((word & bit) !== 0) return;
    this.#words[position >>> 5] = word | bit;
    this.#add(position >>> BLOCK_SHIFT, 1);
  }

  /** Clears the bit; a bit that is clear already stays so. */
  clear(position: number): void {
    if (!this.has(position)) return;
    this.#words[position >>> 5]! &= ~(1 << (position & 31));
    this.#add(position >>> BLOCK_SHIFT, -1);
  }

  /** How many bits are set below `position`, which may lie beyond the last bit. */
  rank(position: number): number {
    if (position >>> 5 >= this.#words.length) return this.#count;
    let rank = 0;
    for (let node = position >>> BLOCK_SHIFT; node > 0; node &= node - 1) rank += this.#tree[node]!;
    const lastWord = position >>> 5;
    for (let word = (position >>> BLOCK_SHIFT) * WORDS_PER_BLOCK; word < lastWord; word++) {
      rank += countBits(this.#words[word]!);
    }
    return rank + countBits(this.#words[lastWord]! & ((1 << (position & 31)) - 1));
  }

  /** The position of the set bit that has `rank` set bits below it; `rank` is 0 to count - 1. */
  select(rank: number): number {
    let node = 0;
    let left = rank;
    for (let step = (this.#tree.length - 1) >>> 1; step > 0; step >>>= 1) {
      const below = this.#tree[node + step]!;
      if (below <= left) {
        node += step;
        left -= below;
      }
    }
    let word = node * WORDS_PER_BLOCK;
    for (let bits = countBits(this.#words[word]!); bits <= left; bits = countBits(this.#words[word]!)) {
      left -= bits;
      word++;
    }
    let remaining = this.#words[word]!;
    for (; left > 0; left--) remaining &= remaining - 1;
    return word * 32 + 31 - Math.clz32(remaining & -remaining);
  }

  /**
   * Calls `visit` with the positions of up to `limit` set bits downwards from the one of the given rank: O(log n) for
   * each at worst, and a few words of scanning where bits lie close together.
   */
  forEachDescending(rank: number, limit: number, visit: (position: number) => void): void {
    const lastRank = Math.max(0, rank - limit + 1);
    if (rank < lastRank) return;
    let position = this.select(rank);
    visit(position);
    for (let next = rank - 1; next >= lastRank; next--) {
      const found = this.#previousInBlock(position);
      position = found >= 0 ? found : this.select(next);
      visit(position);
    }
  }

  /** The next set bit below `position` within its block, or -1. */
  #previousInBlock(position: number): number {
    let word = position >>> 5;
    const firstWord = (position >>> BLOCK_SHIFT) * WORDS_PER_BLOCK;
    let bits = this.#words[word]! & ((1 << (position & 31)) - 1);
    while (bits === 0) {
      if (word === firstWord) return -1;
      bits = this.#words[--word]!;
    }
    return word * 32 + 31 - Math.clz32(bits);
  }

  #add(block: number, change: number): void {
    this.#count += change;
    const tree = this.#tree;
    for (let node = block + 1; node < tree.length; node += node & -node) tree[node]! += change;
  }

  #grow(position: number): void {
    let blocks = this.#tree.length - 1;
    while (blocks <= position >>> BLOCK_SHIFT) blocks *= 2;
    const words = new Uint32Array(blocks * WORDS_PER_BLOCK);
    words.set(this.#words);
    const tree = new Uint32Array(blocks + 1);
    tree.set(this.#tree);
    // Each doubling adds one node that covers all blocks there were; every other new node covers empty blocks only.
    for (let node = this.#tree.length - 1; node < blocks; node *= 2) tree[node * 2] = this.#count;
    this.#words = words;
    this.#tree = tree;
  }
}
