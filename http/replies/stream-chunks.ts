import type { StreamBody } from "./reply.js";

/**
 * Size of the chunks in which downloads are read and sent. It is large enough that a read costs little per byte. It is small enough that a thousand
 * slow clients hold only half a gigabyte: each has one chunk in flight, and one read ahead.
 */
export const CHUNK_BYTES = 256 * 1024;

/** Chunks of ended downloads, for the next ones: page faults of new memory cost a quarter of a read. */
const free: Uint8Array[] = [];
const KEPT_CHUNKS = 32;
/** Smaller reads get memory of their own: it is cheap, and a small file must not take a whole chunk. */
const LEAST_BYTES = 64 * 1024;

/** The memory of one download: one chunk is sent while the next is read. */
export class ChunkMemory {
  readonly #chunks: Uint8Array[] = [];
  #at = 0;

  /** One of two chunks, alternately. What was read into it two reads ago must have been sent. */
  next(): Uint8Array {
    this.#at = 1 - this.#at;
    let chunk = this.#chunks[this.#at];
    if (chunk === undefined) {
      chunk = free.pop() ?? new Uint8Array(CHUNK_BYTES);
      this.#chunks[this.#at] = chunk;
    }
    return chunk;
  }

  /** Call it when no read is under way and all chunks have been sent. */
  release(): void {
    for (const chunk of this.#chunks) if (chunk !== undefined && free.length < KEPT_CHUNKS) free.push(chunk);
    this.#chunks.length = 0;
  }
}

/** Reads the chunk at `position`: at least one byte. */
export async function readChunk(
  body: StreamBody,
  position: number,
  signal: AbortSignal,
  memory: ChunkMemory,
): Promise<Uint8Array> {
  const lengthBytes = Math.min(CHUNK_BYTES, body.totalBytes - position);
  const chunk = await body.read(position, lengthBytes, signal, lengthBytes < LEAST_BYTES ? undefined : memory.next());
  if (chunk.byteLength === 0 || chunk.byteLength > lengthBytes) {
    throw new Error(`a read at ${position} gave ${chunk.byteLength} bytes of ${lengthBytes}`);
  }
  return chunk;
}
