/**
 * Buffers for payloads. A large one is given back when its bytes are written, and serves the next payload of about its size: a
 * capture head sends batches of one size for minutes, and fresh memory for each costs its page faults and the collector's time.
 */

/** Below this a buffer is made exactly and left to the collector. */
const POOLED_FROM_BYTES = 64 * 1024;
/** Capacities are multiples of this, so that batches that differ by a line or two share buffers. */
const CAPACITY_STEP_BYTES = 64 * 1024;

export class PayloadBuffers {
  readonly #keptLimitBytes: number;
  /** Oldest first. */
  readonly #kept: ArrayBuffer[] = [];
  #keptBytes = 0;

  /** `keptLimitBytes`: at most so much is kept while nobody uses it. */
  constructor(keptLimitBytes = 64 * 1024 * 1024) {
    this.#keptLimitBytes = keptLimitBytes;
  }

  /** Bytes kept for later; what is in use is its user's to count. */
  get keptBytes(): number {
    return this.#keptBytes;
  }

  /**
   * `lengthBytes` bytes of any content.
   *
   * @throws {RangeError} The process is not given so much memory, also not in place of what is kept.
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

  /** Takes back what `take` gave: nobody may read or write it any more. Once only. */
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
