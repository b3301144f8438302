/**
 * Buffers for payloads. A large buffer is given back when its bytes are written, and is used again for a payload of
 * about its size. A capture head sends batches of one size for minutes. New memory for each batch would cost page
 * faults and garbage collection.
 */

/** A smaller buffer gets its exact size and is left to the garbage collector. */
const POOLED_FROM_BYTES = 64 * 1024;
/** Capacities are multiples of this, so that batches that differ by a line or two can use the same buffers. */
const CAPACITY_STEP_BYTES = 64 * 1024;

export class PayloadBuffers {
  readonly #keptLimitBytes: number;
  /** Oldest first. */
  readonly #kept: ArrayBuffer[] = [];
  #keptBytes = 0;

  /** @param keptLimitBytes most bytes that are kept while unused */
  constructor(keptLimitBytes = 64 * 1024 * 1024) {
    this.#keptLimitBytes = keptLimitBytes;
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
  take(lengthBytes: number): Uint8Array {
    try {
      return this.#take(lengthBytes);
    } catch (error) {
      if (this.#kept.length === 0) throw error;
      this.#kept.length = 0;
      this.#keptBytes = 0;
      return this.#take(lengthBytes);
    }
  }

  #take(lengthBytes: number): Uint8Array {
    if (lengthBytes < POOLED_FROM_BYTES) return Buffer.allocUnsafeSlow(lengthBytes);
    const capacity = Math.ceil(lengthBytes / CAPACITY_STEP_BYTES) * CAPACITY_STEP_BYTES;
    for (let i = this.#kept.length - 1; i >= 0; i--) {
      const candidate = this.#kept[i] as ArrayBuffer;
      if (candidate.byteLength !== capacity) continue;
      this.#kept.splice(i, 1);
      this.#keptBytes -= capacity;
      return Buffer.from(candidate, 0, lengthBytes);
    }
    return Buffer.from(Buffer.allocUnsafeSlow(capacity).buffer as ArrayBuffer, 0, lengthBytes);
  }

  /** Takes back a buffer from `take`, once. Nobody may read or write it any more. */
  release(payload: Uint8Array): void {
    const buffer = payload.buffer as ArrayBuffer;
    const capacity = buffer.byteLength;
    if (capacity < POOLED_FROM_BYTES || capacity > this.#keptLimitBytes) return;
    while (this.#keptBytes + capacity > this.#keptLimitBytes) {
      this.#keptBytes -= (this.#kept.shift() as ArrayBuffer).byteLength;
    }
    this.#kept.push(buffer);
    this.#keptBytes += capacity;
  }
}
