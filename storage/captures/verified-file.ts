import type { Extent } from "../../core/capture/capture.js";
import { readFully, type StoreFile } from "../disk/file-system.js";
import { StorageError } from "../storage-error.js";
import { fileEndText, readExtentCrc } from "./extent-crc.js";

/** A slice of a download: memory of a client that waits for an extent of 64 MiB is no more than of one that takes its bytes. */
const PIECE_BYTES = 256 * 1024;
/** Extents that are remembered: a download in order needs a few at a time. */
const MAXIMUM_EXTENTS = 1_024;
/** Then they are read against their CRCs again: bytes may rot while a file stays open. */
const VERIFIED_MS = 60_000;

/** A file of stored bytes that gives no byte of an extent before all of the extent was compared with its CRC. */
export class VerifiedFile {
  readonly #path: string;
  readonly #file: Pick<StoreFile, "read" | "close">;
  readonly #nowMs: () => number;
  /** When an extent was verified, oldest first. */
  readonly #verifiedAtMs = new Map<string, number>();
  readonly #running = new Map<string, Promise<Uint8Array | undefined>>();

  constructor(path: string, file: Pick<StoreFile, "read" | "close">, nowMs: () => number) {
    this.#path = path;
    this.#file = file;
    this.#nowMs = nowMs;
  }

  /**
   * Fills `into` from byte `within` of the extent on.
   * @throws StorageError `capture_damaged` when the extent does not match its CRC, or the file ends before its end
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

  /** The bytes of a short extent that had to be read for this; else they are to be read. */
  #verified(extent: Extent): Promise<Uint8Array | undefined> | undefined {
    const key = `${extent.offset} ${extent.lengthBytes} ${extent.crc32}`;
    const atMs = this.#verifiedAtMs.get(key);
    if (atMs !== undefined && this.#nowMs() - atMs < VERIFIED_MS) return undefined;
    // One that several clients wait for is read once.
    let running = this.#running.get(key);
    if (running === undefined) {
      running = this.#verify(extent, key).finally(() => this.#running.delete(key));
      this.#running.set(key, running);
    }
    return running;
  }

  /** In pieces, with a turn of the event loop at each. */
  async #verify(extent: Extent, key: string): Promise<Uint8Array | undefined> {
    const { offset, lengthBytes } = extent;
    const startedMs = this.#nowMs();
    const piece = new Uint8Array(Math.min(PIECE_BYTES, lengthBytes));
    const { crc, readBytes } = await readExtentCrc(this.#file, extent, piece);
    if (readBytes < lengthBytes) throw this.#endsAt(offset, readBytes);
    if (crc !== extent.crc32) {
      const message = `${this.#path}, offset ${offset}: the bytes do not match their CRC`;
      throw new StorageError("capture_damaged", message, { path: this.#path, offset });
    }
    this.#remember(key, startedMs);
    return lengthBytes <= piece.length ? piece : undefined;
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
