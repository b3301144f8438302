/** Capacities are powers of two from this on: a batch is mostly of a few records or of a few hundred. */
const LEAST_BYTES = 16 * 1024;
/** In all, kept until a batch comes. */
const KEPT_BYTES = 8 * 1024 * 1024;
/** A batch takes no memory that is larger than so many times its own: a few small ones would take all that large ones need. */
const MOST_TIMES = 8;

/**
 * Memory for batches on their way to the front, which gives it back with the word that it has taken them: new memory for each costs the faults of its
 * pages, and the front, whose heap it counts to, collections of its whole heap while it should answer.
 */
export class BatchMemory {
  /** By size, the smallest first. */
  readonly #kept: ArrayBuffer[] = [];
  #keptBytes = 0;

  get keptBytes(): number {
    return this.#keptBytes;
  }

  /** A copy of the bytes, alone in a buffer that may be larger. */
  copyOf(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
    const memory = this.#take(bytes.length);
    const copy = new Uint8Array(memory, 0, bytes.length);
    copy.set(bytes);
    return copy;
  }

  /** Nobody reads it any more. One that cannot be kept is the collector's. */
  giveBack(memory: ArrayBuffer): void {
    const { byteLength } = memory;
    if (byteLength < LEAST_BYTES || this.#keptBytes + byteLength > KEPT_BYTES) return;
    const larger = this.#kept.findIndex((one) => one.byteLength > byteLength);
    this.#kept.splice(larger < 0 ? this.#kept.length : larger, 0, memory);
    this.#keptBytes += byteLength;
  }

  #take(lengthBytes: number): ArrayBuffer {
    const at = this.#kept.findIndex(({ byteLength }) => byteLength >= lengthBytes);
    const fitting = at < 0 ? undefined : this.#kept[at];
    let capacity = LEAST_BYTES;
    while (capacity < lengthBytes) capacity *= 2;
    if (fitting === undefined || fitting.byteLength > capacity * MOST_TIMES) return new ArrayBuffer(capacity);
    this.#kept.splice(at, 1);
    this.#keptBytes -= fitting.byteLength;
    return fitting;
  }
}
