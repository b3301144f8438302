import type { Tracked } from "./tracked-delivery.js";

interface Awaited {
  sequence: number;
  deliveries: readonly Tracked[];
  isEnd: boolean;
}

/** How far the front's view has come, and which deliveries wait until it has their record. */
export class ViewProgress {
  #viewed = 0;
  /** Deliveries that wait, in the order of their records. */
  #awaited: Awaited[] = [];
  /** Index in `#awaited` of the first that was not told. */
  #next = 0;

  /** Whether the view has the record. */
  has(sequence: number): boolean {
    return sequence <= this.#viewed;
  }

  /** @param isEnd true for the last record of these deliveries for now, false for the record that they begin with */
  await(sequence: number, deliveries: readonly Tracked[], isEnd: boolean): void {
    this.#awaited.push({ sequence, deliveries, isEnd });
  }

  /** The view has all records up to this one. Calls `tell` for each delivery that waited for one of them. */
  advance(sequence: number, tell: (tracked: Tracked, isEnd: boolean) => void): void {
    this.#viewed = Math.max(this.#viewed, sequence);
    for (let first = this.#awaited[this.#next]; first !== undefined && this.has(first.sequence); ) {
      for (const tracked of first.deliveries) tell(tracked, first.isEnd);
      first = this.#awaited[++this.#next];
    }
    if (this.#next * 2 > this.#awaited.length) {
      this.#awaited = this.#awaited.slice(this.#next);
      this.#next = 0;
    }
  }
}
