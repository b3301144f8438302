import type { Extent } from "../../core/capture/capture.js";
import { lowerBound } from "../../core/lower-bound.js";
import { isMissing, isNoFile } from "../disk/file-system-error.js";
import type { FileSystem, StoreFile } from "../disk/file-system-interface.js";
import { type OpenFile, OpenFiles } from "../disk/open-files.js";
import { withUnreadableAsDamage } from "../disk/unreadable-damage.js";
import { closeLater } from "../disk/whole-files.js";
import { StorageError } from "../storage-error.js";
import { fileEndText, readExtentCrc } from "./extent-crc.js";
import { VerifiedFile } from "./verified-file.js";

/** An extent can have 64 MiB, so it is checked in chunks of this size. */
const CHUNK_BYTES = 1024 * 1024;

/** Extents of one file, read as if they were one file of `sizeBytes`. */
export interface ExtentReader {
  readonly sizeBytes: number;
  /**
   * Reads exactly `length` bytes from `position`, fewer only at the end. A range has no CRC of its own, so every extent that it touches is first
   * verified as a whole, unless that was done a short time ago.
   *
   * @param into at least `length` bytes of memory to fill, instead of new memory; the result is a part of it
   * @throws StorageError `capture_damaged` when an extent does not match its CRC, or the file ends before its end
   */
  read(position: number, length: number, into?: Uint8Array): Promise<Uint8Array>;
  close(): void;
}

interface OpenCaptures extends OpenFile {
  readonly file: VerifiedFile;
}

/** Reads the stored bytes of runs, from any thread. A file stays open while somebody reads it. */
export class CaptureReader {
  readonly #fileSystem: FileSystem;
  readonly #nowMs: () => number;
  readonly #open: OpenFiles<string, OpenCaptures>;
  /** Count of calls of `forget`: a file that was being opened meanwhile may be the one to forget. */
  #forgotten = 0;

  /** @param options.nowMs a monotonic clock, by which a verified extent counts as verified for some time */
  constructor(options: { fileSystem: FileSystem; nowMs?: () => number }) {
    this.#fileSystem = options.fileSystem;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#open = new OpenFiles();
  }

  /** @throws StorageError `capture_missing` when the file does not exist, `capture_damaged` when something else has its name */
  async openExtents(path: string, extents: readonly Extent[]): Promise<ExtentReader> {
    const open = await this.#file(path);
    // ends[n] is where extent n ends in the whole.
    const ends = new Float64Array(extents.length);
    let sizeBytes = 0;
    for (const [position, extent] of extents.entries()) {
      sizeBytes += extent.lengthBytes;
      ends[position] = sizeBytes;
    }
    let isClosed = false;
    return {
      sizeBytes,
      read: async (position, length, into) => {
        if (isClosed) throw new Error(`${path}: read after close`);
        const count = Math.max(0, Math.min(length, sizeBytes - position));
        const bytes = into?.subarray(0, count) ?? new Uint8Array(count);
        let at = lowerBound(0, ends.length, (nth) => ends[nth]! <= position);
        for (let done = 0; done < bytes.length; at++) {
          const extent = extents[at]!;
          const within = position + done - (ends[at]! - extent.lengthBytes);
          const part = bytes.subarray(done, done + Math.min(extent.lengthBytes - within, bytes.length - done));
          if (part.length === 0) continue;
          await open.file.read(extent, within, part);
          done += part.length;
        }
        return bytes;
      },
      close: () => {
        if (isClosed) return;
        isClosed = true;
        this.#open.release(open);
      },
    };
  }

  /** Called before the file is unlinked. Whoever reads it may finish; then it is closed, and nobody else gets it. */
  forget(path: string): void {
    this.#forgotten++;
    this.#open.delete(path);
  }

  /** Closes each file as soon as nobody reads it. */
  close(): void {
    this.#open.clear();
  }

  async #file(path: string): Promise<OpenCaptures> {
    const known = this.#open.take(path);
    if (known !== undefined) return known;
    const forgotten = this.#forgotten;
    try {
      const file = withUnreadableAsDamage(await this.#fileSystem.open(path, "read"), (offset, { code }) => {
        const message = `${path}, offset ${offset}: the disk cannot read these bytes (${code})`;
        return new StorageError("capture_damaged", message, { path, offset });
      });
      const meanwhile = this.#open.take(path);
      if (meanwhile !== undefined) {
        // Shared, for what was verified of it.
        closeLater(file);
        return meanwhile;
      }
      const open = { file: new VerifiedFile(path, file, this.#nowMs), readers: 1, isEvicted: false };
      if (forgotten === this.#forgotten) this.#open.set(path, open);
      else open.isEvicted = true;
      return open;
    } catch (error) {
      throw notOpened(path, error);
    }
  }
}

/** An extent whose bytes are not what was stored. */
export interface ExtentDamage {
  extent: Extent;
  reason: string;
}

/**
 * Compares stored bytes with their CRCs, in bounded memory.
 *
 * @throws StorageError `capture_missing` when the file does not exist, `capture_damaged` when something else has its name
 */
export async function verifyExtents(
  fileSystem: FileSystem,
  path: string,
  extents: Iterable<Extent>,
): Promise<ExtentDamage[]> {
  let file: StoreFile;
  try {
    file = await fileSystem.open(path, "read");
  } catch (error) {
    throw notOpened(path, error);
  }
  const damages: ExtentDamage[] = [];
  let chunk = new Uint8Array(0);
  try {
    for (const extent of extents) {
      if (chunk.length < Math.min(CHUNK_BYTES, extent.lengthBytes)) {
        chunk = new Uint8Array(Math.min(CHUNK_BYTES, extent.lengthBytes));
      }
      const { crc, readBytes } = await readExtentCrc(file, extent, chunk);
      if (readBytes < extent.lengthBytes) {
        damages.push({ extent, reason: `the file ${fileEndText(extent.offset, readBytes)}, within the extent` });
      } else if (crc !== extent.crc32) {
        damages.push({ extent, reason: "the bytes do not match their CRC" });
      }
    }
  } finally {
    await file.close();
  }
  return damages;
}

function notOpened(path: string, error: unknown): unknown {
  if (isMissing(error)) return new StorageError("capture_missing", `${path} does not exist`, { path });
  if (!isNoFile(error)) return error;
  return new StorageError("capture_damaged", `${path} is not a file (${error.message})`, { path });
}
