import { LRUCache } from "lru-cache";

/** Cost of a cache entry besides its bytes, rounded up. */
const ENTRY_OVERHEAD_BYTES = 400;

interface Making {
  piece: Promise<Uint8Array>;
  /** Aborted when nobody waits for the piece any more. */
  unwanted: AbortController;
  waiting: number;
}

/**
 * Makes pieces of files on demand and caches the last ones. A piece that several clients want at the same time is made once, and not at all if all
 * of them leave before.
 */
export class GeneratedPieces {
  readonly #kept: LRUCache<string, Uint8Array>;
  readonly #making = new Map<string, Making>();

  /** @param keptBytes limit of the cache; a larger piece is not cached */
  constructor(keptBytes: number) {
    this.#kept = new LRUCache({
      maxSize: keptBytes,
      sizeCalculation: ({ byteLength }) => byteLength + ENTRY_OVERHEAD_BYTES,
    });
  }

  get keptBytes(): number {
    return this.#kept.calculatedSize;
  }

  /**
   * The piece with this key, which nobody may change.
   *
   * @param make called if the piece is neither cached nor being made
   * @param signal when aborted, this client stops waiting
   */
  async get(
    key: string,
    make: (signal: AbortSignal) => Promise<Uint8Array>,
    signal?: AbortSignal,
  ): Promise<Uint8Array> {
    const kept = this.#kept.get(key);
    if (kept !== undefined) return kept;
    const making = this.#making.get(key) ?? this.#start(key, make);
    making.waiting++;
    try {
      return await (signal === undefined ? making.piece : untilAborted(making.piece, signal));
    } finally {
      if (--making.waiting === 0) {
        // The next client starts again, as this attempt may end without a result.
        if (this.#making.get(key) === making) this.#making.delete(key);
        making.unwanted.abort();
      }
    }
  }

  #start(key: string, make: (signal: AbortSignal) => Promise<Uint8Array>): Making {
    const unwanted = new AbortController();
    const piece = make(unwanted.signal).then((made) => {
      this.#kept.set(key, made);
      return made;
    });
    const making: Making = { piece, unwanted, waiting: 0 };
    this.#making.set(key, making);
    return making;
  }
}

function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
