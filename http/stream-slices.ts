import type { StreamBody } from "./reply.js";

/**
 * Slices that downloads are read and sent in: large enough that a read costs little beside its bytes, small enough that a thousand slow
 * clients, with one slice in flight and one read ahead, hold half a gigabyte.
 */
export const SLICE_BYTES = 256 * 1024;

/** The slice at `position`: what one read gives, one byte at least. */
export async function readSlice(body: StreamBody, position: number, signal: AbortSignal): Promise<Uint8Array> {
  const wanted = Math.min(SLICE_BYTES, body.totalBytes - position);
  const slice = await body.read(position, wanted, signal);
  if (slice.byteLength === 0 || slice.byteLength > wanted) {
    throw new Error(`a read at ${position} gave ${slice.byteLength} bytes of ${wanted}`);
  }
  return slice;
}
