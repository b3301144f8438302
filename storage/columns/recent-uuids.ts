import { readUuid } from "../../core/identifiers.js";

const SLOTS = 64;
const UUID_BYTES = 16;

/**
 * The text of UUIDs that come again and again, as those of the runs that go on do: one that was read before is found by its bytes and given
 * again, with the hash that the engine keeps of it. One a slot, the newest.
 */
export class RecentUuids {
  readonly #bytes = new Uint8Array(SLOTS * UUID_BYTES);
  readonly #texts: string[];

  constructor() {
    const none = readUuid(this.#bytes);
    this.#texts = new Array<string>(SLOTS).fill(none);
  }

  read(bytes: Uint8Array, at: number): string {
    // Random in a UUID of any version that is in use.
    const slot = ((bytes[at + 15] as number) ^ (bytes[at + 9] as number)) & (SLOTS - 1);
    const known = slot * UUID_BYTES;
    for (let nth = UUID_BYTES - 1; nth >= 0; nth--) {
      if (this.#bytes[known + nth] === bytes[at + nth]) continue;
      const text = readUuid(bytes, at);
      this.#bytes.set(bytes.subarray(at, at + UUID_BYTES), known);
      this.#texts[slot] = text;
      return text;
    }
    return this.#texts[slot] as string;
  }
}
