/** Sets of run ordinals for queries: how many there are, how many lie below an ordinal, and the members downwards from any rank. */
import { lowerBound } from "../../core/lower-bound.js";
import type { LongList } from "./ordinal-lists.js";

export interface OrdinalSet {
  readonly size: number;
  /** How many members are below `ordinal`. */
  rank(ordinal: number): number;
  /** Calls `visit` with up to `limit` members downwards from the one of the given rank; nothing for a rank below 0. */
  forEachDescending(rank: number, limit: number, visit: (ordinal: number) => void): void;
}

/** All ordinals below `size`. */
export class AllOrdinals implements OrdinalSet {
  readonly size: number;

  constructor(size: number) {
    this.size = size;
  }

  rank(ordinal: number): number {
    return Math.min(ordinal, this.size);
  }

  forEachDescending(rank: number, limit: number, visit: (ordinal: number) => void): void {
    for (let ordinal = rank; ordinal >= 0 && ordinal > rank - limit; ordinal--) visit(ordinal);
  }
}

/** The runs of a long list, or those among them that match a filter by state. */
export class ListedOrdinals implements OrdinalSet {
  readonly #list: LongList;
  readonly #positions: OrdinalSet;

  /** @param positions the set's positions in the list; default: all */
  constructor(list: LongList, positions: OrdinalSet = new AllOrdinals(list.ordinals.length)) {
    this.#list = list;
    this.#positions = positions;
  }

  get size(): number {
    return this.#positions.size;
  }

  rank(ordinal: number): number {
    return this.#positions.rank(this.#list.rank(ordinal));
  }

  forEachDescending(rank: number, limit: number, visit: (ordinal: number) => void): void {
    this.#positions.forEachDescending(rank, limit, (position) => visit(this.#list.ordinals.get(position)));
  }
}

/** Ascending ordinals that a query has found one by one. */
export class FoundOrdinals implements OrdinalSet {
  readonly #ordinals: ArrayLike<number>;

  constructor(ordinals: ArrayLike<number>) {
    this.#ordinals = ordinals;
  }

  get size(): number {
    return this.#ordinals.length;
  }

  rank(ordinal: number): number {
    return lowerBound(0, this.#ordinals.length, (at) => this.#ordinals[at]! < ordinal);
  }

  forEachDescending(rank: number, limit: number, visit: (ordinal: number) => void): void {
    for (let at = rank; at >= 0 && at > rank - limit; at--) visit(this.#ordinals[at]!);
  }
}
