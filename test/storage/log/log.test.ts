import t from "tap";
import { createRandom } from "../../../core/random.js";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import type { FileSystem, StoreFile } from "../../../storage/disk/file-system-interface.js";
import { type CommittedBatch, forEachRecord } from "../../../storage/log/log-batch.js";
import type { Durable } from "../../../storage/log/log-options.js";
import { LogReader } from "../../../storage/log/log-reader.js";
import { readRecordHeader } from "../../../storage/log/record-format.js";
import { decodeSegmentHeader, segmentBaseOf } from "../../../storage/log/segment.js";
import { randomSalt } from "../../../storage/recovery/recovery.js";
import type { DiskOperation } from "../../helpers/disk/simulated-disk.js";
import { appendAll, appendEach, createDisk, META, openLog, recordOf, until } from "../../helpers/store/log-harness.js";

t.test("records come back as they were appended, live and from recovery, at the same places", async (t) => {
  const disk = await createDisk();
  const live = await openLog(disk, { segmentBytes: 3_000 });
  for (const [i, size] of [0, 1, 7, 8, 9, 1_000, 2_500, 40, 0].entries()) await appendAll(live.log, [`r${i}`], size);
  await live.log.close();
  const again = await openLog(disk);
  t.equal(again.seen.length, 9);
  t.same(again.seen, live.seen);
  t.equal(again.log.nextSequence, live.log.nextSequence);
});

t.test("everything appended while a group is written goes into the next, with one sync each", async (t) => {
  const disk = await createDisk();
  const batches: CommittedBatch[] = [];
  const { log } = await openLog(disk, {
    onCommitted: (batch) => batches.push({ ...batch, bytes: batch.bytes.slice() }),
  });
  const operations: DiskOperation["kind"][] = [];
  disk.onOperation = ({ kind }) => {
    operations.push(kind);
    if (operations.length === 1) for (let i = 0; i < 10; i++) log.append(recordOf(`later${i}`));
    return undefined;
  };
  await log.whenCommitted(log.append(recordOf("first")));
  await log.whenCommitted(log.nextSequence - 1);
  t.same(operations, ["write", "datasync", "write", "datasync"]);
  t.same(
    batches.map(({ firstSequence, lastSequence }) => [firstSequence, lastSequence]),
    [
      [1, 1],
      [2, 11],
    ],
  );
  t.equal(batches[1]?.offset, (batches[0]?.offset ?? 0) + (batches[0]?.bytes.length ?? 0));
  const claim = readRecordHeader(new DataView(batches[1]!.bytes.buffer), 0).durableUpTo;
  t.equal(claim, 1, "the second group says that the first is durable, although it was appended before it was");
});

t.test("acknowledgements come in order, after the batch, and never before the sync", async (t) => {
  const disk = await createDisk();
  const events: string[] = [];
  const { log } = await openLog(disk, { onCommitted: (batch) => events.push(`batch ${batch.lastSequence}`) });
  disk.onOperation = ({ kind }) => {
    events.push(kind);
    return undefined;
  };
  const [a, b] = [log.append(recordOf("a")), log.append(recordOf("b"))];
  const second = log.whenCommitted(b).then(() => events.push("b"));
  const first = log.whenCommitted(a).then(() => events.push("a"));
  t.equal(log.committedSequence, 0);
  t.ok(log.pendingBytes > 0);
  await Promise.all([first, second]);
  t.same(events, ["write", "datasync", "batch 2", "a", "b"]);
  t.match({ ...state(log) }, { committedSequence: 2, durableSequence: 2, pendingBytes: 0 });
});

function state(log: { committedSequence: number; durableSequence: number; pendingBytes: number }) {
  const { committedSequence, durableSequence, pendingBytes } = log;
  return { committedSequence, durableSequence, pendingBytes };
}

t.test("what a record needs is durable before the record is written; its failure is the log's", async (t) => {
  const disk = await createDisk();
  const events: string[] = [];
  const { log } = await openLog(disk);
  disk.onOperation = ({ kind }) => {
    events.push(kind);
    return undefined;
  };
  const need = (name: string): Durable => ({
    makeDurable: async () => {
      await new Promise<void>((resolve) => setImmediate(resolve));
      events.push(name);
    },
    whenWritten: async () => {
      throw new Error("not in this mode");
    },
  });
  const shared = need("shared");
  log.append({ ...recordOf("a"), needs: shared });
  log.append({ ...recordOf("b"), needs: need("other") });
  await log.whenCommitted(log.append({ ...recordOf("c"), needs: shared }));
  t.same(events, ["shared", "other", "write", "datasync"]);
  const failing: Durable = { makeDurable: () => Promise.reject(new Error("no capture")), whenWritten: async () => {} };
  await t.rejects(log.whenCommitted(log.append({ ...recordOf("d"), needs: failing })), {
    code: "log_failed",
    message: /no capture/,
  });
  t.same(events.length, 4, "nothing was written");
});

