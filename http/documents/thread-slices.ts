/** What all long work together may have of the thread in one turn of the event loop. */
const SLICE_MS = 1;

/**
 * Long work of one thread, piece by piece, so that others have their turn meanwhile. However many do long work side by side, they share one slice
 * of each turn of the event loop, one after the other.
 */
export class ThreadSlices {
  #endMs = 0;
  /** The slice is of this turn. */
  #isBegun = false;
  readonly #waiting: (() => void)[] = [];

  /** Between two pieces: what to wait for before the next; undefined while there is time left in this turn, and nobody else waits. */
  giveWay(): Promise<void> | undefined {
    if (!this.#isBegun) this.#begin();
    if (this.#waiting.length === 0 && performance.now() < this.#endMs) return undefined;
    return new Promise((resume) => {
      this.#waiting.push(resume);
    });
  }

  #begin(): void {
    this.#isBegun = true;
    this.#endMs = performance.now() + SLICE_MS;
    setImmediate(() => {
      this.#isBegun = false;
      if (this.#waiting.length === 0) return;
      this.#begin();
      this.#resumeNext();
    });
  }

  readonly #resumeNext = (): void => {
    if (performance.now() >= this.#endMs) return;
    this.#waiting.shift()?.();
    // Once it has done its piece, of which only promises are in between.
    if (this.#waiting.length > 0) queueMicrotask(() => process.nextTick(this.#resumeNext));
  };
}
