import { readUuid } from "../../core/identifiers.js";

const SLOTS = 64;
const UUID_BYTES = 16;

/**
 * Texts of UUIDs that are read again and again, such as those of the runs that go on. A UUID that was read before is found by its bytes, and its
 * text is returned again, with the hash that the engine keeps of it. Each slot holds the newest one.
 */
export class RecentUuids {
  readonly #bytes = new Uint8Array(SLOTS * UUID_BYTES);
  readonly #texts: string[];

  constructor() {
    const none = readUuid(this.#bytes);
    this.#texts = new Array<string>(SLOTS).fill(none);
  }

  read(bytes: Uint8Array, at: number): string {
    // These bytes are random in UUIDs of all versions in use.
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
