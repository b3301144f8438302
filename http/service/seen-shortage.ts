import { since } from "../../core/health.js";
import { shortageOf } from "../../storage/disk/file-system.js";

/** Health tells of a shortage for so long after the last answer that failed for it. */
const SHOWN_US = 30_000_000;

/** Answers that failed because the process, or the machine, had no descriptor or memory left. */
export class SeenShortage {
  readonly #nowUs: () => number;
  #sinceUs = 0;
  #lastUs = Number.NEGATIVE_INFINITY;
  #what = "";

  constructor(nowUs: () => number) {
    this.#nowUs = nowUs;
  }

  /** Notes the error if it is of a shortage. */
  note(error: unknown): void {
    const missing = shortageOf(error);
    if (missing === null) return;
    if (this.detail === null) {
      this.#sinceUs = this.#nowUs();
      this.#what = `${missing} (${(error as Error).message})`;
    }
    this.#lastUs = this.#nowUs();
  }

  /** For people; null while there is none. */
  get detail(): string | null {
    if (this.#nowUs() - this.#lastUs > SHOWN_US) return null;
    return since(this.#sinceUs, `some reads are refused: ${this.#what}`);
  }
}
