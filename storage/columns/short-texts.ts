/** Keys, ids, types and statuses; beyond it, one call that makes the text costs less than the loop over its bytes. */
export const SHORT_TEXT_BYTES = 64;
const SLOTS = 512;

/**
 * The short texts that messages and records repeat: keys, types, the id of the run. A text that was read before is found by its bytes and
 * given again, which makes no string: a call into the engine, a string to collect and, of a key, a look-up in the engine's own table
 * cost 0.3 µs each, and a small message has a dozen. One text a slot, the newest: memory is bounded whatever comes.
 */
export class ShortTexts {
  readonly #texts: string[] = new Array<string>(SLOTS).fill("");
  readonly #areKeys: boolean;

  /** @param use `keys` for what becomes names of properties: these are given as the engine compares them fastest */
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

/** By the length and six of the bytes, at both ends and within: to look at all of them would cost as much as to compare them. */
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

/** The same text as the engine keeps names of properties: one object for each, compared by its address. */
function internalized(text: string): string {
  return Object.keys({ [text]: 0 })[0] as string;
}
