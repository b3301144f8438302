import { type FileSystem, FileSystemError, isMissing, isUnreadable, type StoreFile } from "./file-system.js";

/** What one read of a failing disk can hide: reads are tried again in pieces of this size, the block of most disks and file systems. */
const BLOCK_BYTES = 4096;

/** Told of each place when it is met, which can be more than once; of a folder, or a file as a whole, with offset and length 0. */
export type OnUnreadable = (path: string, offset: number, lengthBytes: number, error: FileSystemError) => void;

/**
 * A file system for whoever looks over a store on a failing disk: bytes that the disk does not give are told, and read as random ones,
 * which are no record and match no CRC. Only for reading, and never for opening a store: what is behind them could still be there.
 */
export function tolerantReads(fileSystem: FileSystem, onUnreadable: OnUnreadable): FileSystem {
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

/**
 * As `tolerantReads`, of what is asked about names: a folder that cannot be listed is told and taken for an empty one, a file that the
 * disk says nothing of for one of no bytes, or for none.
 */
export function tolerantLookups(fileSystem: FileSystem, onUnreadable: OnUnreadable): FileSystem {
  const answerOr = async <T>(path: string, answer: Promise<T>, otherwise: T): Promise<T> => {
    try {
      return await answer;
    } catch (error) {
      if (!(error instanceof FileSystemError) || isMissing(error)) throw error;
      onUnreadable(path, 0, 0, error);
      return otherwise;
    }
  };
  return {
    ...boundTo(fileSystem),
    readDirectory: (path) => answerOr(path, fileSystem.readDirectory(path), []),
    exists: (path) => answerOr(path, fileSystem.exists(path), false),
    sizeOf: (path) => answerOr(path, fileSystem.sizeOf(path), 0),
  };
}

/** As `tolerantReads`, of files that are known by their names: one that cannot be opened is told and gives no bytes, whatever its size. */
export function tolerantOpens(fileSystem: FileSystem, onUnreadable: OnUnreadable): FileSystem {
  return {
    ...boundTo(fileSystem),
    async open(path, mode) {
      try {
        const file = await fileSystem.open(path, mode);
        // Asked here, where it can still be told; nobody writes to the file.
        const sizeBytes = await file.size().catch((error: unknown) => file.close().then(() => Promise.reject(error)));
        return { ...fileBoundTo(file), size: async () => sizeBytes };
      } catch (error) {
        if (!(error instanceof FileSystemError)) throw error;
        onUnreadable(path, 0, 0, error);
        return unreadableFile(await fileSystem.sizeOf(path).catch(() => 0), error);
      }
    },
  };
}

/** All of these: for who is to get at whatever the disk still gives, of files that stand in listed folders. */
export function tolerantDisk(fileSystem: FileSystem, onUnreadable: OnUnreadable): FileSystem {
  const lookups = tolerantLookups(fileSystem, onUnreadable);
  return tolerantOpens(tolerantReads(lookups, onUnreadable), onUnreadable);
}

function unreadableFile(sizeBytes: number, error: FileSystemError): StoreFile {
  const refuse = (): Promise<never> => Promise.reject(error);
  return {
    ...{ write: refuse, datasync: refuse, truncate: refuse, identity: refuse },
    read: async () => 0,
    readSync: () => 0,
    size: async () => sizeBytes,
    close: async () => {},
    closeSync: () => {},
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
    closeSync: () => file.closeSync(),
  };
}
