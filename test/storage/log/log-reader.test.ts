import t from "tap";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import type { FileSystem, StoreFile } from "../../../storage/disk/file-system-interface.js";
import { LogReader } from "../../../storage/log/log-reader.js";
import { appendAll, appendEach, createDisk, META, openLog } from "../../helpers/store/log-harness.js";

t.test("a reader finds every record by its place, one by one and together", async (t) => {
  const disk = await createDisk();
  const { log, seen } = await openLog(disk, { segmentBytes: 5_000 });
  for (let i = 0; i < 60; i++) await appendAll(log, [`r${i}`], (i * 37) % 700);
  await log.close();
  const reader = new LogReader({ fileSystem: disk, directory: META, maximumOpenFiles: 2 });
  const shuffled = [...seen].sort((a, b) => ((a.sequence * 7) % 61) - ((b.sequence * 7) % 61));
  const many = await reader.readMany(shuffled.map(({ location }) => location));
  for (const [i, record] of shuffled.entries()) {
    const expected = { sequence: record.sequence, index: Buffer.from(record.name), body: Buffer.from(record.body) };
    for (const read of [many[i]!, await reader.read(record.location)]) {
      const { sequence, index, body } = read;
      t.same({ sequence, index: Buffer.from(index), body: Buffer.from(body) }, expected);
    }
  }
  reader.close();
});

t.test("a page's reads block while the disk answers at once, wait for a slow one, and try again later", async (t) => {
  const directory = t.testdir({ quarantine: {} });
  const places = { directory, quarantineDirectory: `${directory}/quarantine` };
  const { log, seen } = await openLog(nodeFileSystem, places);
  for (let i = 0; i < 20; i++) await appendAll(log, [`r${i}`], 20_000);
  await log.close();
  // Too far apart to be read in one go.
  const asked = seen.filter((_, at) => at % 2 === 0);
  let nowMs = 1000;
  let readMs = 0.01;
  let blocking = 0;
  let waiting = 0;
  const noted = (file: StoreFile): StoreFile => ({
    write: (bytes, position) => file.write(bytes, position),
    datasync: () => file.datasync(),
    truncate: (sizeBytes) => file.truncate(sizeBytes),
    size: () => file.size(),
    identity: () => file.identity(),
    close: () => file.close(),
    closeSync: () => file.closeSync(),
    readSync(into, position) {
      blocking++;
      nowMs += readMs;
      return file.readSync(into, position);
    },
    read(into, position) {
      waiting++;
      return file.read(into, position);
    },
  });
  const fileSystem: FileSystem = {
    ...nodeFileSystem,
    open: async (path, mode) => noted(await nodeFileSystem.open(path, mode)),
    openSync: (path) => noted(nodeFileSystem.openSync(path)),
  };
  const reader = new LogReader({ fileSystem, directory, nowMs: () => nowMs });
  const page = async (): Promise<{ blocking: number; waiting: number }> => {
    blocking = 0;
    waiting = 0;
    const records = await reader.readMany(asked.map(({ location }) => location));
    t.same(
      records.map(({ sequence }) => sequence),
      asked.map(({ sequence }) => sequence),
    );
    return { blocking, waiting };
  };
  t.same(await page(), { blocking: 11, waiting: 0 }, "the segment's header is read too");
  t.same(await page(), { blocking: 10, waiting: 0 });
  readMs = 10;
  t.same(await page(), { blocking: 1, waiting: 9 }, "one read met a slow disk");
  t.same(await page(), { blocking: 0, waiting: 10 }, "a page soon after does not try");
  readMs = 0.01;
  nowMs += 60;
  t.same(await page(), { blocking: 10, waiting: 0 });
  readMs = 0.2;
  await new Promise((resolve) => setImmediate(resolve));
  blocking = 0;
  const untilTurn: number[] = [];
  let isRead = false;
  const onTurn = (): void => {
    untilTurn.push(blocking);
    if (!isRead) setImmediate(onTurn);
  };
  setImmediate(onTurn);
  const locations = asked.map(({ location }) => location);
  await Promise.all([reader.readMany(locations), reader.readMany(locations)]);
  isRead = true;
  t.same(untilTurn, [3, 6, 9, 12, 15, 18], "calls share what a turn of the event loop may block");
  reader.close();
});

t.test("a reader tells damage and absence from a record", async (t) => {
  const disk = await createDisk();
  const { log, seen } = await openLog(disk, { segmentBytes: 400 });
  await appendEach(log, ["a", "b", "c", "d"], 100);
  await log.close();
  const { location } = seen[0]!;
  const path = `${META}/0000000000000001.seg`;
  const whole = disk.bytesOf(path);
  let undetected = 0;
  for (let at = location.offset; at < location.offset + location.length; at++) {
    const bytes = whole.slice();
    bytes[at]! ^= 4;
    disk.setBytes(path, bytes);
    const reader = new LogReader({ fileSystem: disk, directory: META });
    for (const read of [() => reader.read(location), () => reader.readMany([location])]) {
      const code = await read().then(
        () => "intact",
        (error: { code: string }) => error.code,
      );
      if (code !== "record_damaged") undetected++;
    }
    reader.close();
  }
  t.equal(undetected, 0, `${location.length} bytes flipped`);
  disk.setBytes(path, whole.slice(0, location.offset + 10));
  const reader = new LogReader({ fileSystem: disk, directory: META });
  await t.rejects(reader.read(location), { code: "record_damaged", message: /ends within the record/ });
  await t.rejects(reader.read({ ...location, offset: location.offset + 8 }), { code: "record_damaged" });
  await t.rejects(reader.read({ ...location, length: 2 ** 40 }), { code: "record_damaged" });
  await t.rejects(reader.read({ ...location, segmentBase: 77 }), { code: "record_missing" });
  await t.rejects(reader.readMany([{ ...location, segmentBase: 77 }]), { code: "record_missing" });
});
