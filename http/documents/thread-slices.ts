/** Time for all long work together in one turn of the event loop, if nothing else is said. */
const SLICE_MS = 1;

/**
 * Interleaves long work with the thread's other work. All long work together gets one slice of each turn of the event loop, one job after the
 * other.
 */
export class ThreadSlices {
  readonly #sliceMs: number;
  #endMs = 0;
  /** Whether the slice of this turn of the event loop has begun. */
  #isBegun = false;
  readonly #waiting: (() => void)[] = [];

  constructor(sliceMs = SLICE_MS) {
    this.#sliceMs = sliceMs;
  }

  /** Call it between two pieces of work: what to await before the next; undefined while there is time left and nobody else waits. */
  giveWay(): Promise<void> | undefined {
    if (!this.#isBegun) this.#begin();
    if (this.#waiting.length === 0 && performance.now() < this.#endMs) return undefined;
    return new Promise((resume) => {
      this.#waiting.push(resume);
    });
  }

  #begin(): void {
    this.#isBegun = true;
    this.#endMs = performance.now() + this.#sliceMs;
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
    // After its piece of work, which only awaits promises.
    if (this.#waiting.length > 0) queueMicrotask(() => process.nextTick(this.#resumeNext));
  };
}