t.test("a full segment is closed, and the next starts with the state of everything before it", async (t) => {
  const disk = await createDisk();
  const { log } = await openLog(disk, { segmentBytes: 1_000 });
  const names = Array.from({ length: 20 }, (_, i) => `r${i}`);
  // Appends that arrive while the segment is being closed belong to the new one and not to its opening state.
  for (const name of names) {
    log.append(recordOf(name, 100));
    if (name.endsWith("5")) await log.whenCommitted(log.nextSequence - 1);
    else await new Promise<void>((resolve) => setImmediate(resolve));
  }
  await log.close();
  const segments = disk.paths().filter((path) => path.startsWith(META));
  t.ok(segments.length >= 4, `${segments.length} segments`);
  // With every earlier segment gone, the opening state and the records behind it still tell everything.
  for (let gone = 1; gone < segments.length; gone++) {
    disk.removeFile(segments[gone - 1]!);
    const firstSequence = segmentBaseOf(segments[gone]!.slice(META.length + 1))!;
    const again = await openLog(disk.copy(), { firstSequence });
    t.equal(again.log.recovery.findingCount, 0);
    t.equal(again.names.length, names.length - firstSequence + 1);
    if (gone === segments.length - 1) t.same([...again.openingNames!, ...again.names], names);
  }
});

t.test("who waits for a record that goes into the next group is not told with this one", async (t) => {
  const disk = await createDisk();
  const told: string[] = [];
  const { log } = await openLog(disk, { onCommitted: ({ lastSequence }) => told.push(`committed ${lastSequence}`) });
  const wait = (name: string): Promise<void> => {
    const sequence = log.append(recordOf(name));
    return log.whenCommitted(sequence).then(() => {
      told.push(`told ${sequence}`);
    });
  };
  let later: Promise<void> | undefined;
  disk.onOperation = () => {
    later ??= wait("b");
    return undefined;
  };
  await wait("a");
  await later;
  t.same(told, ["committed 1", "told 1", "committed 2", "told 2"]);
});

t.test("every segment has a salt that no other has", async (t) => {
  const salts = new Set<number | undefined>();
  for (let store = 0; store < 3; store++) {
    const disk = await createDisk();
    const { log } = await openLog(disk, { segmentBytes: 500, createSalt: randomSalt });
    await appendEach(log, ["a", "b", "c", "d", "e"], 200);
    await log.close();
    for (const path of disk.paths()) salts.add(decodeSegmentHeader(disk.bytesOf(path)).header?.salt);
  }
  t.equal(salts.size, 9);
});

t.test("the order of a rotation: the new segment is durable under its name before it is used", async (t) => {
  const disk = await createDisk();
  const { log } = await openLog(disk, { segmentBytes: 300 });
  const operations: string[] = [];
  disk.onOperation = ({ kind, path }) => {
    operations.push(`${kind} ${path.slice(META.length + 1)}`);
    return undefined;
  };
  await appendAll(log, ["a"], 300);
  await appendAll(log, ["b"], 10);
  const [old, next] = ["0000000000000001.seg", "0000000000000002.seg"];
  t.same(operations, [
    `write ${old}`,
    `datasync ${old}`,
    `create ${next}.tmp`,
    `truncate ${next}.tmp`,
    `write ${next}.tmp`,
    `datasync ${next}.tmp`,
    `rename ${next}.tmp`,
    "syncDirectory ",
    `write ${next}`,
    `datasync ${next}`,
  ]);
});

t.test("no room for a mark at the end is no failure: all that was appended has its place", async (t) => {
  const disk = await createDisk();
  const { log } = await openLog(disk);
  await appendAll(log, ["a", "b"]);
  disk.onOperation = ({ kind }) => (kind === "write" ? { error: "ENOSPC" } : undefined);
  await log.close();
  t.equal(log.failure, null);
  disk.onOperation = () => undefined;
  t.same((await openLog(disk)).names, ["a", "b"]);
});

