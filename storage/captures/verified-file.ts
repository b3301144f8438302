import type { Extent } from "../../core/capture/capture.js";
import type { StoreFile } from "../disk/file-system-interface.js";
import { readFully } from "../disk/whole-files.js";
import { StorageError } from "../storage-error.js";
import { fileEndText, readExtentCrc } from "./extent-crc.js";

/** Extents are verified in chunks of this size, so that a large one needs no more memory than a chunk of a download. */
const CHUNK_BYTES = 256 * 1024;
/** How many verified extents are remembered. A download from front to end needs only a few at a time. */
const MAXIMUM_EXTENTS = 1_024;
/** After this an extent is verified again, because bytes may rot while a file stays open. */
const VERIFIED_MS = 60_000;

/** A file of stored bytes that returns bytes of an extent only after the whole extent was compared with its CRC. */
export class VerifiedFile {
  readonly #path: string;
  readonly #file: Pick<StoreFile, "read" | "close">;
  readonly #nowMs: () => number;
  /** When each extent was verified, oldest first. */
  readonly #verifiedAtMs = new Map<string, number>();
  readonly #running = new Map<string, Promise<Uint8Array | undefined>>();

  constructor(path: string, file: Pick<StoreFile, "read" | "close">, nowMs: () => number) {
    this.#path = path;
    this.#file = file;
    this.#nowMs = nowMs;
  }

  /**
   * Fills `into` from byte `within` of the extent on.
   *
   * @throws StorageError `capture_damaged` when the extent does not match its CRC, or the file ends before the extent does
   */
  async read(extent: Extent, within: number, into: Uint8Array): Promise<void> {
    const whole = await this.#verified(extent);
    if (whole !== undefined) {
      into.set(whole.subarray(within, within + into.length));
      return;
    }
    const count = await readFully(this.#file, into, extent.offset + within);
    if (count < into.length) throw this.#endsAt(extent.offset + within, count);
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  /** Verifies the extent unless that was done recently. Gives its bytes if the extent is short and had to be read for it, else undefined. */
  #verified(extent: Extent): Promise<Uint8Array | undefined> | undefined {
    const key = `${extent.offset} ${extent.lengthBytes} ${extent.crc32}`;
    const atMs = this.#verifiedAtMs.get(key);
    if (atMs !== undefined && this.#nowMs() - atMs < VERIFIED_MS) return undefined;
    // If several clients wait for the same extent, it is read once.
    let running = this.#running.get(key);
    if (running === undefined) {
      running = this.#verify(extent, key).finally(() => this.#running.delete(key));
      this.#running.set(key, running);
    }
    return running;
  }

  /** Reads in chunks, with a turn of the event loop at each. */
  async #verify(extent: Extent, key: string): Promise<Uint8Array | undefined> {
    const { offset, lengthBytes } = extent;
    const startedMs = this.#nowMs();
    const chunk = new Uint8Array(Math.min(CHUNK_BYTES, lengthBytes));
    const { crc, readBytes } = await readExtentCrc(this.#file, extent, chunk);
    if (readBytes < lengthBytes) throw this.#endsAt(offset, readBytes);
    if (crc !== extent.crc32) {
      const message = `${this.#path}, offset ${offset}: the bytes do not match their CRC`;
      throw new StorageError("capture_damaged", message, { path: this.#path, offset });
    }
    this.#remember(key, startedMs);
    return lengthBytes <= chunk.length ? chunk : undefined;
  }

  #remember(key: string, atMs: number): void {
    this.#verifiedAtMs.delete(key);
    this.#verifiedAtMs.set(key, atMs);
    if (this.#verifiedAtMs.size <= MAXIMUM_EXTENTS) return;
    for (const oldest of this.#verifiedAtMs.keys()) {
      this.#verifiedAtMs.delete(oldest);
      return;
    }
  }

  #endsAt(readAt: number, readBytes: number): StorageError {
    const [path, offset] = [this.#path, readAt + readBytes];
    const message = `${path} ${fileEndText(readAt, readBytes)}, within stored bytes`;
    return new StorageError("capture_damaged", message, { path, offset });
  }
}
