import type { StorageError } from "../storage-error.js";
import { type FileSystemError, isUnreadable, type StoreFile } from "./file-system.js";

/**
 * The file, for reading, with what the disk does not give told as damage: like bytes that do not match their CRC, it costs what it is a
 * part of and nothing else, and health names it.
 */
export function withUnreadableAsDamage(
  file: StoreFile,
  damage: (position: number, error: FileSystemError) => StorageError,
): Pick<StoreFile, "read" | "readSync" | "close"> {
  return {
    async read(into, position) {
      try {
        return await file.read(into, position);
      } catch (error) {
        throw isUnreadable(error) ? damage(position, error) : error;
      }
    },
    readSync(into, position) {
      try {
        return file.readSync(into, position);
      } catch (error) {
        throw isUnreadable(error) ? damage(position, error) : error;
      }
    },
    close: () => file.close(),
  };
}
