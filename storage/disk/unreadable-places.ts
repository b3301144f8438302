import { MAXIMUM_LISTED_FINDINGS } from "../recovery/recovery-report.js";
import type { OnUnreadable } from "./tolerant-reads.js";

/** What the disk does not give: bytes of a file; with offset and length 0 a file as a whole, or what a folder holds. */
export interface UnreadablePlace {
  path: string;
  offset: number;
  lengthBytes: number;
  message: string;
}

/**
 * Collects what the disk does not give, each place once, blocks that follow one another as one. Of many the last 1,000: what is missing at the end of
 * the log, where nothing else tells of it, is among them.
 */
export class UnreadablePlaces {
  readonly all: UnreadablePlace[] = [];
  readonly #paths = new Set<string>();

  readonly note: OnUnreadable = (path, offset, lengthBytes, { message }) => {
    this.#paths.add(path);
    const isIn = (one: UnreadablePlace): boolean =>
      one.path === path && offset >= one.offset && offset < one.offset + Math.max(1, one.lengthBytes);
    if (this.all.some(isIn)) return;
    const last = this.all.at(-1);
    if (last?.path === path && last.lengthBytes > 0 && offset === last.offset + last.lengthBytes) {
      last.lengthBytes += lengthBytes;
      return;
    }
    this.all.push({ path, offset, lengthBytes, message });
    if (this.all.length > MAXIMUM_LISTED_FINDINGS) this.all.shift();
  };

  /** Of this file or folder it does not give all. */
  has(path: string): boolean {
    return this.#paths.has(path);
  }
}
