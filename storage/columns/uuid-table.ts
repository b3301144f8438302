/**
 * A compact map from UUID to a u32 value, for ids by the million: frame id → run ordinal.
 *
 * Keys (16 bytes) and values (4 bytes) are in columns in order of arrival. Ids carry their time, so most come in ascending order. An id above all
 * others is new without a look-up, and a binary search finds it again. That is fast: a start adds a million of them. The others, the strays, are
 * found by a hash table. It only says where to look: keys are compared in full.
 *
 * Memory: 24 bytes an entry. A stray has slots beside that: 7 to 9 bytes, and 13 to 20 while strays move into a larger slot table. No insert pauses
 * for that (hash-slots.ts).
 */
import { formatUuidWords } from "../../core/identifiers.js";
import { HashSlots } from "./hash-slots.js";
import { TypedColumn } from "./typed-column.js";
import { compareUuidWords, findUuidWords, parseUuidWords, readUuidWords } from "./uuid-words.js";

/** murmur3's finalizer over the words. Producers' ids need not be random, and neighbouring ids must still spread over the slots. */
function hashWords(a: number, b: number, c: number, d: number): number {
  let hash = Math.imul(a, 0xcc9e_2d51) ^ Math.imul(b, 0x1b87_3593) ^ Math.imul(c, 0x9e37_79b1) ^ d;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85eb_ca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

export class UuidTable {
  /** Four words for each entry, most significant first. */
  readonly #keys = new TypedColumn(Uint32Array);
  readonly #values = new TypedColumn(Uint32Array);
  /** Entries whose id was above all before it, ascending. */
  readonly #ascending = new TypedColumn(Uint32Array);
  /** All other entries, in order of arrival. */
  readonly #strays = new TypedColumn(Uint32Array);
  readonly #key = new Uint32Array(4);
  /** Slots of the strays, by their place in `#strays`. */
  readonly #slots = new HashSlots({
    hashOf: (stray) => {
      const row = this.#strays.get(stray) * 4;
      return hashWords(this.#keys.get(row), this.#keys.get(row + 1), this.#keys.get(row + 2), this.#keys.get(row + 3));
    },
    hasKey: (stray) => compareUuidWords(this.#key, this.#keys, this.#strays.get(stray)) === 0,
  });

  get size(): number {
    return this.#values.length;
  }

  has(id: string): boolean {
    return this.#find(id) >= 0;
  }

  /** The value stored under `id`; undefined for an unknown id and for text that is no canonical UUID. */
  get(id: string): number | undefined {
    const entry = this.#find(id);
    return entry < 0 ? undefined : this.#values.get(entry);
  }

  /**
   * Stores a u32 under `id`, replacing an earlier one.
   *
   * @throws RangeError for text that is no canonical lower-case UUID
   */
  set(id: string, value: number): void {
    this.#values.set(this.enter(id), value);
  }

  /**
   * The entry of `id`, as `entryOf`. An unknown id gets a new entry with the value 0, numbered by the `size` before.
   *
   * @throws RangeError for text that is no canonical lower-case UUID
   */
  enter(id: string): number {
    if (!parseUuidWords(id, this.#key, 0)) throw new RangeError(`not a canonical UUID: ${JSON.stringify(id)}`);
    return this.#enterKey();
  }

  /** Like `enter`, for the id whose 16 bytes begin at `at`. Makes no string. */
  enterBytes(bytes: Uint8Array, at: number): number {
    readUuidWords(bytes, at, this.#key);
    return this.#enterKey();
  }

  #enterKey(): number {
    const isAbove = this.#isAboveAll();
    const known = isAbove ? -1 : this.#findKey();
    if (known >= 0) return known;
    const entry = this.#values.length;
    for (let word = 0; word < 4; word++) this.#keys.push(this.#key[word]!);
    this.#values.push(0);
    if (isAbove) this.#ascending.push(entry);
    else {
      this.#slots.add(this.#keyHash(), this.#strays.length);
      this.#strays.push(entry);
    }
    return entry;
  }

  /** The value of an entry, which must be below `size`. */
  valueAt(entry: number): number {
    return this.#values.get(entry);
  }

  setValueAt(entry: number, value: number): void {
    this.#values.set(entry, value);
  }

  /** The id's number in order of arrival, from 0; -1 for an unknown one. */
  entryOf(id: string): number {
    return this.#find(id);
  }

  /** The id with this number, which must be below `size`. */
  idAt(entry: number): string {
    const keys = this.#keys;
    const row = entry * 4;
    return formatUuidWords(keys.get(row), keys.get(row + 1), keys.get(row + 2), keys.get(row + 3));
  }

  /** Replaces every value by what `map` makes of it. */
  mapValues(map: (value: number) => number): void {
    for (let entry = 0; entry < this.#values.length; entry++) this.#values.set(entry, map(this.#values.get(entry)));
  }

  #find(id: string): number {
    return parseUuidWords(id, this.#key, 0) ? this.#findKey() : -1;
  }

  #findKey(): number {
    const found = findUuidWords(this.#key, this.#keys, this.#ascending.length, (place) => this.#ascending.get(place));
    if (found >= 0) return found;
    const stray = this.#slots.find(this.#keyHash());
    return stray < 0 ? -1 : this.#strays.get(stray);
  }

  #isAboveAll(): boolean {
    const count = this.#ascending.length;
    return count === 0 || compareUuidWords(this.#key, this.#keys, this.#ascending.get(count - 1)) > 0;
  }

  #keyHash(): number {
    const key = this.#key;
    return hashWords(key[0]!, key[1]!, key[2]!, key[3]!);
  }
}
