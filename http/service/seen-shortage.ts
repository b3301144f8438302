import { since } from "../../core/health.js";
import { shortageOf } from "../../storage/disk/file-system-error.js";

/** How long health shows a shortage after the last answer that failed because of it. */
const SHOWN_US = 30_000_000;

/** Remembers answers that failed because the process or the machine had no memory or open files left. */
export class SeenShortage {
  readonly #nowUs: () => number;
  #sinceUs = 0;
  #lastUs = Number.NEGATIVE_INFINITY;
  #what = "";

  constructor(nowUs: () => number) {
    this.#nowUs = nowUs;
  }

  /** Remembers the error if it is a shortage. */
  note(error: unknown): void {
    const missing = shortageOf(error);
    if (missing === null) return;
    if (this.detail === null) {
      this.#sinceUs = this.#nowUs();
      this.#what = `${missing} (${(error as Error).message})`;
    }
    this.#lastUs = this.#nowUs();
  }

  /** The current shortage, for people; null if there is none. */
  get detail(): string | null {
    if (this.#nowUs() - this.#lastUs > SHOWN_US) return null;
    return since(this.#sinceUs, `some reads are refused: ${this.#what}`);
  }
}
