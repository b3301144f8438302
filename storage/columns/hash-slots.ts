/**
 * The slots of an open-addressing hash table whose entries lie elsewhere, numbered 0, 1, 2, … and never removed: each
 * slot holds an entry's number. Linear probing; a slot table is at most 3/4 full.
 *
 * A byte beside each slot, its tag, is 0 for a free one, else 7 bits of its entry's hash: 64 tags share a line of the processor's
 * cache, while each entry that is looked at is a line that no cache has. So an unknown entry, which at 3/4 has to pass eight others on
 * average, looks at next to none of them.
 *
 * Growth never pauses: a table twice as large is allocated (the system hands out zeroed pages as they are touched), each
 * later `add` enters two entries of the old one, in the order of their numbers, in which their hashes lie side by side; until all are
 * there `find` looks into both. The old slots are not changed meanwhile, so an entry that stands in both is found in either.
 *
 * Memory: 5 bytes a slot, thus 6.7 to 8.9 bytes an entry, and 13.3 to 20 while entries move, which is during half of all adds.
 */
const INITIAL_SLOTS = 64;
/** A table twice as large has room for as many entries again: all have moved when half of those have come. */
const ENTRIES_MOVED_PER_ADD = 2;

/** What the table asks the owner of the entries. */
export interface SlotEntries {
  /** The hash of an entry, u32, the same as it was at `add`. */
  hashOf(entry: number): number;
  /** Whether the entry is, byte for byte, the one being looked for: the hash only says where to look. */
  isWanted(entry: number): boolean;
}

interface Slots {
  /** An entry's number where there is a tag. */
  readonly entries: Uint32Array;
  readonly tags: Uint8Array;
}

function emptySlots(count: number): Slots {
  return { entries: new Uint32Array(count), tags: new Uint8Array(count) };
}

/** Of the bits that say least about the slot. */
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
  /** Of the entries in `#outgrown`, those below are in `#slots` too. */
  #moved = 0;
  /** How many entries `#outgrown` has. */
  #toMove = 0;
  #count = 0;

  constructor(entries: SlotEntries) {
    this.#entries = entries;
  }

  get bytesUsed(): number {
    const { entries, tags } = this.#slots;
    const outgrown = this.#outgrown;
    return (
      entries.byteLength + tags.byteLength + (outgrown ? outgrown.entries.byteLength + outgrown.tags.byteLength : 0)
    );
  }

  /** The number of the wanted entry, or -1. */
  find(hash: number): number {
    const entry = this.#findIn(this.#slots, hash);
    return entry >= 0 || this.#outgrown === undefined ? entry : this.#findIn(this.#outgrown, hash);
  }

  /** Adds the next entry by number, which `find` has not found. */
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

  /** Takes the entries 0, 1, 2, … by their hashes, all different, in place of what it held. */
  load(hashes: Uint32Array): void {
    let length = INITIAL_SLOTS;
    while (hashes.length * 4 > length * 3) length *= 2;
    const slots = emptySlots(length);
    for (let entry = 0; entry < hashes.length; entry++) put(slots, hashes[entry]!, entry);
    this.#slots = slots;
    this.#outgrown = undefined;
    this.#count = hashes.length;
  }

  #findIn({ entries, tags }: Slots, hash: number): number {
    const mask = tags.length - 1;
    const wanted = tagOf(hash);
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const tag = tags[slot]!;
      if (tag === 0) return -1;
      if (tag === wanted && this.#entries.isWanted(entries[slot]!)) return entries[slot]!;
    }
  }

  #moveSome(): void {
    const end = Math.min(this.#toMove, this.#moved + ENTRIES_MOVED_PER_ADD);
    for (let entry = this.#moved; entry < end; entry++) put(this.#slots, this.#entries.hashOf(entry), entry);
    this.#moved = end;
    if (end === this.#toMove) this.#outgrown = undefined;
  }
}
