import { LRUCache } from "lru-cache";

/** Cost of a cache entry besides its bytes, rounded up. */
const ENTRY_OVERHEAD_BYTES = 400;

/** A piece of a file, and how to release its memory. */
export interface Piece {
  bytes: Uint8Array;
  /** Bytes of memory that it takes, if more than its own length. */
  heldBytes?: number;
  /** Called once, when the piece is neither cached nor read. */
  release?(): void;
}

interface Making {
  entry: Promise<Entry>;
  made: Entry | undefined;
  /** Aborted when nobody waits for the piece any more. */
  unwanted: AbortController;
  waiting: number;
}

interface Entry {
  piece: Piece;
  /** Readers that still wait for it. */
  making: Making;
  isKept: boolean;
  isReleased: boolean;
}

/**
 * Makes pieces of files on demand and caches the last ones. A piece that several clients want at the same time is made once, and not at all if all
 * of them leave before. A piece can be read only within `get`, so that its memory can be reused as soon as it leaves the cache.
 */
export class MadePieces {
  readonly #kept: LRUCache<string, Entry>;
  readonly #making = new Map<string, Making>();

  /** @param keptBytes limit of the cache; a larger piece is not cached */
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
   * The result of `use` for the piece with this key. `use` must neither change nor keep the bytes.
   *
   * @param make called if the piece is neither cached nor being made
   * @param signal when aborted, this client stops waiting
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
        // The next client starts again, as this attempt may end without a result.
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
      // The cache rejects a piece that is too large.
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
