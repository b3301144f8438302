/** The smallest capacity. Larger capacities are this one times a power of two. */
const LEAST_BYTES = 1024;
/** Most bytes that are kept while unused. */
const KEPT_BYTES = 8 * 1024 * 1024;
/**
 * The memory for a batch may be this many powers of two too large, at most. Otherwise a few small batches would hold
 * all large memory.
 */
const LARGER_POWERS = 2;

/**
 * Memory for batches on their way to the front, which sends it back when it has taken them. New memory for each batch
 * would cost page faults here and full garbage collections in the front, at a time when the front should answer
 * requests.
 */
export class BatchMemory {
  /** Unused memory, by the power of two of its capacity. */
  readonly #kept: ArrayBuffer[][] = [];
  #keptBytes = 0;
  /** Memory for the next copy. */
  #reserved: ArrayBuffer | null = null;

  get keptBytes(): number {
    return this.#keptBytes;
  }

  /**
   * Takes the memory for the next copy of this many bytes, unless it was taken already.
   *
   * @throws RangeError if there is none
   */
  reserve(lengthBytes: number): void {
    this.#reserved ??= this.#take(lengthBytes);
  }

  /** A copy of the bytes, at the start of a buffer of its own that may be larger. */
  copyOf(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
    const memory = this.#reserved ?? this.#take(bytes.length);
    this.#reserved = null;
    const copy = new Uint8Array(memory, 0, bytes.length);
    copy.set(bytes);
    return copy;
  }

  /**
   * Takes back memory that nobody reads any more. If there is no room, larger pieces are dropped: opening a store sends
   * large batches, and only small ones follow. Memory that cannot be kept is left to the garbage collector.
   */
  giveBack(memory: ArrayBuffer): void {
    const { byteLength } = memory;
    if (byteLength < LEAST_BYTES || byteLength > KEPT_BYTES) return;
    const power = powerFor(byteLength);
    // The memory of a hint file can have any size. Only sizes that this class made are kept.
    if (byteLength !== LEAST_BYTES * 2 ** power) return;
    for (let larger = this.#kept.length - 1; this.#keptBytes + byteLength > KEPT_BYTES; ) {
      if (larger <= power) return;
      const dropped = this.#kept[larger]?.pop();
      if (dropped === undefined) larger--;
      else this.#keptBytes -= dropped.byteLength;
    }
    while (this.#kept.length <= power) this.#kept.push([]);
    this.#kept[power]?.push(memory);
    this.#keptBytes += byteLength;
  }

  #take(lengthBytes: number): ArrayBuffer {
    const least = powerFor(lengthBytes);
    for (let power = least; power <= least + LARGER_POWERS; power++) {
      const kept = this.#kept[power]?.pop();
      if (kept === undefined) continue;
      this.#keptBytes -= kept.byteLength;
      return kept;
    }
    return new ArrayBuffer(LEAST_BYTES * 2 ** least);
  }
}

/** The smallest power of two whose capacity holds this many bytes. */
function powerFor(lengthBytes: number): number {
  let power = 0;
  while (LEAST_BYTES * 2 ** power < lengthBytes) power++;
  return power;
}
