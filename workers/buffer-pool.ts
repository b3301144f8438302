/**
 * Buffers that are given back when their bytes are written or taken, and used again for bytes of about the same size. A
 * capture head sends batches of one size for minutes, and each group of commits goes to the front. New memory for each
 * would cost page faults, and full garbage collections at a time when the front should answer requests.
 */
export class BufferPool {
  readonly #keptLimitBytes: number;
  readonly #capacityOf: (lengthBytes: number) => number;
  /** Oldest first. */
  readonly #kept: ArrayBuffer[] = [];
  #keptBytes = 0;

  /**
   * @param keptLimitBytes most bytes that are kept while unused
   * @param capacityOf the capacity for so many bytes; 0: such a buffer gets its exact size and is left to the garbage collector
   */
  constructor(keptLimitBytes = 64 * 1024 * 1024, capacityOf = payloadCapacity) {
    this.#keptLimitBytes = keptLimitBytes;
    this.#capacityOf = capacityOf;
  }

  /** Bytes kept while unused. Buffers in use are not counted. */
  get keptBytes(): number {
    return this.#keptBytes;
  }

  /**
   * Gives a buffer of `lengthBytes` bytes with any content.
   *
   * @throws {RangeError} The process gets no memory for it, even after all kept buffers were dropped.
   */
  take(lengthBytes: number): Buffer<ArrayBuffer> {
    const capacity = this.#capacityOf(lengthBytes);
    const at = capacity === 0 ? -1 : this.#kept.findLastIndex(({ byteLength }) => byteLength === capacity);
    if (at >= 0) {
      const [kept] = this.#kept.splice(at, 1) as [ArrayBuffer];
      this.#keptBytes -= capacity;
      return Buffer.from(kept, 0, lengthBytes);
    }
    try {
      return newBuffer(capacity, lengthBytes);
    } catch (error) {
      if (this.#kept.length === 0) throw error;
      this.#kept.length = 0;
      this.#keptBytes = 0;
      return newBuffer(capacity, lengthBytes);
    }
  }

  /** Takes back a buffer from `take`, once. Nobody may read or write it any more. Memory that is not the pool's is dropped. */
  release({ buffer }: { readonly buffer: ArrayBufferLike }): void {
    const capacity = buffer.byteLength;
    if (capacity === 0 || capacity > this.#keptLimitBytes || this.#capacityOf(capacity) !== capacity) return;
    while (this.#keptBytes + capacity > this.#keptLimitBytes) {
      this.#keptBytes -= (this.#kept.shift() as ArrayBuffer).byteLength;
    }
    this.#kept.push(buffer as ArrayBuffer);
    this.#keptBytes += capacity;
  }
}

function newBuffer(capacity: number, lengthBytes: number): Buffer<ArrayBuffer> {
  return Buffer.from(Buffer.allocUnsafeSlow(capacity || lengthBytes).buffer as ArrayBuffer, 0, lengthBytes);
}

/** Multiples of 64 KiB, so that payloads that differ by a line or two can use the same buffers. Smaller ones are not pooled. */
function payloadCapacity(lengthBytes: number): number {
  const step = 64 * 1024;
  return lengthBytes < step ? 0 : Math.ceil(lengthBytes / step) * step;
}
