import type { Extent } from "../../../core/capture/capture.js";
import { verifyExtents } from "../../../storage/captures/capture-reader.js";
import { isMissing } from "../../../storage/disk/file-system-error.js";
import type { FileSystem, StoreFile } from "../../../storage/disk/file-system-interface.js";
import { readFully } from "../../../storage/disk/whole-files.js";
import { StorageError } from "../../../storage/storage-error.js";

/** @throws StorageError `capture_missing` */
export async function openStored(fileSystem: FileSystem, path: string): Promise<StoreFile> {
  try {
    return await fileSystem.open(path, "read");
  } catch (error) {
    throw notOpened(path, error);
  }
}

/**
 * Does the same as `openStored`, but blocks. It is for frames. A series uses `openStored`, so that the event loop turns
 * between two row blocks and frees what the last one has read.
 */
export function openStoredSync(fileSystem: FileSystem, path: string): StoreFile {
  try {
    return fileSystem.openSync(path);
  } catch (error) {
    throw notOpened(path, error);
  }
}

function notOpened(path: string, error: unknown): unknown {
  return isMissing(error) ? new StorageError("capture_missing", `${path} is not there`, { path }) : error;
}

/** Reads some stored bytes without verifying a CRC. @throws StorageError `capture_missing`, `capture_damaged` if the file ends early */
export async function readPart(
  fileSystem: FileSystem,
  path: string,
  offset: number,
  lengthBytes: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const file = await openStored(fileSystem, path);
  try {
    const bytes = new Uint8Array(lengthBytes);
    const count = await readFully(file, bytes, offset);
    if (count < lengthBytes) throw damagedCapture(path, offset + count, "the file ends within stored bytes");
    return bytes;
  } finally {
    await file.close();
  }
}

/** Verifies the CRCs of stored bytes. @throws StorageError `capture_missing`, `capture_damaged` */
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
