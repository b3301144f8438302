import { MAXIMUM_LISTED_FINDINGS } from "../recovery/recovery-report.js";
import type { OnUnreadable } from "./tolerant-reads.js";

/** Bytes that the disk cannot read. Offset and length are 0 for a whole file, or for the list of a folder. */
export interface UnreadablePlace {
  path: string;
  offset: number;
  lengthBytes: number;
  message: string;
}

/**
 * Collects unreadable places, each once; adjacent blocks count as one place. Of many it keeps the last 1,000, because at the end of the log nothing
 * else tells that something is missing.
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

  /** True when a part of this file or folder is unreadable. */
  has(path: string): boolean {
    return this.#paths.has(path);
  }
}
