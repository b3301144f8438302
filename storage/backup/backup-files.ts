import { dirname } from "node:path";
import { isMissing, orWhereMissing } from "../disk/file-system-error.js";
import type { FileSystem } from "../disk/file-system-interface.js";
import { withFile } from "../disk/whole-files.js";
import { linked } from "./backup-target.js";

/** Puts files into a backup, by paths relative to the store, and counts them. */
export class BackupFiles {
  linkedFiles = 0;
  copiedFiles = 0;
  copiedBytes = 0;
  /** A file was taken from the previous backup. */
  hasReused = false;
  readonly fileSystem: FileSystem;
  /** The store. */
  readonly from: string;
  /** The folder that is being filled. */
  readonly to: string;
  /** The previous backup, for files that cannot be linked to those of the store. */
  readonly previous: string | null;
  readonly #folders = new Set<string>();

  constructor(fileSystem: FileSystem, { from, to, previous }: { from: string; to: string; previous: string | null }) {
    this.fileSystem = fileSystem;
    this.from = from;
    this.to = to;
    this.previous = previous;
  }

  /** Size of the file in the backup; null when it is not there yet. */
  sizeOf(name: string): Promise<number | null> {
    return orWhereMissing(this.fileSystem.sizeOf(`${this.to}/${name}`), null);
  }

  async remove(name: string): Promise<void> {
    await orWhereMissing(this.fileSystem.unlink(`${this.to}/${name}`), undefined);
  }

  /**
   * Puts a file durably into the backup, in place of one that may be there.
   *
   * @param isFinal the service never writes to it again: so both may share it
   * @param isSame says whether the previous backup has the same file; default: its size tells
   * @returns false when the store has no such file
   */
  async put(name: string, isFinal: boolean, isSame = () => this.#hasSameSize(name)): Promise<boolean> {
    const [from, to] = [`${this.from}/${name}`, `${this.to}/${name}`];
    await this.#ensureFolder(dirname(to));
    await this.remove(name);
    try {
      if (!(isFinal && (await this.#share(name, isSame)))) {
        await this.fileSystem.copyFile(from, to);
        this.copiedFiles++;
        this.copiedBytes += await this.fileSystem.sizeOf(to);
      }
    } catch (error) {
      if (isMissing(error) && !(await this.fileSystem.exists(from))) return false;
      throw error;
    }
    await withFile(this.fileSystem, to, (file) => file.datasync());
    return true;
  }

  async #share(name: string, isSame: () => Promise<boolean>): Promise<boolean> {
    const to = `${this.to}/${name}`;
    let isLinked = await linked(this.fileSystem, `${this.from}/${name}`, to);
    if (!isLinked && this.previous !== null && (await isSame())) {
      isLinked = await linked(this.fileSystem, `${this.previous}/${name}`, to);
      if (isLinked) this.hasReused = true;
    }
    if (isLinked) this.linkedFiles++;
    return isLinked;
  }

  async #hasSameSize(name: string): Promise<boolean> {
    const size = await orWhereMissing(this.fileSystem.sizeOf(`${this.previous}/${name}`), null);
    return size !== null && size === (await this.fileSystem.sizeOf(`${this.from}/${name}`));
  }

  async #ensureFolder(path: string): Promise<void> {
    if (this.#folders.has(path)) return;
    if (path !== this.to) await this.#ensureFolder(dirname(path));
    await this.fileSystem.makeDirectory(path);
    this.#folders.add(path);
  }

  /** Makes a folder of the store that may have no files. */
  makeFolder(name: string): Promise<void> {
    return this.#ensureFolder(`${this.to}/${name}`);
  }

  async syncNames(): Promise<void> {
    for (const path of [...this.#folders, this.to]) await this.fileSystem.syncDirectory(path);
  }
}
