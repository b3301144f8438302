/** Capacities are powers of two from this on. */
const LEAST_BYTES = 1024;
/** In all, kept until a batch comes. */
const KEPT_BYTES = 8 * 1024 * 1024;
/** A batch may take memory that is so many powers of two larger than it needs: no more, or a few small ones would hold all that large ones need. */
const LARGER_POWERS = 2;

/**
 * Memory for batches on their way to the front, which gives it back with the word that it has taken them: new memory for each costs the faults of its
 * pages, and the front, whose heap it counts to, collections of its whole heap while it should answer.
 */
export class BatchMemory {
  /** By power of two above the least. */
  readonly #kept: ArrayBuffer[][] = [];
  #keptBytes = 0;

  get keptBytes(): number {
    return this.#keptBytes;
  }

  /** A copy of the bytes, alone in a buffer that may be larger. */
  copyOf(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
    const copy = new Uint8Array(this.#take(bytes.length), 0, bytes.length);
    copy.set(bytes);
    return copy;
  }

  /**
   * Nobody reads it any more. Where there is no room, larger ones make some: an opening sends large batches, and small ones follow for good. What cannot be
   * kept is the collector's.
   */
  giveBack(memory: ArrayBuffer): void {
    const { byteLength } = memory;
    if (byteLength < LEAST_BYTES || byteLength > KEPT_BYTES) return;
    const power = powerFor(byteLength);
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

/** The least power whose capacity holds so many bytes. */
function powerFor(lengthBytes: number): number {
  let power = 0;
  while (LEAST_BYTES * 2 ** power < lengthBytes) power++;
  return power;
}
