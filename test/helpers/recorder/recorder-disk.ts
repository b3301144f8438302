import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import type { SimulatedDisk } from "../disk/simulated-disk.js";

/** A recorder's file system on a simulated disk: all but its lock, which is a socket, in a real folder of the same path. */
export function recorderDisk(disk: SimulatedDisk): FileSystem {
  const at = (path: string): FileSystem =>
    /\/lock(?:\/|$)/.test(path) || path.startsWith("/proc/") ? nodeFileSystem : disk;
  return {
    open: (path, mode) => at(path).open(path, mode),
    openSync: (path) => at(path).openSync(path),
    rename: (from, to) => at(from).rename(from, to),
    unlink: (path) => at(path).unlink(path),
    link: (from, to) => at(from).link(from, to),
    copyFile: (from, to) => at(from).copyFile(from, to),
    makeDirectory: (path) => at(path).makeDirectory(path),
    removeDirectory: (path) => at(path).removeDirectory(path),
    openDirectory: (path) => at(path).openDirectory(path),
    readDirectory: (path) => at(path).readDirectory(path),
    exists: (path) => at(path).exists(path),
    sizeOf: (path) => at(path).sizeOf(path),
    statusOf: (path) => at(path).statusOf(path),
    assertAccess: (path, access) => at(path).assertAccess(path, access),
    syncDirectory: (path) => at(path).syncDirectory(path),
    room: (path) => at(path).room(path),
  };
}
