import { isDiskFault } from "../disk/file-system-error.js";
import type { FileSystem } from "../disk/file-system-interface.js";
import { SnapshotError, SnapshotVersionError } from "./snapshot-format.js";
import { SnapshotReader } from "./snapshot-reader.js";

/**
 * What is wrong with the bytes of a snapshot file, by every CRC of it; null when nothing is, or when it is one of another version. A snapshot
 * gets its name when it is whole and durable, so that no crash leaves a damaged one; nor does a disk that does not give it.
 *
 * @throws {FileSystemError} It could not be looked into, for a reason that may pass.
 */
export async function findSnapshotDamage(fileSystem: FileSystem, path: string): Promise<string | null> {
  try {
    const reader = await SnapshotReader.open(fileSystem, path);
    await reader.verify().finally(() => reader.close());
    return null;
  } catch (error) {
    if (error instanceof SnapshotVersionError) return null;
    if (error instanceof SnapshotError || isDiskFault(error)) return error.message;
    throw error;
  }
}
