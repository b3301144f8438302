import type { StorageError } from "../storage-error.js";
import { type FileSystemError, isUnreadable } from "./file-system-error.js";
import type { StoreFile } from "./file-system-interface.js";

/**
 * The file for reading, which reports unreadable bytes as damage. Like bytes that do not match their CRC, they cost only what they are a part of,
 * and health names them.
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
