import { randomFillSync } from "node:crypto";
import { generateUuidV7 } from "../../core/identifiers.js";

const RANDOM_BYTES = 10;
/** Ids whose random bytes are fetched in one call: an event with hundreds of deliveries needs as many ids. */
const POOLED_IDS = 256;

/** Makes ascending UUIDv7 for what the service creates itself: events, deliveries, webhooks. */
export class UuidSource {
  readonly #pool = new Uint8Array(RANDOM_BYTES * POOLED_IDS);
  #used = POOLED_IDS;
  #last: string | null = null;

  next(timeUs: number): string {
    if (this.#used === POOLED_IDS) {
      randomFillSync(this.#pool);
      this.#used = 0;
    }
    const start = RANDOM_BYTES * this.#used++;
    const random = this.#pool.subarray(start, start + RANDOM_BYTES);
    this.#last = generateUuidV7(Math.floor(timeUs / 1000), random, this.#last);
    return this.#last;
  }
}
