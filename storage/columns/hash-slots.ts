/**
 * The slots of an open-addressing hash table with linear probing. The entries lie elsewhere, are numbered 0, 1, 2, … and are never removed; a slot
 * holds an entry's number. The table is at most 3/4 full.
 *
 * Beside each slot is a byte, its tag: 0 for a free slot, otherwise 7 bits of the entry's hash. 64 tags share a cache line, while each entry to look
 * at is a cache miss. A search for an unknown entry passes eight others on average when the table is 3/4 full, and with the tags it looks at
 * hardly any of them.
 *
 * Growth never pauses. A table twice as large is allocated (the system hands out zeroed pages as they are touched), and each later `add` moves two
 * entries of the old table, in the order of their numbers, in which their hashes lie side by side. Until all are moved, `find` looks into both
 * tables. The old slots do not change meanwhile, so an entry that is in both is found in either.
 *
 * Memory: 5 bytes a slot. That is 6.7 to 8.9 bytes an entry, and 13.3 to 20 while entries move, which they do during half of all adds.
 */
const INITIAL_SLOTS = 64;
/** A table twice as large has room for as many entries again. All old ones have moved when half of the new ones have come. */
const ENTRIES_MOVED_PER_ADD = 2;

/** What the table asks of the owner of the entries. */
export interface SlotEntries {
  /** The hash of an entry, u32, the same as it was at `add`. */
  hashOf(entry: number): number;
  /** Whether the entry has the key that is looked for, byte for byte: the hash only says where to look. */
  hasKey(entry: number): boolean;
}

interface Slots {
  /** An entry's number; valid where the tag is not 0. */
  readonly entries: Uint32Array;
  readonly tags: Uint8Array;
}

function emptySlots(count: number): Slots {
  return { entries: new Uint32Array(count), tags: new Uint8Array(count) };
}

/** The tag comes from those bits of the hash that say least about the slot. */
function tagOf(hash: number): number {
  return 0x80 | (hash >>> 25);
}

function put({ entries, tags }: Slots, hash: number, entry: number): void {
  const mask = tags.length - 1;
  let slot = hash & mask;
  while (tags[slot] !== 0) slot = (slot + 1) & mask;
  tags[slot] = tagOf(hash);
  entries[slot] = entry;
}

export class HashSlots {
  readonly #entries: SlotEntries;
  #slots = emptySlots(INITIAL_SLOTS);
  #outgrown: Slots | undefined;
  /** Entries of `#outgrown` below this number are in `#slots` too. */
  #moved = 0;
  /** Count of the entries in `#outgrown`. */
  #toMove = 0;
  #count = 0;

  constructor(entries: SlotEntries) {
    this.#entries = entries;
  }

  /** The number of the entry that has the key, or -1. */
  find(hash: number): number {
    const entry = this.#findIn(this.#slots, hash);
    return entry >= 0 || this.#outgrown === undefined ? entry : this.#findIn(this.#outgrown, hash);
  }

  /** Adds the entry with the next number. `find` must not have found it. */
  add(hash: number, entry: number): void {
    if ((this.#count + 1) * 4 > this.#slots.tags.length * 3) {
      this.#outgrown = this.#slots;
      this.#moved = 0;
      this.#toMove = this.#count;
      this.#slots = emptySlots(this.#slots.tags.length * 2);
    }
    put(this.#slots, hash, entry);
    this.#count++;
    if (this.#outgrown !== undefined) this.#moveSome();
  }

  #findIn({ entries, tags }: Slots, hash: number): number {
    const mask = tags.length - 1;
    const keyTag = tagOf(hash);
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const tag = tags[slot]!;
      if (tag === 0) return -1;
      if (tag === keyTag && this.#entries.hasKey(entries[slot]!)) return entries[slot]!;
    }
  }

  #moveSome(): void {
    const end = Math.min(this.#toMove, this.#moved + ENTRIES_MOVED_PER_ADD);
    for (let entry = this.#moved; entry < end; entry++) put(this.#slots, this.#entries.hashOf(entry), entry);
    this.#moved = end;
    if (end === this.#toMove) this.#outgrown = undefined;
  }
}
