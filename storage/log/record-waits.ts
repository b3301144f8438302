interface Waiting {
  sequence: number;
  resume: (hasCome: boolean) => void;
}

/** Callbacks that wait until a record has come to the disk, or to the front's view. */
export class RecordWaits {
  /** In order of their records. */
  readonly #waiting: Waiting[] = [];
  #sequence = 0;

  /** Calls `resume(true)` when the record has come, `resume(false)` if it never will. */
  add(sequence: number, resume: (hasCome: boolean) => void): void {
    if (sequence <= this.#sequence) {
      resume(true);
      return;
    }
    const waiting = this.#waiting;
    let at = waiting.length;
    while (at > 0 && waiting[at - 1]!.sequence > sequence) at--;
    waiting.splice(at, 0, { sequence, resume });
  }

  /** Records up to this one have come. */
  reached(sequence: number): void {
    this.#sequence = Math.max(this.#sequence, sequence);
    let count = 0;
    while (count < this.#waiting.length && this.#waiting[count]!.sequence <= sequence) count++;
    for (const { resume } of this.#waiting.splice(0, count)) resume(true);
  }

  /** No more records come. */
  abandon(): void {
    for (const { resume } of this.#waiting.splice(0)) resume(false);
  }
}
