/** Callbacks that wait for a record to be committed. */
export class CommitWaits {
  /** In order of their records. */
  readonly #waiting: { sequence: number; resume: (isCommitted: boolean) => void }[] = [];
  #committed = 0;

  /** Calls `resume(true)` when the record is committed, `resume(false)` when it will not be. */
  add(sequence: number, resume: (isCommitted: boolean) => void): void {
    if (sequence <= this.#committed) resume(true);
    else this.#waiting.push({ sequence, resume });
  }

  /** Records up to this one are committed. */
  committed(sequence: number): void {
    this.#committed = sequence;
    let count = 0;
    while (count < this.#waiting.length && this.#waiting[count]!.sequence <= sequence) count++;
    for (const { resume } of this.#waiting.splice(0, count)) resume(true);
  }

  /** Nothing is committed any more. */
  abandon(): void {
    for (const { resume } of this.#waiting.splice(0)) resume(false);
  }
}
