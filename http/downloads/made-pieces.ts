import { LRUCache } from "lru-cache";

/** What an entry costs beside its bytes, rounded up: key, array and list links. */
const ENTRY_OVERHEAD_BYTES = 400;

/** A piece, and what becomes of its memory when nobody reads it any more. */
export interface Piece {
  bytes: Uint8Array;
  /** Bytes of memory that it takes, if these are more. */
  heldBytes?: number;
  /** Called once, when it is neither kept nor read. */
  release?(): void;
}

interface Making {
  entry: Promise<Entry>;
  made: Entry | undefined;
  /** Aborted when nobody waits any more. */
  unwanted: AbortController;
  waiting: number;
}

interface Entry {
  piece: Piece;
  /** Those who wait for it have yet to read it. */
  making: Making;
  isKept: boolean;
  isReleased: boolean;
}

/**
 * Pieces of files that are made when somebody reads them: those that were read last are kept, within a bound of their bytes. One that several
 * clients want at the same time is made once, and not at all when all of them have gone before. A piece can be read within `get` only, so that
 * its memory can serve another one as soon as it is not kept any more.
 */
export class MadePieces {
  readonly #kept: LRUCache<string, Entry>;
  readonly #making = new Map<string, Making>();

  /** @param keptBytes bound of what is kept; a larger piece is not kept */
  constructor(keptBytes: number) {
    this.#kept = new LRUCache({
      maxSize: keptBytes,
      sizeCalculation: ({ piece }) => Math.max(piece.bytes.byteLength, piece.heldBytes ?? 0) + ENTRY_OVERHEAD_BYTES,
      dispose: (entry) => {
        entry.isKept = false;
        releaseUnread(entry);
      },
    });
  }

  get keptBytes(): number {
    return this.#kept.calculatedSize;
  }

  /**
   * What `use` makes of the piece of that key; it must not change the bytes, nor keep them.
   *
   * @param make called when it is neither kept nor being made
   * @param signal of one client, which does not wait any longer when it is aborted
   */
  async get<T>(
    key: string,
    make: (signal: AbortSignal) => Promise<Piece>,
    use: (bytes: Uint8Array) => T,
    signal?: AbortSignal,
  ): Promise<T> {
    const kept = this.#kept.get(key);
    if (kept !== undefined) return use(kept.piece.bytes);
    const making = this.#making.get(key) ?? this.#start(key, make);
    making.waiting++;
    try {
      const { piece } = await (signal === undefined ? making.entry : untilAborted(making.entry, signal));
      return use(piece.bytes);
    } finally {
      if (--making.waiting === 0) {
        // Whoever comes now starts anew: this one may end without a result.
        if (this.#making.get(key) === making) this.#making.delete(key);
        making.unwanted.abort();
        if (making.made !== undefined) releaseUnread(making.made);
      }
    }
  }

  #start(key: string, make: (signal: AbortSignal) => Promise<Piece>): Making {
    const unwanted = new AbortController();
    const entry = make(unwanted.signal).then((piece) => {
      const made: Entry = { piece, making, isKept: true, isReleased: false };
      this.#kept.set(key, made);
      // One that is too large never was.
      made.isKept = this.#kept.peek(key) === made;
      making.made = made;
      releaseUnread(made);
      return made;
    });
    const making: Making = { entry, made: undefined, unwanted, waiting: 0 };
    this.#making.set(key, making);
    return making;
  }
}

function releaseUnread(entry: Entry): void {
  if (entry.isKept || entry.isReleased || entry.making.waiting > 0) return;
  entry.isReleased = true;
  entry.piece.release?.();
}

function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