t.test("nor is no room for the next segment, until something is to be written to it", async (t) => {
  for (const goesOn of [false, true]) {
    const disk = await createDisk();
    const { log } = await openLog(disk, { segmentBytes: 300 });
    let refused = 0;
    disk.onOperation = ({ kind, path }) => {
      if (kind !== "write" || !path.endsWith(".tmp")) return undefined;
      refused++;
      return { error: "ENOSPC" };
    };
    await appendAll(log, ["a"], 300);
    await until(() => refused > 0, "the next segment's writing");
    if (goesOn) {
      await t.rejects(async () => log.whenCommitted(log.append(recordOf("b"))), {
        code: "log_failed",
        message: /ENOSPC/,
      });
      t.match(log.failure, { code: "log_failed" });
      await t.rejects(log.close(), { code: "log_failed" });
    } else {
      await log.close();
      t.equal(log.failure, null);
    }
    disk.onOperation = () => undefined;
    t.same((await openLog(disk)).names, ["a"]);
  }
});

t.test("no room for what was appended is one", async (t) => {
  const disk = await createDisk();
  const { log } = await openLog(disk);
  disk.onOperation = ({ kind }) => (kind === "write" ? { error: "ENOSPC" } : undefined);
  await t.rejects(appendAll(log, ["a"]), { code: "log_failed", message: /ENOSPC/ });
  t.match(log.failure, { code: "log_failed" });
  await t.rejects(log.close(), { code: "log_failed" });
});

t.test("interval: acknowledged after the write, synced by the timer; what is claimed durable is", async (t) => {
  const disk = await createDisk();
  const { log, timers } = await openLog(disk, { durability: "interval" });
  await appendEach(log, ["a", "b"]);
  t.match(state(log), { committedSequence: 2, durableSequence: 0 });
  t.equal(timers.count, 1);
  timers.fire();
  await until(() => log.durableSequence === 2, "the interval's sync");
  disk.onOperation = ({ kind }) => (kind === "datasync" ? { error: "EIO" } : undefined);
  await appendEach(log, ["c"]);
  await until(() => {
    timers.fire();
    return log.failure !== null;
  }, "the failed sync of the interval");
  t.throws(() => log.append(recordOf("d")), { code: "log_failed" });
  t.match(state(log), { committedSequence: 3, durableSequence: 2 });
});

t.test("interval: a sync that fails beside a write ends the log, and the write is not acknowledged", async (t) => {
  const disk = await createDisk();
  let finishWrite: (() => void) | undefined;
  let holds = false;
  const slow = new Proxy(disk, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property);
      if (typeof value !== "function") return value;
      if (property !== "open") return value.bind(target);
      return async (...args: Parameters<typeof disk.open>) => {
        const file = await target.open(...args);
        const write = file.write.bind(file);
        file.write = async (bytes, position) => {
          const count = await write(bytes, position);
          if (holds) await new Promise<void>((resolve) => (finishWrite = resolve));
          return count;
        };
        return file;
      };
    },
  });
  const { log, names, timers } = await openLog(slow, { durability: "interval" });
  await appendEach(log, ["a"]);
  holds = true;
  const second = log.whenCommitted(log.append(recordOf("b")));
  await until(() => finishWrite !== undefined, "the write under way");
  disk.onOperation = ({ kind }) => (kind === "datasync" ? { error: "EIO" } : undefined);
  timers.fire();
  await t.rejects(second, { code: "log_failed" });
  finishWrite?.();
  await t.rejects(log.close(), { code: "log_failed" });
  t.same(names, ["a"], "nothing was delivered after the failure");
  t.equal(log.committedSequence, 1);
});

t.test("none: nothing is synced until a segment or the log is closed", async (t) => {
  const disk = await createDisk();
  const { log, timers } = await openLog(disk, { durability: "none" });
  let syncs = 0;
  disk.onOperation = ({ kind }) => {
    if (kind === "datasync") syncs++;
    return undefined;
  };
  await appendEach(log, ["a", "b", "c"]);
  t.match({ syncs, timers: timers.count }, { syncs: 0, timers: 0 });
  await log.close();
  t.match({ syncs, durable: log.durableSequence }, { syncs: 2, durable: 4 });
  const { recovery } = (await openLog(disk)).log;
  t.match(recovery, { provenSequence: 3, lastSequence: 4, newSegmentBase: null });
});

t.test("what must be durable before something else is done is, in every mode; a failed sync says so", async (t) => {
  for (const durability of ["full", "interval", "none"] as const) {
    const disk = await createDisk();
    const { log } = await openLog(disk, { durability });
    const sequence = log.append(recordOf("a"));
    await log.whenDurable(sequence);
    t.ok(log.durableSequence >= sequence, durability);
    const { seen } = await openLog(disk.crash("drop", createRandom(1)));
    t.same(
      seen.map(({ name }) => name),
      ["a"],
    );
    const failing = await createDisk();
    const other = (await openLog(failing, { durability })).log;
    failing.onOperation = ({ kind }) => (kind === "datasync" ? { error: "EIO" } : undefined);
    await t.rejects(other.whenDurable(other.append(recordOf("a"))), { code: "log_failed" });
  }
});

