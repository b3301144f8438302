import type { StreamBody } from "./reply.js";

/**
 * Size of the slices in which downloads are read and sent: large enough that a read costs little per byte, small enough that a thousand slow
 * clients hold only half a gigabyte, each with one slice in flight and one read ahead.
 */
export const SLICE_BYTES = 256 * 1024;

/** Slices of ended downloads, for the next ones: page faults of new memory cost a quarter of a read. */
const free: Uint8Array[] = [];
const KEPT_SLICES = 32;
/** Smaller reads get memory of their own: it is cheap, and a small file must not take a whole slice. */
const LEAST_BYTES = 64 * 1024;

/** The memory of one download: one slice is sent while the next is read. */
export class SliceMemory {
  readonly #slices: Uint8Array[] = [];
  #at = 0;

  /** One of two slices, alternately. What was read into it two reads ago must have been sent. */
  next(): Uint8Array {
    this.#at = 1 - this.#at;
    let slice = this.#slices[this.#at];
    if (slice === undefined) {
      slice = free.pop() ?? new Uint8Array(SLICE_BYTES);
      this.#slices[this.#at] = slice;
    }
    return slice;
  }

  /** Call it when no read is under way and all slices have been sent. */
  release(): void {
    for (const slice of this.#slices) if (slice !== undefined && free.length < KEPT_SLICES) free.push(slice);
    this.#slices.length = 0;
  }
}

/** Reads the slice at `position`: at least one byte. */
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
