/**
 * One at a time of what reads or rewrites whole segments beside the recorder's own work: a snapshot reads the very bytes that a
 * compaction replaces, and both together would take twice the disk and processor from the producers.
 */
export class ExclusiveWork {
  #isTaken = false;

  /** Takes the turn; gives what ends it, or null while another has it. */
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
