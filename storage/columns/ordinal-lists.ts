/**
 * Append-only lists of run ordinals, one per key (a program, a serial number), each run in one list at most.
 *
 * There can be millions of short lists, so they cost no object: each key has its newest ordinal and a count (8 bytes), each run the previous ordinal
 * of its list (4 bytes). A list that reaches `LONG_LIST_LENGTH` also gets a column of its ordinals (position by arithmetic, rank by binary search)
 * and bitmaps of states over its positions, about 10 bytes a run.
 */
import { lowerBound } from "../../core/lower-bound.js";
import { StateBitmaps } from "../view/state-bitmaps.js";
import { TypedColumn } from "./typed-column.js";

/** Short enough that a list is walked link by link in microseconds, and long enough that the objects of a long list do not matter. */
export const LONG_LIST_LENGTH = 512;

const LONG_LIST_CHUNK = 512;

/** A list with its ordinals, ascending, and its states by position in the list. */
export class LongList {
  readonly ordinals = new TypedColumn(Uint32Array, LONG_LIST_CHUNK);
  readonly states = new StateBitmaps();

  /** How many of the list's ordinals are below `ordinal`: the ordinal's own position, if it is in the list. */
  rank(ordinal: number): number {
    return lowerBound(0, this.ordinals.length, (position) => this.ordinals.get(position) < ordinal);
  }
}

export class OrdinalLists {
  /** By key: the newest ordinal plus 1, or 0 for an empty list. */
  readonly #newest = new TypedColumn(Uint32Array);
  readonly #counts = new TypedColumn(Uint32Array);
  /** By run: the previous ordinal of its list plus 1, or 0 at the end. */
  readonly #previous = new TypedColumn(Uint32Array);
  readonly #longLists = new Map<number, LongList>();

  /** How many runs the key's list holds, 0 for an unknown key. */
  count(key: number): number {
    return key < this.#counts.length ? this.#counts.get(key) : 0;
  }

  longList(key: number): LongList | undefined {
    return this.#longLists.get(key);
  }

  /**
   * Appends the next run to the key's list, or to none. Its ordinal is the count of runs appended before it.
   *
   * @param stateOf gives the state of any run up to this one; called when a list becomes long
   */
  append(key: number | undefined, stateOf: (ordinal: number) => number): void {
    const ordinal = this.#previous.length;
    if (key === undefined) {
      this.#previous.push(0);
      return;
    }
    while (this.#newest.length <= key) {
      this.#newest.push(0);
      this.#counts.push(0);
    }
    this.#previous.push(this.#newest.get(key));
    this.#newest.set(key, ordinal + 1);
    const count = this.#counts.get(key) + 1;
    this.#counts.set(key, count);
    if (count < LONG_LIST_LENGTH) return;
    let list = this.#longLists.get(key);
    if (list === undefined) {
      list = new LongList();
      this.#longLists.set(key, list);
      for (const member of this.ascending(key)) {
        list.states.set(list.ordinals.length, stateOf(member));
        list.ordinals.push(member);
      }
    } else {
      list.states.set(count - 1, stateOf(ordinal));
      list.ordinals.push(ordinal);
    }
  }

  /** Notes that a run changed its state. Only long lists keep states. */
  moveState(key: number, ordinal: number, from: number, to: number): void {
    const list = this.#longLists.get(key);
    list?.states.move(list.rank(ordinal), from, to);
  }

  /** All ordinals of the key's list, ascending: O(length). */
  ascending(key: number): Uint32Array {
    const ordinals = new Uint32Array(this.count(key));
    let link = ordinals.length === 0 ? 0 : this.#newest.get(key);
    for (let i = ordinals.length - 1; i >= 0; i--) {
      ordinals[i] = link - 1;
      link = this.#previous.get(link - 1);
    }
    return ordinals;
  }
}