t.test("close commits what is pending, proves it, and refuses what comes after", async (t) => {
  const disk = await createDisk();
  const { log, names } = await openLog(disk);
  log.append(recordOf("a"));
  const committed = log.whenCommitted(log.append(recordOf("b")));
  const closed = log.close();
  t.throws(() => log.append(recordOf("c")), { code: "log_closed" });
  await Promise.all([committed, closed]);
  t.same(names, ["a", "b"]);
  const again = await openLog(disk);
  t.equal(again.log.recovery.provenSequence, 2);
  await again.log.close();
  const third = await openLog(disk);
  t.equal(third.log.nextSequence, again.log.nextSequence, "a start without a record leaves none");
});

t.test("close while a group is being written waits for it and for the next", async (t) => {
  const disk = await createDisk();
  const { log, names } = await openLog(disk, { segmentBytes: 400 });
  const closes: Promise<void>[] = [];
  const operations: string[] = [];
  disk.onOperation = ({ kind }) => {
    operations.push(kind);
    if (operations.length === 1) {
      log.append(recordOf("b", 300));
      closes.push(log.close(), log.close());
    }
    return undefined;
  };
  await log.whenCommitted(log.append(recordOf("a")));
  await Promise.all(closes);
  t.same(names, ["a", "b"]);
  t.same(operations.slice(0, 4), ["write", "datasync", "write", "datasync"], "one group after the other");
  const again = await openLog(disk);
  t.same(again.names, ["a", "b"]);
  t.equal(again.log.recovery.findingCount, 0);
});

t.test("interval: a rotation and the timer's sync do not meet", async (t) => {
  const disk = await createDisk();
  const { log, names, timers } = await openLog(disk, { durability: "interval", segmentBytes: 300 });
  disk.onOperation = () => {
    timers.fire();
    return undefined;
  };
  const all = Array.from({ length: 20 }, (_, i) => `r${i}`);
  await appendEach(log, all, 100);
  await log.close();
  t.equal(log.failure, null);
  t.same(names, all);
  t.same((await openLog(disk)).names, all);
});

t.test("what cannot be a record is refused and uses no number", async (t) => {
  const { log } = await openLog(await createDisk(), { maximumPendingBytes: 10_000 });
  const record = recordOf("a");
  t.throws(() => log.append({ ...record, type: 15 }), { message: /record's type is 15, but must be 16 to 65535/ });
  t.throws(() => log.append({ ...record, timeUs: Number.NaN }), { message: /record's time is NaN/ });
  const large = { ...record, body: new Uint8Array(32 * 1024 * 1024 + 1) };
  t.throws(() => log.append(large), { code: "record_too_large", data: { params: { maximum_body_bytes: 33_554_432 } } });
  t.throws(() => log.append(recordOf("b", 10_000)), { code: "log_overloaded" });
  t.throws(() => log.whenCommitted(1), { message: /record 1 was not appended yet/ });
  t.equal(log.nextSequence, 1);
});

t.test("a reader finds every record by its place, one by one, together, and blocking", async (t) => {
  const disk = await createDisk();
  const { log, seen } = await openLog(disk, { segmentBytes: 5_000 });
  for (let i = 0; i < 60; i++) await appendAll(log, [`r${i}`], (i * 37) % 700);
  await log.close();
  const reader = new LogReader({ fileSystem: disk, directory: META, maximumOpenFiles: 2 });
  const shuffled = [...seen].sort((a, b) => ((a.sequence * 7) % 61) - ((b.sequence * 7) % 61));
  const many = await reader.readMany(shuffled.map(({ location }) => location));
  for (const [i, record] of shuffled.entries()) {
    const expected = { sequence: record.sequence, index: Buffer.from(record.name), body: Buffer.from(record.body) };
    for (const read of [many[i]!, await reader.read(record.location), reader.readSync(record.location)]) {
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
    for (const read of [() => reader.read(location), async () => reader.readSync(location)]) {
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
  t.throws(() => reader.readSync({ ...location, segmentBase: 77 }), { code: "record_missing" });
});

t.test("a batch's records are views of its bytes", async (t) => {
  const { log } = await openLog(await createDisk(), {
    onCommitted: (batch) => {
      forEachRecord(batch, ({ index, body }, { offset, length }) => {
        t.equal(index.buffer, batch.bytes.buffer);
        t.equal(body.buffer, batch.bytes.buffer);
        t.match({ offset, length }, { offset: batch.offset, length: batch.bytes.length });
      });
    },
  });
  await appendAll(log, ["a"]);
});
