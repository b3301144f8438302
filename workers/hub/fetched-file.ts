import type { FileSystem } from "../../storage/disk/file-system-interface.js";
import { writeFully } from "../../storage/disk/whole-files.js";
import { CHUNK_BYTES, chunkCount, chunkSubject, decodeChunk } from "../plant/capture-message.js";
import type { StoredMessage } from "../plant/plant-client.js";
import type { ByteRange, CaptureRequest } from "./capture-request.js";

/** Chunks of one request that are fetched at a time. */
const PARALLEL_CHUNKS = 4;

/** The plant has a chunk, but not as it was sent. */
export class DamagedChunk extends Error {}

export interface FetchedFileHost {
  fileSystem: FileSystem;
  /** The last message of a subject of the capture stream; null if there is none. */
  fetch(subject: string): Promise<StoredMessage | null>;
  /** All names under which a store was shipped. */
  namesOf(storeId: string): readonly string[];
  /** Called before so many bytes are written. Rejects if there is no room for them. */
  makeRoom(lengthBytes: number): Promise<void>;
}

/** Chunk `index` of the range of messages that begins at `rangeOffset` (capture-message.ts). */
interface Chunk {
  rangeOffset: number;
  index: number;
  /** Where the bytes that are wanted of it end in the file. */
  endOffset: number;
}

/**
 * One of a run's two files, as much of it as was asked for. Each chunk is written to its place when it has been verified, so the file has the layout
 * of the cell's, with holes. Nobody reads a place before `ensure` has said that it is there.
 */
export class FetchedFile {
  readonly path: string;
  /** Those who read it now. It stays until they are done. */
  uses = 0;
  /** On the disk. */
  bytes = 0;
  /** Bytes do not match their CRC, or a write failed: the file goes when nobody reads it. */
  isDamaged = false;
  /** Resolves with `markGone`, when the cache has forgotten it. */
  readonly gone: Promise<void>;
  markGone: () => void = () => {};
  readonly #request: Omit<CaptureRequest, "ranges">;
  readonly #host: FetchedFileHost;
  /** Where the bytes of each chunk that is here end, by range and number. */
  readonly #ends = new Map<string, number>();
  readonly #fetching = new Map<string, Promise<number>>();

  constructor(path: string, request: Omit<CaptureRequest, "ranges">, host: FetchedFileHost) {
    this.path = path;
    this.#request = request;
    this.#host = host;
    this.gone = new Promise((resolve) => (this.markGone = resolve));
  }

  /**
   * Fetches what is missing of these bytes.
   *
   * @returns false if the plant does not have them
   * @throws DamagedChunk, FileSystemError, and what the host throws
   */
  async ensure({ offset, lengthBytes }: ByteRange): Promise<boolean> {
    const endOffset = offset + lengthBytes;
    const ofWholeFile: Chunk[] = [];
    for (let index = Math.floor(offset / CHUNK_BYTES) + 1; (index - 1) * CHUNK_BYTES < endOffset; index++)
      ofWholeFile.push({ rangeOffset: 0, index, endOffset: Math.min(endOffset, index * CHUNK_BYTES) });
    const ofExtent = Array.from({ length: offset === 0 ? 0 : chunkCount(lengthBytes) }, (_, nth) => {
      return { rangeOffset: offset, index: nth + 1, endOffset: Math.min(endOffset, offset + (nth + 1) * CHUNK_BYTES) };
    });
    if (ofExtent.length > 0 && this.#missing(ofExtent).length === 0) return true;
    if (await this.#fetchAll(ofWholeFile)) return true;
    return ofExtent.length > 0 && (await this.#fetchAll(ofExtent));
  }

  #missing(chunks: readonly Chunk[]): Chunk[] {
    return chunks.filter((chunk) => chunk.endOffset > (this.#ends.get(keyOf(chunk)) ?? 0));
  }

  /** Resolves when nothing is under way any more. @returns false if the plant lacks one */
  async #fetchAll(chunks: readonly Chunk[]): Promise<boolean> {
    const left = this.#missing(chunks).values();
    let isThere = true;
    const failures: unknown[] = [];
    const fetchNext = async (): Promise<void> => {
      for (const chunk of left) {
        if (!isThere || failures.length > 0) return;
        try {
          if ((await this.#shared(chunk)) < chunk.endOffset) isThere = false;
        } catch (error) {
          failures.push(error);
        }
      }
    };
    await Promise.all(Array.from({ length: Math.min(PARALLEL_CHUNKS, chunks.length) }, fetchNext));
    if (failures.length > 0) throw failures[0];
    return isThere;
  }

  /** Fetches a chunk, once for all who want it. @returns where its bytes end in the file; 0 if the plant lacks it */
  #shared(chunk: Chunk): Promise<number> {
    const key = keyOf(chunk);
    const running = this.#fetching.get(key);
    if (running !== undefined) return running;
    const fetching = this.#fetch(chunk).finally(() => this.#fetching.delete(key));
    this.#fetching.set(key, fetching);
    return fetching;
  }

  /** Under the name of the run's cell, or else under any other one: the cell ships its captures again when it gets another name. */
  async #fetch(chunk: Chunk): Promise<number> {
    const { cell, storeId } = this.#request;
    let endOffset = 0;
    let damage: DamagedChunk | undefined;
    for (const name of new Set([cell, ...this.#host.namesOf(storeId)])) {
      try {
        endOffset = Math.max(endOffset, await this.#fetchUnder(name, chunk));
      } catch (error) {
        if (!(error instanceof DamagedChunk)) throw error;
        damage ??= error;
      }
      if (endOffset >= chunk.endOffset) return endOffset;
    }
    if (damage !== undefined) throw damage;
    return endOffset;
  }

  async #fetchUnder(cell: string, chunk: Chunk): Promise<number> {
    const { rangeOffset, index } = chunk;
    const { storeId, runId, kind } = this.#request;
    const subject = chunkSubject(cell, storeId, { runId, kind, offset: rangeOffset }, index);
    const message = await this.#host.fetch(subject);
    if (message === null) return 0;
    const { header, bytes } = message;
    const fields = decodeChunk(header, bytes);
    const offset = rangeOffset + (index - 1) * CHUNK_BYTES;
    if (fields === null || fields.index !== index || fields.offset !== offset) throw new DamagedChunk(subject);
    const endOffset = offset + bytes.length;
    const knownEnd = this.#ends.get(keyOf(chunk)) ?? offset;
    if (endOffset <= knownEnd) return knownEnd;
    await this.#write(bytes, offset, endOffset - knownEnd);
    this.#ends.set(keyOf(chunk), endOffset);
    return endOffset;
  }

  /** @param newBytes how many of them were not here before */
  async #write(bytes: Uint8Array, offset: number, newBytes: number): Promise<void> {
    await this.#host.makeRoom(newBytes);
    this.bytes += newBytes;
    try {
      const file = await this.#host.fileSystem.open(this.path, "createOrUpdate");
      try {
        await writeFully(file, bytes, offset, this.path);
      } finally {
        await file.close();
      }
    } catch (error) {
      // Nobody knows how much of it is on the disk.
      this.isDamaged = true;
      throw error;
    }
  }
}

function keyOf({ rangeOffset, index }: Chunk): string {
  return `${rangeOffset}.${index}`;
}
