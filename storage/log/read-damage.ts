import { counted } from "../../core/counted.js";
import { formatTimeUs } from "../../core/timestamps.js";
import { StorageError, type StorageErrorCode } from "../storage-error.js";

/** Errors of a read when the bytes on disk differ from what was stored. Any other failure may pass. */
const DAMAGE_CODES: ReadonlySet<StorageErrorCode> = new Set([
  "record_damaged",
  "record_missing",
  "capture_damaged",
  "capture_missing",
]);

/** How many places are counted one by one. A dying disk has any number of them, and the first ones say enough. */
const MAXIMUM_PLACES = 1_000;

/** True for an error that means that stored bytes are damaged or gone, now and at the next read. */
export function isReadDamage(error: unknown): error is StorageError {
  return error instanceof StorageError && DAMAGE_CODES.has(error.code);
}

/** Damage that reads have met since the store was opened. What opening found is in the recovery report. */
export class ReadDamage {
  readonly #places = new Set<string>();
  readonly #onNew: (error: StorageError) => void;
  readonly #nowUs: () => number;
  #first = "";
  #sinceUs = 0;

  /** @param onNew called once for each place */
  constructor(onNew: (error: StorageError) => void, nowUs: () => number) {
    this.#onNew = onNew;
    this.#nowUs = nowUs;
  }

  /** Notes the error if it means damage. */
  note(error: unknown): void {
    if (!isReadDamage(error) || this.#places.has(error.message) || this.#places.size >= MAXIMUM_PLACES) return;
    if (this.#places.size === 0) {
      this.#first = error.message;
      this.#sinceUs = this.#nowUs();
    }
    this.#places.add(error.message);
    this.#onNew(error);
  }

  /** For people; null while there is none. */
  get detail(): string | null {
    const { size } = this.#places;
    if (size === 0) return null;
    const atLeast = size < MAXIMUM_PLACES ? "" : "at least ";
    const places = counted(size, "damaged place");
    return `since ${formatTimeUs(this.#sinceUs)} reads found ${atLeast}${places}, first ${this.#first}`;
  }
}
