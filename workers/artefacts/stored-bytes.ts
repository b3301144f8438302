import type { Extent } from "../../core/capture.js";
import { verifyExtents } from "../../storage/capture-reader.js";
import { type FileSystem, isMissing, readFully, type StoreFile } from "../../storage/file-system.js";
import { StorageError } from "../../storage/storage-error.js";

/** Blocks, as a thread with one task may. @throws StorageError `capture_missing` */
export function openStored(fileSystem: FileSystem, path: string): StoreFile {
  try {
    return fileSystem.openSync(path);
  } catch (error) {
    throw isMissing(error) ? new StorageError("capture_missing", `${path} is not there`, { path }) : error;
  }
}

/** Some stored bytes, of which nothing is verified but that they are there. @throws StorageError `capture_missing`, `capture_damaged` */
export async function readPart(
  fileSystem: FileSystem,
  path: string,
  offset: number,
  lengthBytes: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const file = openStored(fileSystem, path);
  try {
    const bytes = new Uint8Array(lengthBytes);
    const count = await readFully(file, bytes, offset);
    if (count < lengthBytes) throw damagedCapture(path, offset + count, "the file ends within stored bytes");
    return bytes;
  } finally {
    file.closeSync();
  }
}

/** Reads stored bytes for their CRCs only. @throws StorageError `capture_missing`, `capture_damaged` */
export async function verifyStored(
  fileSystem: FileSystem,
  path: string,
  extents: readonly Extent[],
): Promise<{ verifiedBytes: number }> {
  const [damage] = await verifyExtents(fileSystem, path, extents);
  if (damage !== undefined) throw damagedCapture(path, damage.extent.offset, damage.reason);
  return { verifiedBytes: extents.reduce((sum, { lengthBytes }) => sum + lengthBytes, 0) };
}

export function damagedCapture(path: string, offset: number, reason: string): StorageError {
  return new StorageError("capture_damaged", `${path}, offset ${offset}: ${reason}`, { path, offset });
}
