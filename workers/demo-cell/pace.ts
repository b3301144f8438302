import { setTimeout as delay } from "node:timers/promises";

/** The cell was told to stop. The present run ends as cancelled. */
export class CellStoppedError extends Error {
  constructor() {
    super("the cell was stopped");
    this.name = "CellStoppedError";
  }
}

/** How fast the demo cell works. Work that would take a machine some time waits here. */
export class Pace {
  readonly #speed: number;
  readonly #signal: AbortSignal;

  /** @param speed how many times as fast as a real cell; 0: it does not wait */
  constructor(speed: number, signal: AbortSignal) {
    this.#speed = speed;
    this.#signal = signal;
  }

  /** Waits as long as the machine would take. Throws CellStoppedError once the cell is stopped. */
  async work(durationMs: number): Promise<void> {
    if (this.#speed > 0 && !this.#signal.aborted) {
      await delay(durationMs / this.#speed, undefined, { signal: this.#signal }).catch(() => {});
    }
    if (this.#signal.aborted) throw new CellStoppedError();
  }
}
