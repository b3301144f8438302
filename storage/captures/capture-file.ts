import { crc32 } from "node:zlib";
import type { Extent } from "../../core/capture/capture.js";
import { type FileSystem, type StoreFile, writeFully } from "../disk/file-system.js";
import type { WriteRoom } from "../disk/write-room.js";
import type { Durable } from "../log/log-options.js";

/** What a capture file needs of its store. */
export interface CaptureFileHost {
  readonly room: WriteRoom;
  /** Opens the file, when a descriptor is to be had, in a folder that is seen to; the first time cuts what stands behind `keptBytes`. */
  open(path: string, keptBytes: number | null): Promise<StoreFile>;
  close(file: StoreFile): Promise<void>;
  /** Makes the file's name durable, unless it is known to be. */
  syncName(path: string): Promise<void>;
  /** The file is in use: it becomes the last that the store would close. */
  touch(file: CaptureFile): void;
  /** Throws after a failure. */
  assertWorking(): void;
  fail(error: unknown): void;
  /** Bytes whose writing has begun (positive) or ended (negative). */
  count(bytes: number): void;
}

interface Handle {
  file: Promise<StoreFile>;
}

/**
 * The bytes of one run, of one kind. An append reserves its place at once and is written beside others; `makeDurable` is what a record
 * that names the place waits for. A failure of any write or sync is the store's, and final. A write that finds no room waits for some and
 * is made again at its place: no record names the place before every write of it is done, and nobody else writes there.
 */
export class CaptureFile implements Durable {
  readonly path: string;
  readonly #host: CaptureFileHost;
  readonly #committedEnd: number;
  #endOffset: number;
  #handle: Handle | null = null;
  #isPrepared = false;
  /** The store itself has taken, or is about to take, the file's name away. */
  #losesName = false;
  readonly #writes = new Set<Promise<void>>();
  /** The last append's: a file is written by one thread at a time, as others would only spin on the file's lock. */
  #lastWrite: Promise<void> = Promise.resolve();
  /** Appends so far, and how many of them are durable. */
  #appended = 0;
  #synced = 0;
  #sync: Promise<void> | null = null;
  /** The last letting go of a descriptor, while it is under way: it syncs what was written through it. */
  #releasing: Promise<void> | null = null;

  /** @param committedEnd where the bytes that records name end; what stands behind was never acknowledged and is overwritten */
  constructor(host: CaptureFileHost, path: string, committedEnd: number) {
    this.#host = host;
    this.path = path;
    this.#committedEnd = committedEnd;
    this.#endOffset = committedEnd;
  }

  /** Where the next append goes. */
  get endOffset(): number {
    return this.#endOffset;
  }

  /**
   * Appends the payload, which must not change until `whenWritten` or `makeDurable` resolves.
   *
   * @throws StorageError `capture_failed` after a failure of the store
   */
  append(payload: Uint8Array): Extent {
    this.#host.assertWorking();
    const extent = { offset: this.#endOffset, lengthBytes: payload.length, crc32: crc32(payload) };
    if (payload.length === 0) return extent;
    this.#endOffset += payload.length;
    this.#appended++;
    this.#host.count(payload.length);
    const write = this.#write(payload, extent.offset, this.#opened(), this.#lastWrite).then(() => {
      this.#writes.delete(write);
      this.#host.count(-payload.length);
    });
    this.#writes.add(write);
    this.#lastWrite = write;
    return extent;
  }

  async whenWritten(): Promise<void> {
    if (this.#writes.size > 0) await Promise.all(this.#writes);
    this.#host.assertWorking();
  }

  async makeDurable(): Promise<void> {
    const target = this.#appended;
    await this.whenWritten();
    while (this.#synced < target) {
      if (this.#handle === null && this.#releasing !== null) {
        // Opened once more, the file of a run that has ended would stay open, and its bytes with it when retention unlinks it.
        await this.#releasing;
        this.#host.assertWorking();
        continue;
      }
      if (this.#sync === null) {
        this.#sync = this.#syncUpTo(target, this.#opened()).finally(() => {
          this.#sync = null;
        });
      }
      await this.#sync;
      this.#host.assertWorking();
    }
  }

  /** The store is about to unlink the file. */
  loseName(): void {
    this.#losesName = true;
  }

  /** False when the name of the file that is open is gone or another file's, by nothing that the store did. Never rejects. */
  async hasName(fileSystem: FileSystem): Promise<boolean> {
    const handle = this.#handle;
    if (handle === null) return true;
    try {
      const file = await handle.file;
      const status = await fileSystem.statusOf(this.path);
      const isNamed = status?.identity === (await file.identity());
      return isNamed || this.#losesName || handle !== this.#handle;
    } catch {
      // Closed meanwhile, or the disk does not answer: a write or sync will say so.
      return true;
    }
  }

  /** Lets go of the descriptor, once all is written and synced. The file can be used on. */
  release(): Promise<void> {
    const handle = this.#handle;
    if (handle === null) return Promise.resolve();
    this.#handle = null;
    const releasing = this.#release(handle).finally(() => {
      if (this.#releasing === releasing) this.#releasing = null;
    });
    this.#releasing = releasing;
    return releasing;
  }

  async #release(handle: Handle): Promise<void> {
    const target = this.#appended;
    await Promise.all(this.#writes);
    // A sync under way may be using this descriptor.
    while (this.#sync !== null) await this.#sync;
    if (this.#synced < target) await this.#syncUpTo(target, handle.file);
    try {
      await this.#host.close(await handle.file);
    } catch (error) {
      this.#host.fail(error);
    }
  }

  /** Never rejects: the host knows of the failure. */
  async #write(
    payload: Uint8Array,
    offset: number,
    opened: Promise<StoreFile>,
    previous: Promise<void>,
  ): Promise<void> {
    try {
      const file = await opened;
      await previous;
      await this.#host.room.attempt(() => {
        // Of another attempt: something else may have failed while this one waited for room.
        this.#host.assertWorking();
        return writeFully(file, payload, offset, this.path);
      });
    } catch (error) {
      this.#host.fail(error);
    }
  }

  /** Never rejects: the host knows of the failure. Everything up to `target` is written. */
  async #syncUpTo(target: number, opened: Promise<StoreFile>): Promise<void> {
    try {
      const file = await opened;
      await file.datasync();
      await this.#host.syncName(this.path);
      if (target > this.#synced) this.#synced = target;
    } catch (error) {
      this.#host.fail(error);
    }
  }

  #opened(): Promise<StoreFile> {
    if (this.#handle === null) {
      this.#handle = { file: this.#host.open(this.path, this.#isPrepared ? null : this.#committedEnd) };
      this.#isPrepared = true;
    }
    this.#host.touch(this);
    return this.#handle.file;
  }
}
