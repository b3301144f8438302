import { lowerBound } from "../../../core/lower-bound.js";
import { isAnyState, matchesState, STATES, type StateFilter } from "../state-bitmaps.js";

/** Above the count of a kind in one block. */
const COUNTS = 2_048;

/** What lists of a plant filter by, as codes. */
export interface KindFilter extends StateFilter {
  readonly programOrdinal?: number | undefined;
}

/** A run's program and state in one number. */
export function packKind(programOrdinal: number, state: number): number {
  return programOrdinal * STATES + state;
}

export function matchesKind(kind: number, filter: KindFilter): boolean {
  const { programOrdinal } = filter;
  return (
    (programOrdinal === undefined || Math.floor(kind / STATES) === programOrdinal) &&
    matchesState(kind % STATES, filter)
  );
}

/** How many runs of each kind a block has, at most 2,047 of each. A block of 1,024 runs has up to some hundred kinds: about 2 bytes a run. */
export class KindCounts {
  /** The kind times `COUNTS`, plus its count; ascending. */
  readonly #counts: number[] = [];
  /** By state, for all programs together. */
  readonly #ofState = new Uint16Array(STATES);
  #size = 0;

  add(kind: number, difference: number): void {
    this.#size += difference;
    this.#ofState[kind % STATES]! += difference;
    const counts = this.#counts;
    const at = this.#placeOf(kind);
    const isKnown = at < counts.length && Math.floor(counts[at]! / COUNTS) === kind;
    if (!isKnown) counts.splice(at, 0, kind * COUNTS + difference);
    else if (counts[at]! + difference === kind * COUNTS) counts.splice(at, 1);
    else counts[at]! += difference;
  }

  matching(filter: KindFilter): number {
    const { programOrdinal } = filter;
    let sum = 0;
    if (programOrdinal === undefined) {
      if (isAnyState(filter)) return this.#size;
      for (let state = 0; state < STATES; state++) if (matchesState(state, filter)) sum += this.#ofState[state]!;
      return sum;
    }
    const counts = this.#counts;
    const above = packKind(programOrdinal + 1, 0) * COUNTS;
    for (let at = this.#placeOf(packKind(programOrdinal, 0)); at < counts.length && counts[at]! < above; at++) {
      const packed = counts[at]!;
      if (matchesState(Math.floor(packed / COUNTS) % STATES, filter)) sum += packed % COUNTS;
    }
    return sum;
  }

  #placeOf(kind: number): number {
    return lowerBound(0, this.#counts.length, (nth) => this.#counts[nth]! < kind * COUNTS);
  }
}
