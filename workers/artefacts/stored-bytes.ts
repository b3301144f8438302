import { crc32 } from "node:zlib";
import type { Extent } from "../../core/capture.js";
import { verifyExtents } from "../../storage/capture-reader.js";
import { type FileSystem, isMissing, readFully, type StoreFile } from "../../storage/file-system.js";
import { StorageError } from "../../storage/storage-error.js";

/** @throws StorageError `capture_missing` */
export async function openStored(fileSystem: FileSystem, path: string): Promise<StoreFile> {
  try {
    return await fileSystem.open(path, "read");
  } catch (error) {
    throw isMissing(error) ? new StorageError("capture_missing", `${path} is not there`, { path }) : error;
  }
}

/** Stored bytes as a whole, verified. @throws StorageError `capture_missing`, `capture_damaged` */
export async function readStored(
  fileSystem: FileSystem,
  path: string,
  extent: Extent,
): Promise<Uint8Array<ArrayBuffer>> {
  const file = await openStored(fileSystem, path);
  try {
    const bytes = new Uint8Array(extent.lengthBytes);
    const count = await readFully(file, bytes, extent.offset);
    if (count < bytes.length || crc32(bytes) !== extent.crc32) {
      throw damagedCapture(path, extent.offset, "the bytes do not match their CRC");
    }
    return bytes;
  } finally {
    await file.close();
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
