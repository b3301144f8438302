import type { Random } from "../../../core/random.js";
import type { FileSystem, StoreFile } from "../../../storage/disk/file-system-interface.js";

/** Lets so many turns of the event loop go by. */
export async function eventLoopTurns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}

/** A disk whose operations take random time, so that things happen meanwhile; the same seed takes the same time. */
export function slowDisk(disk: FileSystem, random: Random): FileSystem {
  const later = async <T>(operation: () => Promise<T>): Promise<T> => {
    if (random.chance(0.5)) await eventLoopTurns(random.integer(1, 3));
    return await operation();
  };
  const slowFile = (file: StoreFile): StoreFile => ({
    write: (bytes, position) => later(() => file.write(bytes, position)),
    read: (into, position) => file.read(into, position),
    readSync: (into, position) => file.readSync(into, position),
    datasync: () => later(() => file.datasync()),
    truncate: (sizeBytes) => later(() => file.truncate(sizeBytes)),
    size: () => file.size(),
    identity: () => file.identity(),
    close: () => file.close(),
    closeSync: () => file.closeSync(),
  });
  return {
    open: (path, mode) => later(async () => slowFile(await disk.open(path, mode))),
    openSync: (path) => disk.openSync(path),
    rename: (from, to) => later(() => disk.rename(from, to)),
    unlink: (path) => later(() => disk.unlink(path)),
    link: (from, to) => later(() => disk.link(from, to)),
    copyFile: (from, to) => later(() => disk.copyFile(from, to)),
    makeDirectory: (path) => later(() => disk.makeDirectory(path)),
    removeDirectory: (path) => later(() => disk.removeDirectory(path)),
    openDirectory: (path) => disk.openDirectory(path),
    readDirectory: (path) => later(() => disk.readDirectory(path)),
    exists: (path) => disk.exists(path),
    sizeOf: (path) => disk.sizeOf(path),
    statusOf: (path) => disk.statusOf(path),
    assertAccess: (path, access) => disk.assertAccess(path, access),
    syncDirectory: (path) => later(() => disk.syncDirectory(path)),
    room: (path) => disk.room(path),
  };
}
