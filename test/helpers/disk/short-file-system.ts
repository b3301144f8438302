import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import { FileSystemError } from "../../../storage/disk/file-system-error.js";
import type { FileSystem, StoreFile } from "../../../storage/disk/file-system-interface.js";

/** Calls of the system that a file system makes, by the names that its errors have. */
export const CALLS = [
  "open",
  "mkdir",
  "rename",
  "unlink",
  "rmdir",
  "readdir",
  "stat",
  "statfs",
  "read",
  "write",
  "ftruncate",
  "fstat",
] as const;
export type Call = (typeof CALLS)[number];

/** The machine's file system, which has nothing left for the call that a test names. Of `/proc` only the lock's short path counts. */
export class ShortFileSystem {
  /** What fails, and with what code; null: nothing. */
  missing: { call: Call; code: string } | null = null;
  refusals = 0;

  readonly fileSystem: FileSystem = {
    ...nodeFileSystem,
    open: async (path, mode) => {
      this.#refuse("open", path);
      return this.#wrap(await nodeFileSystem.open(path, mode), path);
    },
    openSync: (path) => {
      this.#refuse("open", path);
      return this.#wrap(nodeFileSystem.openSync(path), path);
    },
    rename: async (from, to) => {
      this.#refuse("rename", from);
      await nodeFileSystem.rename(from, to);
    },
    unlink: async (path) => {
      this.#refuse("unlink", path);
      await nodeFileSystem.unlink(path);
    },
    makeDirectory: async (path) => {
      this.#refuse("mkdir", path);
      return nodeFileSystem.makeDirectory(path);
    },
    removeDirectory: async (path) => {
      this.#refuse("rmdir", path);
      await nodeFileSystem.removeDirectory(path);
    },
    openDirectory: async (path) => {
      this.#refuse("open", path);
      return nodeFileSystem.openDirectory(path);
    },
    readDirectory: async (path) => {
      this.#refuse("readdir", path);
      return nodeFileSystem.readDirectory(path);
    },
    exists: async (path) => {
      this.#refuse("stat", path);
      return nodeFileSystem.exists(path);
    },
    sizeOf: async (path) => {
      this.#refuse("stat", path);
      return nodeFileSystem.sizeOf(path);
    },
    statusOf: async (path) => {
      this.#refuse("stat", path);
      return nodeFileSystem.statusOf(path);
    },
    // Its folder must be opened before it can be synced.
    syncDirectory: async (path) => {
      this.#refuse("open", path);
      await nodeFileSystem.syncDirectory(path);
    },
    room: async (path) => {
      this.#refuse("statfs", path);
      return { freeBytes: 2 ** 40, totalBytes: 2 ** 41 };
    },
  };

  #wrap(file: StoreFile, path: string): StoreFile {
    const refuse = (call: Call): void => this.#refuse(call, path);
    return {
      write: async (bytes, position) => {
        refuse("write");
        return file.write(bytes, position);
      },
      read: async (into, position) => {
        refuse("read");
        return file.read(into, position);
      },
      readSync: (into, position) => {
        refuse("read");
        return file.readSync(into, position);
      },
      datasync: () => file.datasync(),
      truncate: async (sizeBytes) => {
        refuse("ftruncate");
        await file.truncate(sizeBytes);
      },
      size: async () => {
        refuse("fstat");
        return file.size();
      },
      identity: () => file.identity(),
      close: () => file.close(),
      closeSync: () => file.closeSync(),
    };
  }

  #refuse(call: Call, path: string): void {
    if (this.missing?.call !== call || /^\/proc\/(?!self\/fd\/)/.test(path)) return;
    this.refusals++;
    throw new FileSystemError(this.missing.code, call, path);
  }
}
