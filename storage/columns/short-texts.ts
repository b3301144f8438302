/** Keys, ids, types and statuses are shorter. For a longer text, decoding costs less than the loop over its bytes. */
export const SHORT_TEXT_BYTES = 64;
const SLOTS = 512;

/**
 * Short texts that messages and records repeat: keys, types, the id of the run. A text that was read before is found by its bytes and returned
 * again, so no new string is made. Making one costs 0.3 µs (a call into the engine, garbage, and for a key a look-up in the engine's own table),
 * and a small message has a dozen. Each slot holds the newest text, so memory is bounded.
 */
export class ShortTexts {
  readonly #texts: string[] = new Array<string>(SLOTS).fill("");
  readonly #areKeys: boolean;

  /** @param use `keys` for names of properties, which are returned in the form that the engine compares fastest */
  constructor(use: "keys" | "values") {
    this.#areKeys = use === "keys";
  }

  /** The text of these bytes, at most `SHORT_TEXT_BYTES`; undefined when they are not all ASCII. */
  read(bytes: Uint8Array, start: number, end: number): string | undefined {
    const slot = slotOf(bytes, start, end);
    const known = this.#texts[slot] as string;
    if (isTextOf(known, bytes, start, end)) return known;
    for (let at = start; at < end; at++) if ((bytes[at] as number) > 0x7f) return undefined;
    const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString("latin1");
    const kept = this.#areKeys ? internalized(text) : text;
    this.#texts[slot] = kept;
    return kept;
  }
}

/** The slot follows from the length and six of the bytes. Using all bytes would cost as much as comparing them. */
function slotOf(bytes: Uint8Array, start: number, end: number): number {
  const length = end - start;
  if (length === 0) return 0;
  const last = end - 1;
  const most = Math.max(start, last - 1);
  let hash =
    length ^ ((bytes[start] as number) << 8) ^ ((bytes[last] as number) << 16) ^ ((bytes[most] as number) << 24);
  hash = Math.imul(hash, 0x85eb_ca6b);
  const within = (bytes[start + (length >> 1)] as number) ^ ((bytes[start + (length >> 2)] as number) << 8);
  hash = Math.imul(hash ^ (hash >>> 15) ^ within ^ ((bytes[Math.max(start, last - 2)] as number) << 16), 0xc2b2_ae35);
  return (hash ^ (hash >>> 16)) & (SLOTS - 1);
}

function isTextOf(text: string, bytes: Uint8Array, start: number, end: number): boolean {
  if (text.length !== end - start) return false;
  for (let at = start; at < end; at++) if (text.charCodeAt(at - start) !== bytes[at]) return false;
  return true;
}

/** The same text in the form in which the engine keeps names of properties: one object for each name, compared by its address. */
function internalized(text: string): string {
  return Object.keys({ [text]: 0 })[0] as string;
}
