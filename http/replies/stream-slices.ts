import type { StreamBody } from "./reply.js";

/**
 * Slices that downloads are read and sent in: large enough that a read costs little beside its bytes, small enough that a thousand slow
 * clients, with one slice in flight and one read ahead, hold half a gigabyte.
 */
export const SLICE_BYTES = 256 * 1024;

/** Of downloads that have ended, for the next: fresh memory costs a fault of each of its pages, a quarter of a read. */
const free: Uint8Array[] = [];
const KEPT_SLICES = 32;
/** Less is cheap to allocate, and a small file must not take a slice. */
const LEAST_BYTES = 64 * 1024;

/** The memory of one download: one slice is sent while the next is read. */
export class SliceMemory {
  readonly #slices: Uint8Array[] = [];
  #turn = 0;

  /** In turn one of two: what was read into it two reads before must have been taken. */
  next(): Uint8Array {
    this.#turn = 1 - this.#turn;
    let slice = this.#slices[this.#turn];
    if (slice === undefined) {
      slice = free.pop() ?? new Uint8Array(SLICE_BYTES);
      this.#slices[this.#turn] = slice;
    }
    return slice;
  }

  /** No read is under way, and nothing of it is still to be sent. */
  release(): void {
    for (const slice of this.#slices) if (slice !== undefined && free.length < KEPT_SLICES) free.push(slice);
    this.#slices.length = 0;
  }
}

/** The slice at `position`: what one read gives, one byte at least. */
export async function readSlice(
  body: StreamBody,
  position: number,
  signal: AbortSignal,
  memory: SliceMemory,
): Promise<Uint8Array> {
  const wanted = Math.min(SLICE_BYTES, body.totalBytes - position);
  const slice = await body.read(position, wanted, signal, wanted < LEAST_BYTES ? undefined : memory.next());
  if (slice.byteLength === 0 || slice.byteLength > wanted) {
    throw new Error(`a read at ${position} gave ${slice.byteLength} bytes of ${wanted}`);
  }
  return slice;
}
