/**
 * UUIDs in strictly ascending order, 16 bytes each: row → id by position, id → row by binary search. Run ids ascend by contract, so they need no
 * hash table.
 */
import { formatUuidWords } from "../../core/identifiers.js";
import { TypedColumn } from "./typed-column.js";
import { compareUuidWords, findUuidWords, parseUuidWords, readUuidWords } from "./uuid-words.js";

export class UuidColumn {
  readonly #words = new TypedColumn(Uint32Array);
  readonly #wanted = new Uint32Array(4);

  get length(): number {
    return this.#words.length / 4;
  }

  /** @throws RangeError for text that is no canonical UUID, or not above the last one */
  push(id: string): void {
    if (!parseUuidWords(id, this.#wanted, 0)) throw new RangeError(`not a canonical UUID: ${JSON.stringify(id)}`);
    if (!this.#pushWanted()) throw new RangeError(`id ${id} is not above the last one, ${this.at(this.length - 1)}`);
  }

  /** Adds the id whose 16 bytes begin at `at`, unless it is not above the last one: then false. */
  pushBytes(bytes: Uint8Array, at: number): boolean {
    readUuidWords(bytes, at, this.#wanted);
    return this.#pushWanted();
  }

  #pushWanted(): boolean {
    if (this.length > 0 && compareUuidWords(this.#wanted, this.#words, this.length - 1) <= 0) return false;
    for (let word = 0; word < 4; word++) this.#words.push(this.#wanted[word]!);
    return true;
  }

  /** The id of a row below `length`. */
  at(row: number): string {
    const words = this.#words;
    const at = row * 4;
    return formatUuidWords(words.get(at), words.get(at + 1), words.get(at + 2), words.get(at + 3));
  }

  /** One of the four words of the id of a row below `length`. */
  wordAt(row: number, word: number): number {
    return this.#words.get(row * 4 + word);
  }

  /** The row of an id; -1 for an unknown one and for text that is no canonical UUID. */
  indexOf(id: string): number {
    return parseUuidWords(id, this.#wanted, 0) ? this.#indexOfWanted() : -1;
  }

  /** As `indexOf`, of the id whose 16 bytes begin at `at`. */
  indexOfBytes(bytes: Uint8Array, at: number): number {
    readUuidWords(bytes, at, this.#wanted);
    return this.#indexOfWanted();
  }

  #indexOfWanted(): number {
    return findUuidWords(this.#wanted, this.#words, this.length);
  }
}
