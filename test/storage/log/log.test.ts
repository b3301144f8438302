import t from "tap";
import { createRandom } from "../../../core/random.js";
import { type CommittedBatch, forEachRecord } from "../../../storage/log/committed-batch.js";
import type { Durable } from "../../../storage/log/log-options.js";
import { readRecordHeader } from "../../../storage/log/record-format.js";
import { decodeSegmentHeader, segmentBaseOf } from "../../../storage/log/segment.js";
import { randomSalt } from "../../../storage/recovery/recovery.js";
import { watchOpened } from "../../helpers/disk/opened-files.js";
import type { DiskOperation } from "../../helpers/disk/simulated-disk.js";
import { listOf } from "../../helpers/list-of.js";
import { appendAll, appendEach, createDisk, META, openLog, recordOf, until } from "../../helpers/store/log-harness.js";

function stateOf(log: { committedSequence: number; durableSequence: number; pendingBytes: number }) {
  const { committedSequence, durableSequence, pendingBytes } = log;
  return { committedSequence, durableSequence, pendingBytes };
}

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
  t.match(stateOf(log), { committedSequence: 2, durableSequence: 2, pendingBytes: 0 });
});

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
  // With every earlier segment gone, the opening state and the records after it still tell everything.
  for (let gone = 1; gone < segments.length; gone++) {
    disk.removeFile(segments[gone - 1]!);
    const firstSequence = segmentBaseOf(segments[gone]!.slice(META.length + 1))!;
    const again = await openLog(disk.copy());
    const lost = { code: "sequences_missing", firstLost: 1, lastLost: firstSequence - 1 };
    t.match(again.log.recovery, { findingCount: 1, findings: listOf(lost) });
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
  t.match(stateOf(log), { committedSequence: 2, durableSequence: 0 });
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
  t.match(stateOf(log), { committedSequence: 3, durableSequence: 2 });
});

t.test("interval: a sync that fails beside a write ends the log, and the write is not acknowledged", async (t) => {
  const disk = await createDisk();
  let finishWrite: (() => void) | undefined;
  let holds = false;
  watchOpened(disk, (file) => {
    const { write } = file;
    file.write = async (bytes, position) => {
      const count = await write(bytes, position);
      if (holds) await new Promise<void>((resolve) => (finishWrite = resolve));
      return count;
    };
  });
  const { log, names, timers } = await openLog(disk, { durability: "interval" });
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

t.test("whenDurable waits for a sync in every durability mode, and rejects if the sync fails", async (t) => {
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
