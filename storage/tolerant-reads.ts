import { type FileSystem, type FileSystemError, isUnreadable, type StoreFile } from "./file-system.js";

/** What one read of a failing disk can hide: reads are tried again in pieces of this size, the block of most disks and file systems. */
const BLOCK_BYTES = 4096;

/**
 * A file system for whoever looks over a store on a failing disk: bytes that the disk does not give are told, and read as random ones,
 * which are no record and match no CRC. Only for reading, and never for opening a store: what is behind them could still be there.
 *
 * @param onUnreadable called for each place when it is read, which can be more than once
 */
export function tolerantReads(
  fileSystem: FileSystem,
  onUnreadable: (path: string, offset: number, lengthBytes: number, error: FileSystemError) => void,
): FileSystem {
  return {
    ...boundTo(fileSystem),
    async open(path, mode) {
      const file = await fileSystem.open(path, mode);
      return { ...fileBoundTo(file), read: (into, position) => readAround(file, into, position) };

      async function readAround(source: StoreFile, into: Uint8Array, position: number): Promise<number> {
        try {
          return await source.read(into, position);
        } catch (error) {
          if (!isUnreadable(error)) throw error;
          const sizeBytes = await source.size();
          const lengthBytes = Math.max(
            0,
            Math.min(into.length, sizeBytes - position, BLOCK_BYTES - (position % BLOCK_BYTES)),
          );
          const block = into.subarray(0, lengthBytes);
          // The block alone: a longer read fails as a whole when any part of it does.
          if (lengthBytes < into.length) return await readAround(source, block, position);
          crypto.getRandomValues(block as Uint8Array<ArrayBuffer>);
          onUnreadable(path, position, lengthBytes, error);
          return lengthBytes;
        }
      }
    },
  };
}

function boundTo(fileSystem: FileSystem): FileSystem {
  return {
    open: (path, mode) => fileSystem.open(path, mode),
    openSync: (path) => fileSystem.openSync(path),
    rename: (from, to) => fileSystem.rename(from, to),
    unlink: (path) => fileSystem.unlink(path),
    makeDirectory: (path) => fileSystem.makeDirectory(path),
    removeDirectory: (path) => fileSystem.removeDirectory(path),
    openDirectory: (path) => fileSystem.openDirectory(path),
    readDirectory: (path) => fileSystem.readDirectory(path),
    exists: (path) => fileSystem.exists(path),
    sizeOf: (path) => fileSystem.sizeOf(path),
    statusOf: (path) => fileSystem.statusOf(path),
    assertAccess: (path, access) => fileSystem.assertAccess(path, access),
    syncDirectory: (path) => fileSystem.syncDirectory(path),
    room: (path) => fileSystem.room(path),
  };
}

function fileBoundTo(file: StoreFile): StoreFile {
  return {
    write: (bytes, position) => file.write(bytes, position),
    read: (into, position) => file.read(into, position),
    readSync: (into, position) => file.readSync(into, position),
    datasync: () => file.datasync(),
    truncate: (sizeBytes) => file.truncate(sizeBytes),
    size: () => file.size(),
    identity: () => file.identity(),
    close: () => file.close(),
  };
}
