import { LRUCache } from "lru-cache";
import { descriptorLimit } from "./file-system.js";
import type { StoreFile } from "./file-system-interface.js";
import { closeLater } from "./whole-files.js";

/** More open files are of no use: what is read again and again lies in fewer. */
const MOST = 64;
/** The share of the process's descriptors for each of the five caches. One may hold twice as many, so all together have at most three eighths. */
const SHARE = 1 / 16;
const LEAST = 4;
/** Assumed when the system does not say how many descriptors there may be. */
const USUAL_LIMIT = 1_024;

/** The most files that a cache of open files keeps. */
export const KEPT_FILES = Math.min(MOST, Math.max(LEAST, Math.floor((descriptorLimit() ?? USUAL_LIMIT) * SHARE)));

/** An open file, or what is made of one, with the count of those who read it. */
export interface OpenFile {
  readonly file: Pick<StoreFile, "close">;
  readers: number;
  /** Not kept any more: closed as soon as nobody reads it. */
  isEvicted: boolean;
}

/** Files that stay open for the next reader. One that has to go is closed as soon as nobody reads it. */
export class OpenFiles<Key extends string | number, File extends OpenFile> extends LRUCache<Key, File> {
  constructor(maximumOpenFiles = KEPT_FILES) {
    super({
      max: maximumOpenFiles,
      dispose: (open) => {
        open.isEvicted = true;
        closeUnused(open);
      },
    });
  }

  /** The open file, for one more reader; undefined when there is none. */
  take(key: Key): File | undefined {
    const open = this.get(key);
    if (open !== undefined) open.readers++;
    return open;
  }

  /** A reader has done with it. */
  release(open: File): void {
    open.readers--;
    closeUnused(open);
  }
}

function closeUnused({ file, readers, isEvicted }: OpenFile): void {
  if (isEvicted && readers === 0) closeLater(file);
}
