import { type FileSystem, nodeFileSystem } from "../../storage/disk/file-system.js";

/**
 * Descriptors that clients of the front never get: the store's files (128 at most that reads keep open, those of writing), the cell link's 256
 * connections, the dispatcher's 128 and its name lookups, threads and pipes. Of a low limit it is five eighths.
 */
const RESERVED = 640;
const RESERVED_SHARE = 5 / 8;

/** Where there is no limit to be known, as on Windows. */
const CONNECTIONS_WITHOUT_LIMIT = 10_000;

/** Of a bound one address may have three quarters, so that others find a place, and a proxy in front has nearly all. */
const SHARE_OF_ONE_ADDRESS = 3 / 4;

/** Bounds of the front's connections. */
export interface ConnectionBounds {
  total: number;
  ofOneAddress: number;
}

export function connectionBounds(total: number): ConnectionBounds {
  return { total, ofOneAddress: Math.max(1, Math.floor(total * SHARE_OF_ONE_ADDRESS)) };
}

/** How many connections the front may have: what the limit leaves after the reserve. */
export function roomForConnections(limit: number | null): number {
  if (limit === null) return CONNECTIONS_WITHOUT_LIMIT;
  return Math.max(1, limit - Math.min(RESERVED, Math.ceil(limit * RESERVED_SHARE)));
}

/** How many descriptors are open; null where that cannot be known. @throws FileSystemError when none is left to look with */
export async function openDescriptors(fileSystem: FileSystem = nodeFileSystem): Promise<number | null> {
  if (process.platform !== "linux") return null;
  return (await fileSystem.readDirectory("/proc/self/fd")).length;
}
