/**
 * The slots of an open-addressing hash table whose entries lie elsewhere, numbered 0, 1, 2, … and never removed: each
 * slot holds an entry's number plus 1, or 0 when free. Linear probing; a slot table is at most 3/4 full.
 *
 * Growth never pauses: a table twice as large is allocated (the system hands out zeroed pages as they are touched), each
 * later `add` moves eight slots over, and until all have moved `find` looks into both. The old slots are
 * not changed meanwhile, so an entry that stands in both is found in either.
 *
 * Memory: 4 bytes a slot, thus 5.3 to 10.7 bytes an entry, and half as much again while slots move.
 */
const INITIAL_SLOTS = 64;
const SLOTS_MOVED_PER_ADD = 8;

/** What the table asks the owner of the entries. */
export interface SlotEntries {
  /** The hash of an entry, u32, the same as it was at `add`. */
  hashOf(entry: number): number;
  /** Whether the entry is, byte for byte, the one being looked for: the hash only says where to look. */
  isWanted(entry: number): boolean;
}

export class HashSlots {
  readonly #entries: SlotEntries;
  #slots = new Uint32Array(INITIAL_SLOTS);
  #outgrownSlots: Uint32Array | undefined;
  #movedSlots = 0;
  #count = 0;

  constructor(entries: SlotEntries) {
    this.#entries = entries;
  }

  get bytesUsed(): number {
    return this.#slots.byteLength + (this.#outgrownSlots?.byteLength ?? 0);
  }

  /** The number of the wanted entry, or -1. */
  find(hash: number): number {
    const entry = this.#findIn(this.#slots, hash);
    return entry >= 0 || this.#outgrownSlots === undefined ? entry : this.#findIn(this.#outgrownSlots, hash);
  }

  /** Adds an entry that `find` has not found. */
  add(hash: number, entry: number): void {
    if ((this.#count + 1) * 4 > this.#slots.length * 3) {
      this.#outgrownSlots = this.#slots;
      this.#movedSlots = 0;
      this.#slots = new Uint32Array(this.#slots.length * 2);
    }
    this.#put(hash, entry);
    this.#count++;
    if (this.#outgrownSlots !== undefined) this.#moveSome(this.#outgrownSlots);
  }

  /** Takes the entries 0, 1, 2, … by their hashes, all different, in place of what it held. */
  load(hashes: Uint32Array): void {
    let length = INITIAL_SLOTS;
    while (hashes.length * 4 > length * 3) length *= 2;
    const slots = new Uint32Array(length);
    const mask = length - 1;
    for (let entry = 0; entry < hashes.length; entry++) {
      let slot = hashes[entry]! & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = entry + 1;
    }
    this.#slots = slots;
    this.#outgrownSlots = undefined;
    this.#count = hashes.length;
  }

  #findIn(slots: Uint32Array, hash: number): number {
    const mask = slots.length - 1;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const entry = slots[slot]! - 1;
      if (entry < 0 || this.#entries.isWanted(entry)) return entry;
    }
  }

  #put(hash: number, entry: number): void {
    const mask = this.#slots.length - 1;
    let slot = hash & mask;
    while (this.#slots[slot] !== 0) slot = (slot + 1) & mask;
    this.#slots[slot] = entry + 1;
  }

  #moveSome(outgrown: Uint32Array): void {
    const end = Math.min(outgrown.length, this.#movedSlots + SLOTS_MOVED_PER_ADD);
    for (let slot = this.#movedSlots; slot < end; slot++) {
      const entry = outgrown[slot]! - 1;
      if (entry >= 0) this.#put(this.#entries.hashOf(entry), entry);
    }
    this.#movedSlots = end;
    if (end === outgrown.length) this.#outgrownSlots = undefined;
  }
}
