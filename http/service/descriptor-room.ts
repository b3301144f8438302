import { nodeFileSystem } from "../../storage/disk/file-system.js";
import type { FileSystem } from "../../storage/disk/file-system-interface.js";

/**
 * File descriptors that HTTP clients never get: some 400 files of the store, 480 connections of the cell link, 1,000 of webhooks, threads and pipes.
 * If the limit is low, they are five eighths of the limit; then the others have less too.
 */
const RESERVED = 2_048;
const RESERVED_SHARE = 5 / 8;

/** Used if the limit is unknown, as on Windows. */
const CONNECTIONS_WITHOUT_LIMIT = 10_000;

/** One address may have three quarters of all connections: others still find a place, and a proxy has nearly all. */
const SHARE_OF_ONE_ADDRESS = 3 / 4;

/** Limits of the HTTP connections. */
export interface ConnectionBounds {
  total: number;
  ofOneAddress: number;
}

export function connectionBounds(total: number): ConnectionBounds {
  return { total, ofOneAddress: Math.max(1, Math.floor(total * SHARE_OF_ONE_ADDRESS)) };
}

/** How many HTTP connections there may be: the limit of open files without the reserve. */
export function roomForConnections(limit: number | null): number {
  if (limit === null) return CONNECTIONS_WITHOUT_LIMIT;
  return Math.max(1, limit - Math.min(RESERVED, Math.ceil(limit * RESERVED_SHARE)));
}

/** The number of open file descriptors; null if unknown. @throws FileSystemError if none is left to look with */
export async function openDescriptors(fileSystem: FileSystem = nodeFileSystem): Promise<number | null> {
  if (process.platform !== "linux") return null;
  return (await fileSystem.readDirectory("/proc/self/fd")).length;
}
