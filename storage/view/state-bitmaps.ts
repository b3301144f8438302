/**
 * The state of a run in one byte: a status, 0 to 7, and an outcome, 0 to 3.
 *
 * For each filter (a status, an outcome, or both) there is one ranked bitmap over positions, made when a position first
 * matches. So every filter has its exact total and any page in O(log n). Each bitmap takes about 1.1 bits a position.
 */
import { RankedBitmap } from "../columns/ranked-bitmap.js";

const STATUSES = 8;
const OUTCOMES = 4;
/** Above every packed state. */
export const STATES = STATUSES * OUTCOMES;

/** A field that is left out holds for every state. */
export interface StateFilter {
  readonly status?: number | undefined;
  readonly outcome?: number | undefined;
}

export function packState(status: number, outcome: number): number {
  return outcome * STATUSES + status;
}

export function statusOf(state: number): number {
  return state % STATUSES;
}

export function outcomeOf(state: number): number {
  return Math.floor(state / STATUSES);
}

export function isAnyState({ status, outcome }: StateFilter): boolean {
  return status === undefined && outcome === undefined;
}

export function matchesState(state: number, { status, outcome }: StateFilter): boolean {
  return (
    (status === undefined || statusOf(state) === status) && (outcome === undefined || outcomeOf(state) === outcome)
  );
}

/** For each state, the indexes of its three bitmaps: for status and outcome, for its status, for its outcome. */
const PLACES: readonly (readonly [number, number, number])[] = Array.from({ length: STATES }, (_, state) => [
  state,
  STATES + statusOf(state),
  STATES + STATUSES + outcomeOf(state),
]);

export class StateBitmaps {
  #bitmaps: (RankedBitmap | undefined)[] = [];

  /** The bitmap of a filter by status, outcome or both; undefined if no position ever matched it. */
  get({ status, outcome }: StateFilter): RankedBitmap | undefined {
    // A value out of range would read the bitmap of another state.
    if ((status ?? 0) >= STATUSES || (outcome ?? 0) >= OUTCOMES) return undefined;
    if (status === undefined) return this.#bitmaps[STATES + STATUSES + (outcome ?? 0)];
    return this.#bitmaps[outcome === undefined ? STATES + status : packState(status, outcome)];
  }

  set(position: number, state: number): void {
    for (const place of PLACES[state]!) this.#set(position, place);
  }

  move(position: number, from: number, to: number): void {
    const [left, entered] = [PLACES[from]!, PLACES[to]!];
    for (let nth = 0; nth < entered.length; nth++) {
      if (left[nth] === entered[nth]) continue;
      this.#bitmaps[left[nth]!]?.clear(position);
      this.#set(position, entered[nth]!);
    }
  }

  #set(position: number, place: number): void {
    let bitmap = this.#bitmaps[place];
    if (bitmap === undefined) {
      bitmap = new RankedBitmap();
      this.#bitmaps[place] = bitmap;
    }
    bitmap.set(position);
  }
}
