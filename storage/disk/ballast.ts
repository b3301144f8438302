import { type FileSystem, isMissing, isNoRoom, TEMPORARY_SUFFIX, writeFully } from "./file-system.js";

/** `ballast.bin` in the data directory. */
const NAME = "ballast.bin";
const PIECE_BYTES = 256 * 1024;

/**
 * A file that does nothing but take up room, so that there is some to give back when others have filled the disk: for the records of what
 * was taken, and for the tombstones with which retention frees more. Its name stands for a file that is whole and durable.
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

  /** Takes over what an earlier process left. One of another size goes: the next `create` makes it as it should be. */
  async find(): Promise<void> {
    const path = `${this.#directory}/${NAME}`;
    await this.#remove(`${path}${TEMPORARY_SUFFIX}`);
    try {
      this.#isThere = (await this.#fileSystem.sizeOf(path)) === this.sizeBytes;
      if (!this.#isThere) await this.#remove(path);
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  }

  /**
   * Makes it, durably; nothing when it is there. False when there is no room for it, or when it was released meanwhile.
   *
   * @throws FileSystemError for any other failure; nothing is left of it then
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
    // Bytes that no file system can make smaller, or not store at all, as it can with zeros.
    const piece = new Uint8Array(Math.min(PIECE_BYTES, this.sizeBytes));
    for (let at = 0; at < piece.length; at += 65_536) crypto.getRandomValues(piece.subarray(at, at + 65_536));
    try {
      const file = await this.#fileSystem.open(temporary, "createOrUpdate");
      try {
        for (let at = 0; at < this.sizeBytes && !this.#isCancelled; at += piece.length) {
          await writeFully(file, piece.subarray(0, Math.min(piece.length, this.sizeBytes - at)), at, temporary);
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

  /** Gives its room back. False when there was none to give. */
  async release(): Promise<boolean> {
    this.#isCancelled = true;
    if (this.#creating !== null) {
      // It takes itself away, and what it had taken of the room is free then.
      await this.#creating.catch(() => false);
      return true;
    }
    if (!this.#isThere) return false;
    await this.#drop(`${this.#directory}/${NAME}`);
    return true;
  }

  /** Resolves when nothing is done to the file any more. */
  async settled(): Promise<void> {
    await this.#creating?.catch(() => false);
  }

  async #drop(path: string): Promise<void> {
    this.#isThere = false;
    await this.#remove(path);
    await this.#remove(`${path}${TEMPORARY_SUFFIX}`);
  }

  async #remove(path: string): Promise<void> {
    try {
      await this.#fileSystem.unlink(path);
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  }
}
