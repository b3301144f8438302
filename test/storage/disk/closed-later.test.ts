/** A file that was only read, and whose close fails: nobody waits for it, and the process does not end for it. */
import { once } from "node:events";
import t, { type Test } from "tap";
import { CaptureReader } from "../../../storage/captures/capture-reader.js";
import { FileSystemError } from "../../../storage/disk/file-system-error.js";
import type { FileSystem, StoreFile } from "../../../storage/disk/file-system-interface.js";
import { LogReader } from "../../../storage/log/log-reader.js";
import { segmentName } from "../../../storage/log/segment.js";
import { createCaptureDisk, openCaptures } from "../../helpers/captures/capture-disk.js";
import { appendAll, createDisk, META, openLog } from "../../helpers/store/log-harness.js";

/** Each close fails, after `closed` was counted up. */
function failingCloses(t: Test, disk: FileSystem) {
  const seen = { closed: 0, unhandled: 0 };
  const wrap = (file: StoreFile): StoreFile => ({
    write: (bytes, position) => file.write(bytes, position),
    read: (into, position) => file.read(into, position),
    readSync: (into, position) => file.readSync(into, position),
    datasync: () => file.datasync(),
    truncate: (sizeBytes) => file.truncate(sizeBytes),
    size: () => file.size(),
    identity: () => file.identity(),
    close: () => {
      seen.closed++;
      return Promise.reject(new FileSystemError("EIO", "close", "a file"));
    },
    closeSync: () => file.closeSync(),
  });
  const { open, openSync } = disk;
  disk.open = async (path, mode) => wrap(await open.call(disk, path, mode));
  disk.openSync = (path) => wrap(openSync.call(disk, path));
  const count = (): void => {
    seen.unhandled++;
  };
  process.on("unhandledRejection", count);
  t.teardown(() => process.off("unhandledRejection", count));
  return seen;
}

/** Unhandled rejections are told when the microtasks of a turn are done. */
async function turns(): Promise<void> {
  for (let nth = 0; nth < 3; nth++) await new Promise((resolve) => setImmediate(resolve));
}

t.test("the process would be told of a rejection that nobody handles", async (t) => {
  const told = once(process, "unhandledRejection");
  void Promise.reject(new Error("nobody waits"));
  const [reason] = await told;
  t.match(reason, { message: "nobody waits" });
});

t.test("a capture's file", async (t) => {
  const disk = await createCaptureDisk();
  const file = openCaptures(disk).file("019bb000-0000-7000-8000-0000000000b1", "capture", 0);
  const extents = [file.append(new Uint8Array(10))];
  await file.makeDurable();
  const seen = failingCloses(t, disk);
  const captures = new CaptureReader({ fileSystem: disk });
  // Both open it at once: one of the two files is closed at once, the other one by its last reader.
  const readers = await Promise.all([1, 2].map(() => captures.openExtents(file.path, extents)));
  captures.close();
  for (const reader of readers) reader.close();
  await turns();
  t.same(seen, { closed: 2, unhandled: 0 });
});

t.test("a segment", async (t) => {
  const disk = await createDisk();
  const opened = await openLog(disk);
  await appendAll(opened.log, ["a"]);
  await opened.log.close();
  const seen = failingCloses(t, disk);
  const reader = new LogReader({ fileSystem: disk, directory: META });
  const { location } = opened.seen[0]!;
  t.equal((await reader.read(location)).sequence, 1);
  reader.close();
  disk.setBytes(`${META}/${segmentName(location.segmentBase)}`, new Uint8Array(200));
  await t.rejects(reader.readMany([location]), { code: "record_damaged" });
  await turns();
  t.same(seen, { closed: 2, unhandled: 0 });
});
