import { crc32 } from "node:zlib";
import type { Extent } from "../../core/capture/capture.js";
import type { FileSystem, StoreFile } from "../disk/file-system-interface.js";
import type { WriteRoom } from "../disk/retried-writes.js";
import { writeFully } from "../disk/whole-files.js";
import type { Durable } from "../log/log-options.js";

/** What a capture file needs from its store. */
export interface CaptureFileHost {
  readonly room: WriteRoom;
  /** Opens the file as soon as a descriptor is free, and makes its folder durable. `keptBytes`, if given, is where the file is cut first. */
  open(path: string, keptBytes: number | null): Promise<StoreFile>;
  close(file: StoreFile): Promise<void>;
  /** Makes the file's name durable, unless it already is. */
  syncName(path: string): Promise<void>;
  /** Marks the file as used most recently, so that the store closes others first. */
  touch(file: CaptureFile): void;
  /** Throws after a failure. */
  assertWorking(): void;
  fail(error: unknown): void;
  /** Counts bytes whose writing has begun (positive) or ended (negative). */
  count(bytes: number): void;
}

interface Handle {
  file: Promise<StoreFile>;
}

/**
 * One of a run's two files with stored bytes. An append reserves its place at once; the write follows. A record that names the place waits for
 * `makeDurable`. A failed write or sync ends the whole store for good. A write that finds no room waits, and is made again at its place: that is
 * safe, because no record names the place before the write is done, and nobody else writes there.
 */
export class CaptureFile implements Durable {
  readonly path: string;
  readonly #host: CaptureFileHost;
  readonly #committedEnd: number;
  #endOffset: number;
  #handle: Handle | null = null;
  #isPrepared = false;
  /** True when the store itself has removed the file's name, or is about to. */
  #losesName = false;
  readonly #writes = new Set<Promise<void>>();
  /** The last append's write. Writes to a file go one after another: in parallel they would only wait for the kernel's lock of the file. */
  #lastWrite: Promise<void> = Promise.resolve();
  /** Count of appends so far; `#synced` says how many of them are durable. */
  #appended = 0;
  #synced = 0;
  #sync: Promise<void> | null = null;
  /** The release of a descriptor that is under way. It syncs what was written through it. */
  #releasing: Promise<void> | null = null;

  /** @param committedEnd where the bytes that records name end; bytes after it were never acknowledged, and are overwritten */
  constructor(host: CaptureFileHost, path: string, committedEnd: number) {
    this.#host = host;
    this.path = path;
    this.#committedEnd = committedEnd;
    this.#endOffset = committedEnd;
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

  /** Gives back the place of the last appends, so many bytes, which no record will name. The next append writes over it. */
  takeBack(lengthBytes: number): void {
    this.#endOffset -= lengthBytes;
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
        // Opening the file again could leave it open after its run has ended; after retention unlinks it, its bytes would stay on the disk.
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

  /** Called before the store unlinks the file. */
  loseName(): void {
    this.#losesName = true;
  }

  /** False when somebody else removed the open file or put another file in its place. Never rejects. */
  async hasName(fileSystem: FileSystem): Promise<boolean> {
    const handle = this.#handle;
    if (handle === null) return true;
    try {
      const file = await handle.file;
      const status = await fileSystem.statusOf(this.path);
      const isNamed = status?.identity === (await file.identity());
      return isNamed || this.#losesName || handle !== this.#handle;
    } catch {
      // The file was closed meanwhile, or the disk does not answer: then a write or sync will fail.
      return true;
    }
  }

  /** Closes the descriptor once all is written and synced. The file can still be appended to: it opens again. */
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
    // A sync under way may use this descriptor.
    while (this.#sync !== null) await this.#sync;
    if (this.#synced < target) await this.#syncUpTo(target, handle.file);
    try {
      await this.#host.close(await handle.file);
    } catch (error) {
      this.#host.fail(error);
    }
  }

  /** Never rejects: it tells the host of a failure. */
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
        // Something else may have failed while this write waited for room.
        this.#host.assertWorking();
        return writeFully(file, payload, offset, this.path);
      });
    } catch (error) {
      this.#host.fail(error);
    }
  }

  /** Called when the appends up to `target` are written. Never rejects: it tells the host of a failure. */
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
