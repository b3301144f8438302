import { FileSystemError, isMissing, isUnreadable } from "./file-system-error.js";
import type { FileSystem, StoreFile } from "./file-system-interface.js";

/** A failed read is tried again in chunks of this size, the block size of most disks and file systems. */
const BLOCK_BYTES = 4096;

/** Called for each unreadable place, possibly more than once. Offset and length are 0 for a folder or a whole file. */
export type OnUnreadable = (path: string, offset: number, lengthBytes: number, error: FileSystemError) => void;

/**
 * A file system for checking a store on a failing disk. It reports bytes that the disk cannot read, and gives random bytes for them, which are no
 * record and match no CRC. It is only for reading, and never for opening a store: a later read of the same bytes may succeed.
 */
export function tolerantReads(fileSystem: FileSystem, onUnreadable: OnUnreadable): FileSystem {
  return replacing(fileSystem, {
    async open(path, mode) {
      const file = await fileSystem.open(path, mode);
      return replacing(file, { read: (into, position) => readAround(file, into, position) });

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
          // Read the block alone: a longer read fails as a whole when any part of it does.
          if (lengthBytes < into.length) return await readAround(source, block, position);
          crypto.getRandomValues(block as Uint8Array<ArrayBuffer>);
          onUnreadable(path, position, lengthBytes, error);
          return lengthBytes;
        }
      }
    },
  });
}

/**
 * As `tolerantReads`, for lookups of names. It reports a folder that cannot be listed and takes it for an empty one. A file whose status cannot
 * be read counts as empty, or as missing.
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
  return replacing(fileSystem, {
    readDirectory: (path) => answerOr(path, fileSystem.readDirectory(path), []),
    exists: (path) => answerOr(path, fileSystem.exists(path), false),
    sizeOf: (path) => answerOr(path, fileSystem.sizeOf(path), 0),
  });
}

/** As `tolerantReads`, for opening files. It reports a file that cannot be opened, and gives one without readable bytes instead. */
export function tolerantOpens(fileSystem: FileSystem, onUnreadable: OnUnreadable): FileSystem {
  return replacing(fileSystem, {
    async open(path, mode) {
      try {
        const file = await fileSystem.open(path, mode);
        // The size is read here, where a failure can still be reported. Nobody writes to the file.
        const sizeBytes = await file.size().catch((error: unknown) => file.close().then(() => Promise.reject(error)));
        return replacing(file, { size: async () => sizeBytes });
      } catch (error) {
        if (!(error instanceof FileSystemError)) throw error;
        onUnreadable(path, 0, 0, error);
        return unreadableFile(await fileSystem.sizeOf(path).catch(() => 0), error);
      }
    },
  });
}

/** All three together, to get at whatever the disk can still read. */
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

/** The target with some methods replaced. The others are called on the target itself. */
export function replacing<T extends object>(target: T, methods: Partial<T>): T {
  return new Proxy(target, {
    get(of, name) {
      const method = Reflect.get(methods, name) ?? Reflect.get(of, name);
      return typeof method === "function" ? method.bind(of) : method;
    },
  });
}
