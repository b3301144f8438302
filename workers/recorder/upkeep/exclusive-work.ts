/**
 * Lets only one job at a time read or rewrite whole segments. A snapshot reads the bytes that a compaction replaces, and both together
 * would take twice as much disk and processor time from the producers.
 */
export class ExclusiveWork {
  #isTaken = false;

  /** Begins a job. @returns a function that ends it; null while another job runs */
  take(): (() => void) | null {
    if (this.#isTaken) return null;
    this.#isTaken = true;
    let isOver = false;
    return () => {
      if (!isOver) this.#isTaken = false;
      isOver = true;
    };
  }
}
