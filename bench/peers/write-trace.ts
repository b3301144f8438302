import { closeSync, fdatasync, fdatasyncSync, openSync, rmSync, write, writeSync } from "node:fs";
import { promisify } from "node:util";
import type { FileSystem, StoreFile } from "../../storage/disk/file-system.js";

/** What was written between one fdatasync and the next: the sizes of the writes, in bytes. */
export type WriteGroup = number[];

const writeAsync = promisify(write);
const fdatasyncAsync = promisify(fdatasync);

/** The same file system, which notes the groups that are written through it. */
export function traceWrites(fileSystem: FileSystem): { fileSystem: FileSystem; groups: WriteGroup[] } {
  const groups: WriteGroup[] = [];
  let group: WriteGroup = [];
  const traced = (file: StoreFile): StoreFile => ({
    write(bytes, position) {
      group.push(bytes.length);
      return file.write(bytes, position);
    },
    datasync() {
      if (group.length > 0) groups.push(group);
      group = [];
      return file.datasync();
    },
    read: (into, position) => file.read(into, position),
    readSync: (into, position) => file.readSync(into, position),
    truncate: (sizeBytes) => file.truncate(sizeBytes),
    size: () => file.size(),
    identity: () => file.identity(),
    close: () => file.close(),
    closeSync: () => file.closeSync(),
  });
  return {
    groups,
    fileSystem: { ...fileSystem, open: async (path, mode) => traced(await fileSystem.open(path, mode)) },
  };
}

function largestWrite(groups: readonly WriteGroup[]): number {
  return groups.reduce((largest, group) => Math.max(largest, ...group), 1);
}

/**
 * Writes the same groups to a fresh file, each followed by fdatasync, and removes it again: the least that any program can do that
 * makes these bytes durable in these steps. `threads` sends each call through Node's thread pool, as a service must that has
 * other things to do; without it the calls block, which is the disk's own time.
 *
 * @returns seconds from the first write to the end of the last fdatasync
 */
export async function replayWrites(path: string, groups: readonly WriteGroup[], threads: boolean): Promise<number> {
  const bytes = new Uint8Array(largestWrite(groups)).map((_, i) => (i * 2654435761) >>> 24);
  const descriptor = openSync(path, "wx", 0o600);
  try {
    let position = 0;
    const startMs = performance.now();
    for (const group of groups) {
      for (const sizeBytes of group) {
        const written = threads
          ? (await writeAsync(descriptor, bytes, 0, sizeBytes, position)).bytesWritten
          : writeSync(descriptor, bytes, 0, sizeBytes, position);
        if (written !== sizeBytes) throw new Error(`the disk took ${written} of ${sizeBytes} bytes`);
        position += sizeBytes;
      }
      if (threads) await fdatasyncAsync(descriptor);
      else fdatasyncSync(descriptor);
    }
    return (performance.now() - startMs) / 1000;
  } finally {
    closeSync(descriptor);
    rmSync(path);
  }
}
