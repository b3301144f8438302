/**
 * Numbers distinct texts in order of arrival and finds them by content, for millions of texts: serial number → serial ordinal.
 *
 * The UTF-8 bytes lie end to end in one column. Each text also takes 4 bytes for its end, 4 for its hash, and a hash slot of 7 to 9 (13 to 20 while
 * slots move). A hash only says where to look; texts are compared in full. Lone surrogates, which UTF-8 cannot hold, count as U+FFFD, as they do in
 * the log.
 */
import { HashSlots } from "./hash-slots.js";
import { TypedColumn } from "./typed-column.js";

const encoder = new TextEncoder();
/** A byte order mark is a character of the text like any other. */
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** FNV-1a (Fowler, Noll, Vo; 32 bits) with murmur3's finalizer, so that counted serial numbers spread over the slots. */
export function hashBytes(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c_9dc5;
  for (let i = start; i < end; i++) hash = Math.imul(hash ^ bytes[i]!, 0x0100_0193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85eb_ca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

export class TextTable {
  readonly #bytes = new TypedColumn(Uint8Array, 65_536);
  readonly #ends = new TypedColumn(Uint32Array);
  readonly #hashes = new TypedColumn(Uint32Array);
  readonly #slots = new HashSlots({
    hashOf: (ordinal) => this.#hashes.get(ordinal),
    hasKey: (ordinal) => this.#hasKey(ordinal),
  });
  #key = new Uint8Array(256);
  #keyLength = 0;
  #keyHash = 0;

  get size(): number {
    return this.#ends.length;
  }

  /** The ordinal of a text, or -1 for an unknown one. */
  find(text: string): number {
    this.#setKey(text);
    return this.#slots.find(this.#keyHash);
  }

  /** The ordinal of a text, which is added if it is new. */
  findOrAdd(text: string): number {
    this.#setKey(text);
    return this.#findOrAddKey();
  }

  /** As `findOrAdd`, of the text whose UTF-8 are the bytes from `start` to `end`. */
  findOrAddBytes(bytes: Uint8Array, start: number, end: number): number {
    const length = end - start;
    if (this.#key.length < length) this.#key = new Uint8Array(length);
    for (let i = 0; i < length; i++) this.#key[i] = bytes[start + i]!;
    this.#keyLength = length;
    this.#keyHash = hashBytes(this.#key, 0, length);
    return this.#findOrAddKey();
  }

  #findOrAddKey(): number {
    const found = this.#slots.find(this.#keyHash);
    if (found >= 0) return found;
    const ordinal = this.#ends.length;
    for (let i = 0; i < this.#keyLength; i++) this.#bytes.push(this.#key[i]!);
    this.#ends.push(this.#bytes.length);
    this.#hashes.push(this.#keyHash);
    this.#slots.add(this.#keyHash, ordinal);
    return ordinal;
  }

  /** The text of an ordinal below `size`. */
  text(ordinal: number): string {
    const start = ordinal === 0 ? 0 : this.#ends.get(ordinal - 1);
    const bytes = new Uint8Array(this.#ends.get(ordinal) - start);
    for (let i = 0; i < bytes.length; i++) bytes[i] = this.#bytes.get(start + i);
    return decoder.decode(bytes);
  }

  #setKey(text: string): void {
    // At most three bytes of UTF-8 for one UTF-16 unit.
    if (this.#key.length < text.length * 3) this.#key = new Uint8Array(text.length * 3);
    this.#keyLength = encoder.encodeInto(text, this.#key).written;
    this.#keyHash = hashBytes(this.#key, 0, this.#keyLength);
  }

  #hasKey(ordinal: number): boolean {
    const start = ordinal === 0 ? 0 : this.#ends.get(ordinal - 1);
    if (this.#ends.get(ordinal) - start !== this.#keyLength) return false;
    for (let i = 0; i < this.#keyLength; i++) {
      if (this.#bytes.get(start + i) !== this.#key[i]) return false;
    }
    return true;
  }
}
