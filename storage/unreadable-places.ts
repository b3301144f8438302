import { MAXIMUM_LISTED_FINDINGS } from "./recovery-report.js";
import type { OnUnreadable } from "./tolerant-reads.js";

/** What the disk does not give: bytes of a file; with offset and length 0 a file as a whole, or what a folder holds. */
export interface UnreadablePlace {
  path: string;
  offset: number;
  lengthBytes: number;
  message: string;
}

/** Collects what the disk does not give, each place once, of many the first 1,000. */
export class UnreadablePlaces {
  readonly all: UnreadablePlace[] = [];
  readonly #paths = new Set<string>();

  readonly note: OnUnreadable = (path, offset, lengthBytes, { message }) => {
    this.#paths.add(path);
    if (this.all.length >= MAXIMUM_LISTED_FINDINGS) return;
    if (this.all.some((one) => one.path === path && one.offset === offset)) return;
    this.all.push({ path, offset, lengthBytes, message });
  };

  /** Of this file or folder it does not give all. */
  has(path: string): boolean {
    return this.#paths.has(path);
  }
}
