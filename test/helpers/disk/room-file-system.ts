import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import { FileSystemError } from "../../../storage/disk/file-system-error.js";
import type { FileSystem, StoreFile } from "../../../storage/disk/file-system-interface.js";

/** The machine's file system that says it has as much room as a test wants, and refuses writes while the test says it is full. */
export class RoomFileSystem {
  freeBytes = 2 ** 40;
  totalBytes = 2 ** 41;
  /** Writes to files whose path contains one of these fail with ENOSPC. */
  fullPaths: string[] = [];
  refusedWrites = 0;
  /** Every fdatasync fails with EIO. */
  failsSyncs = false;

  readonly fileSystem: FileSystem = {
    ...nodeFileSystem,
    open: async (path, mode) => this.#wrap(await nodeFileSystem.open(path, mode), path),
    room: async () => ({ freeBytes: this.freeBytes, totalBytes: this.totalBytes }),
  };

  #wrap(file: StoreFile, path: string): StoreFile {
    return {
      write: async (bytes, position) => {
        if (this.fullPaths.some((part) => path.includes(part))) {
          this.refusedWrites++;
          throw new FileSystemError("ENOSPC", "write", path);
        }
        return file.write(bytes, position);
      },
      read: (into, position) => file.read(into, position),
      readSync: (into, position) => file.readSync(into, position),
      datasync: async () => {
        if (this.failsSyncs) throw new FileSystemError("EIO", "fdatasync", path);
        await file.datasync();
      },
      truncate: (sizeBytes) => file.truncate(sizeBytes),
      size: () => file.size(),
      identity: () => file.identity(),
      close: () => file.close(),
      closeSync: () => file.closeSync(),
    };
  }
}
