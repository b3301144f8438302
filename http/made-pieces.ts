import { LRUCache } from "lru-cache";

/** What an entry costs beside its bytes, rounded up: key, array and list links. */
const ENTRY_OVERHEAD_BYTES = 400;

interface Making {
  piece: Promise<Uint8Array>;
  /** Aborted when nobody waits any more. */
  unwanted: AbortController;
  waiting: number;
}

/**
 * Pieces of files that are made when somebody reads them: those that were read last are kept, within a bound of their bytes. One that several
 * clients want at the same time is made once, and not at all when all of them have gone before.
 */
export class MadePieces {
  readonly #kept: LRUCache<string, Uint8Array>;
  readonly #making = new Map<string, Making>();

  /** @param keptBytes bound of what is kept; a larger piece is not kept */
  constructor(keptBytes: number) {
    this.#kept = new LRUCache({
      maxSize: keptBytes,
      sizeCalculation: (piece) => piece.byteLength + ENTRY_OVERHEAD_BYTES,
    });
  }

  get keptBytes(): number {
    return this.#kept.calculatedSize;
  }

  /**
   * The piece of that key; not to be changed.
   *
   * @param make called when it is neither kept nor being made
   * @param signal of one client, which does not wait any longer when it is aborted
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
        // Whoever comes now starts anew: this one may end without a result.
        if (this.#making.get(key) === making) this.#making.delete(key);
        making.unwanted.abort();
      }
    }
  }

  #start(key: string, make: (signal: AbortSignal) => Promise<Uint8Array>): Making {
    const unwanted = new AbortController();
    const piece = make(unwanted.signal).then((bytes) => {
      this.#kept.set(key, bytes);
      return bytes;
    });
    const making = { piece, unwanted, waiting: 0 };
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
