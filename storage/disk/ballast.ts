import { isNoRoom, orWhereMissing } from "./file-system-error.js";
import type { FileSystem } from "./file-system-interface.js";
import { TEMPORARY_SUFFIX, writeFully } from "./whole-files.js";

const NAME = "ballast.bin";
const CHUNK_BYTES = 256 * 1024;

/**
 * The file `ballast.bin` in the data directory only takes up room. When the disk is full, the service removes it and has room for the records of
 * what it has accepted, and for the tombstones with which retention frees more. Under its name the file is always complete and durable.
 */
export class Ballast {
  readonly #fileSystem: FileSystem;
  readonly #directory: string;
  readonly sizeBytes: number;
  #isThere = false;
  #isCancelled = false;
  #creating: Promise<boolean> | null = null;

  constructor(fileSystem: FileSystem, directory: string, sizeBytes: number) {
    this.#fileSystem = fileSystem;
    this.#directory = directory;
    this.sizeBytes = sizeBytes;
  }

  get isThere(): boolean {
    return this.#isThere;
  }

  /** Takes over the file of an earlier process. One of another size is removed; the next `create` makes it right. */
  async find(): Promise<void> {
    const path = `${this.#directory}/${NAME}`;
    await this.#remove(`${path}${TEMPORARY_SUFFIX}`);
    const foundBytes = await orWhereMissing(this.#fileSystem.sizeOf(path), null);
    this.#isThere = foundBytes === this.sizeBytes;
    if (foundBytes !== null && !this.#isThere) await this.#remove(path);
  }

  /**
   * Makes the file durably, unless it exists. False when there is no room for it, or when it was released meanwhile.
   *
   * @throws FileSystemError for any other failure; then nothing of the file is left
   */
  create(): Promise<boolean> {
    if (this.#isThere || this.sizeBytes === 0) return Promise.resolve(this.#isThere);
    this.#isCancelled = false;
    this.#creating ??= this.#create().finally(() => {
      this.#creating = null;
    });
    return this.#creating;
  }

  async #create(): Promise<boolean> {
    const path = `${this.#directory}/${NAME}`;
    const temporary = `${path}${TEMPORARY_SUFFIX}`;
    // Random bytes, because file systems can compress zeros, or not store them at all.
    const chunk = new Uint8Array(Math.min(CHUNK_BYTES, this.sizeBytes));
    for (let at = 0; at < chunk.length; at += 65_536) crypto.getRandomValues(chunk.subarray(at, at + 65_536));
    try {
      const file = await this.#fileSystem.open(temporary, "createOrUpdate");
      try {
        for (let at = 0; at < this.sizeBytes && !this.#isCancelled; at += chunk.length) {
          await writeFully(file, chunk.subarray(0, Math.min(chunk.length, this.sizeBytes - at)), at, temporary);
        }
        if (!this.#isCancelled) await file.datasync();
      } finally {
        await file.close();
      }
      if (!this.#isCancelled) {
        await this.#fileSystem.rename(temporary, path);
        await this.#fileSystem.syncDirectory(this.#directory);
        this.#isThere = true;
        if (!this.#isCancelled) return true;
      }
      await this.#drop(path);
      return false;
    } catch (error) {
      await this.#drop(path);
      if (isNoRoom(error)) return false;
      throw error;
    }
  }

  /** Looks whether somebody has removed the file. Never rejects. */
  async verifyName(): Promise<void> {
    if (!this.#isThere) return;
    try {
      const status = await this.#fileSystem.statusOf(`${this.#directory}/${NAME}`);
      if (status?.kind !== "file") this.#isThere = false;
    } catch {
      // The disk does not answer: whoever writes to it will say so.
    }
  }

  /** Gives the room back. False when there was no file. */
  async release(): Promise<boolean> {
    this.#isCancelled = true;
    if (this.#creating !== null) {
      // The unfinished `create` removes what it has written.
      await this.#creating.catch(() => false);
      return true;
    }
    if (!this.#isThere) return false;
    await this.#drop(`${this.#directory}/${NAME}`);
    return true;
  }

  /** Resolves when no work on the file is under way. */
  async settled(): Promise<void> {
    await this.#creating?.catch(() => false);
  }

  async #drop(path: string): Promise<void> {
    this.#isThere = false;
    await this.#remove(path);
    await this.#remove(`${path}${TEMPORARY_SUFFIX}`);
  }

  #remove(path: string): Promise<void> {
    return orWhereMissing(this.#fileSystem.unlink(path), undefined);
  }
}
