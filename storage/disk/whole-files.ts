/** Reads and writes that take more than one call of the file system: all of a buffer, a whole file, a file that is replaced. */
import { FileSystemError, orWhereMissing } from "./file-system-error.js";
import type { FileSystem, StoreFile } from "./file-system-interface.js";

/** Ending of a file while it is being written. After a crash such a file may remain; nothing refers to it. */
export const TEMPORARY_SUFFIX = ".tmp";

/**
 * Bytes of one write. While the kernel copies the bytes, a millisecond or two for each megabyte, no other thread can use that core. Between writes
 * of this size, readers get their turn.
 */
const WRITTEN_CHUNK_BYTES = 256 * 1024;

/**
 * Writes all the bytes at `position`, chunk by chunk, and goes on after short counts: a full disk can answer with a short count before it answers
 * with an error. A count of zero is an error, because the loop would never end.
 */
export async function writeFully(file: StoreFile, bytes: Uint8Array, position: number, path: string): Promise<void> {
  let written = 0;
  do {
    const count = await file.write(bytes.subarray(written, written + WRITTEN_CHUNK_BYTES), position + written);
    if (count <= 0) {
      const before = written === 0 ? "nothing" : `${written} of ${bytes.length} bytes, then nothing`;
      throw new FileSystemError("EIO", "write", path, `wrote ${before}`);
    }
    written += count;
  } while (written < bytes.length);
}

/** Reads until `into` is full or the file ends; returns the count of bytes. */
export async function readFully(file: Pick<StoreFile, "read">, into: Uint8Array, position: number): Promise<number> {
  let total = 0;
  while (total < into.length) {
    const count = await file.read(total === 0 ? into : into.subarray(total), position + total);
    if (count === 0) break;
    total += count;
  }
  return total;
}

/** As `readFully`, but blocking. */
export function readFullySync(file: Pick<StoreFile, "readSync">, into: Uint8Array, position: number): number {
  let total = 0;
  while (total < into.length) {
    const count = file.readSync(total === 0 ? into : into.subarray(total), position + total);
    if (count === 0) break;
    total += count;
  }
  return total;
}

/** Opens the file for reading, and closes it after use, also after an error. */
export async function withFile<T>(
  fileSystem: FileSystem,
  path: string,
  use: (file: StoreFile) => Promise<T>,
): Promise<T> {
  const file = await fileSystem.open(path, "read");
  try {
    return await use(file);
  } finally {
    await file.close();
  }
}

/** Closes a file that was only read, without waiting for it. If that fails, nothing is lost. */
export function closeLater(file: Pick<StoreFile, "close">): void {
  file.close().catch(() => {});
}

/** Reads a whole file; for small ones. */
export function readWholeFile(fileSystem: FileSystem, path: string): Promise<Uint8Array> {
  return withFile(fileSystem, path, async (file) => {
    const bytes = new Uint8Array(await file.size());
    return bytes.subarray(0, await readFully(file, bytes, 0));
  });
}

/** Reads a whole file that does not report its size, such as those in /proc. */
export function readToEnd(fileSystem: FileSystem, path: string): Promise<Uint8Array> {
  return withFile(fileSystem, path, async (file) => {
    const chunks: Uint8Array[] = [];
    for (let position = 0; ; ) {
      const chunk = new Uint8Array(64 * 1024);
      const count = await file.read(chunk, position);
      if (count === 0) return Buffer.concat(chunks);
      chunks.push(chunk.subarray(0, count));
      position += count;
    }
  });
}

/** Size of the directory's own files together, in bytes. A file that disappears meanwhile counts as 0. */
export async function directoryBytes(fileSystem: FileSystem, directory: string): Promise<number> {
  let bytes = 0;
  for (const { name } of await fileSystem.readDirectory(directory)) {
    bytes += await orWhereMissing(fileSystem.sizeOf(`${directory}/${name}`), 0);
  }
  return bytes;
}

/**
 * Replaces the file by these bytes, durably and as a whole: whoever opens it, now or after a crash, finds either the old bytes or the new ones.
 * Order: temporary file, fdatasync, rename, folder fsync.
 */
export async function replaceFile(
  fileSystem: FileSystem,
  directory: string,
  name: string,
  bytes: Uint8Array,
): Promise<void> {
  const path = `${directory}/${name}`;
  const temporary = `${path}${TEMPORARY_SUFFIX}`;
  const file = await fileSystem.open(temporary, "createOrUpdate");
  try {
    await file.truncate(0);
    if (bytes.length > 0) await writeFully(file, bytes, 0, temporary);
    await file.datasync();
  } finally {
    await file.close();
  }
  await fileSystem.rename(temporary, path);
  await fileSystem.syncDirectory(directory);
}
