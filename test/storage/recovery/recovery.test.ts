import t from "tap";
import { createRandom } from "../../../core/random.js";
import { FileSystemError } from "../../../storage/disk/file-system-error.js";
import { Log } from "../../../storage/log/log.js";
import { writeHeaderCrc } from "../../../storage/log/record-format.js";
import { decodeSegmentHeader, encodeSegmentHeader, segmentName } from "../../../storage/log/segment.js";
import { quarantinedFiles } from "../../../storage/recovery/quarantine.js";
import { type PowerCut, powerCuts, powerCutsWithin } from "../../helpers/disk/power-cuts.js";
import type { SimulatedDisk } from "../../helpers/disk/simulated-disk.js";
import { listOf } from "../../helpers/list-of.js";
import {
  covered,
  fiveRecords,
  pathOf,
  place,
  recovers,
  showsItsCases,
  type Tap,
  threeSegments,
} from "../../helpers/store/damaged-log.js";
import {
  appendAll,
  appendEach,
  createDisk,
  META,
  openLog,
  QUARANTINE,
  recordOf,
  until,
} from "../../helpers/store/log-harness.js";

t.test("no_segment: an empty folder becomes a log of one segment", async (t) => {
  const report = await recovers(t, await createDisk(), { cases: ["no_segment"], names: [] });
  t.equal(report.newSegmentBase, 1);
});

t.test("tail_marks: a log that was closed goes on in its newest segment", async (t) => {
  const disk = await fiveRecords(true);
  const report = await recovers(t, disk, { cases: ["tail_marks"], names: ["a", "b", "c", "d", "e"] });
  t.equal(report.newSegmentBase, null);
  t.equal(report.provenSequence, 5);
});

t.test("a rotation that the process's end cut off before its name was durable: what goes into it stays", async (t) => {
  const disk = await createDisk();
  const { log } = await openLog(disk, { segmentBytes: 300 });
  let renamed = false;
  disk.onOperation = ({ kind }) => {
    if (kind === "rename") renamed = true;
    return renamed && kind === "syncDirectory" ? { dies: true } : undefined;
  };
  await t.rejects(appendEach(log, ["a", "b", "c", "d", "e", "f", "g", "h"]), { code: "log_failed" });
  const restarted = disk.kill();
  const again = await openLog(restarted);
  const before = again.log.committedSequence;
  t.ok(restarted.paths().includes(pathOf(before + 1)), "the segment is there, empty");
  await appendEach(again.log, ["x", "y"]);
  const after = await openLog(restarted.crash("drop", createRandom(1)));
  t.same(after.names.slice(-2), ["x", "y"]);
  t.equal(after.log.recovery.corruptionCount, 0);
});

t.test(
  "tail_marks: a mark that a failed sync left in the page cache is durable before anything builds on it",
  async (t) => {
    const disk = await createDisk();
    const { log, timers } = await openLog(disk);
    await appendEach(log, ["a", "b"]);
    disk.onOperation = ({ kind }) => (kind === "datasync" ? { error: "EIO" } : undefined);
    await until(() => {
      timers.fire();
      return log.failure !== null;
    }, "the mark's sync fails");
    const restarted = disk.kill();
    const again = await openLog(restarted);
    t.match(again.log.recovery, { decisions: { tail_marks: 1 }, lastSequence: 3 });
    const after = restarted.crash("drop", createRandom(1));
    t.same(after.bytesOf(pathOf(1)), restarted.bytesOf(pathOf(1)));
  },
);

t.test("tail_records: what is whole but not proven moves to a new segment", async (t) => {
  const disk = await fiveRecords(false);
  const report = await recovers(t, disk, { cases: ["tail_records"], names: ["a", "b", "c", "d", "e"] });
  t.match(report, { newSegmentBase: 5, provenSequence: 4, lastSequence: 5 });
});

t.test("a segment without a proven record is replaced by the new one", async (t) => {
  const disk = await createDisk();
  const { log } = await openLog(disk);
  await appendAll(log, ["a", "b"]);
  const report = await recovers(t, disk.kill(), { cases: ["tail_records"], names: ["a", "b"] });
  t.equal(report.newSegmentBase, 1);
});

t.test("temporary_file: what an interrupted write left is removed", async (t) => {
  const disk = await fiveRecords(true);
  disk.setBytes(`${pathOf(99)}.tmp`, new Uint8Array(100));
  const names = ["a", "b", "c", "d", "e"];
  const report = await recovers(t, disk, { cases: ["temporary_file", "tail_marks"], names });
  t.match(report.findings, listOf({ code: "temporary_file", lengthBytes: 100 }));
});

t.test("stray_copy: a copy of a segment under another number supersedes nothing, and is set aside", async (t) => {
  const names = ["a", "b", "c", "d", "e"];
  for (const [own, copiedTo] of [
    [1, 2],
    [1, 4],
    [3, 2],
    [5, 4],
    [3, 99],
    [1, 99_999],
    [5, 0],
  ] as const) {
    const disk = await threeSegments();
    const bytes = disk.bytesOf(pathOf(own));
    disk.setBytes(pathOf(copiedTo), bytes);
    const report = await recovers(t, disk, { cases: ["stray_copy", "tail_marks"], names });
    t.match(report.findings, listOf({ code: "segment_stray", segment: segmentName(copiedTo), firstLost: null }));
    t.match(report, { newSegmentBase: null });
    t.notOk(disk.has(pathOf(copiedTo)));
    t.same(disk.bytesOf(`${QUARANTINE}/${segmentName(copiedTo)}-stray.bin`), bytes);
    for (const base of [1, 3, 5]) t.ok(disk.has(pathOf(base)));
  }
  // A file whose name is no segment's name is ignored.
  const disk = await threeSegments();
  disk.setBytes(pathOf(1).replace(".seg", "-copy.seg"), disk.bytesOf(pathOf(1)));
  await recovers(t, disk, { cases: ["tail_marks"], names });
});

t.test("stray_copy: after any power cut it is in quarantine, told, and counts for nothing", async (t) => {
  const random = createRandom(11);
  const names = ["a", "b", "c", "d", "e"];
  let count = 0;
  // After a clean close, recovery goes on in the newest segment; otherwise in a new one.
  for (const closes of [true, false]) {
    for (const [own, copiedTo] of [
      [1, 4],
      [3, 99],
      [5, 0],
    ] as const) {
      const disk = await threeSegments(closes);
      const bytes = disk.bytesOf(pathOf(own));
      disk.setBytes(pathOf(copiedTo), bytes);
      const kept = `${segmentName(copiedTo)}-stray.bin`;
      const { result: first, cuts: within } = await powerCutsWithin(disk, random, () => openLog(disk));
      const behind = powerCuts(disk, random);
      await appendEach(first.log, ["later"]);
      const later = powerCuts(disk, random);
      for (const cut of [...behind, ...later])
        t.ok(cut.disk.has(`${QUARANTINE}/${kept}`), `as ${copiedTo}, ${cut.what}: it was durable with the opening`);

      const judge = async ({ what, disk: after }: PowerCut, expected: string[]): Promise<void> => {
        const said = `${own} as ${copiedTo}, closed: ${closes}, ${what}`;
        const isStill = after.has(pathOf(copiedTo));
        const again = await openLog(after);
        t.same(again.names, expected, said);
        t.ok(again.log.nextSequence > expected.length, `${said}: no number is used again`);
        t.match(again.log.recovery, { lostRecords: 0, corruptionCount: 0 }, said);
        t.equal(again.log.recovery.decisions.stray_copy ?? 0, isStill ? 1 : 0, said);
        t.notOk(after.has(pathOf(copiedTo)), said);
        t.same(await quarantinedFiles(after, QUARANTINE), [kept], `${said}: health tells of it`);
        t.same(after.has(`${QUARANTINE}/${kept}`) && after.bytesOf(`${QUARANTINE}/${kept}`), bytes, said);
        count++;
      };
      for (const cut of [...within, ...behind]) await judge(cut, names);
      for (const cut of later) await judge(cut, [...names, "later"]);
    }
  }
  t.comment(`${count} power cuts`);
});

t.test(
  "what a recovery that was killed had put in quarantine is durable before the next one builds on it",
  async (t) => {
    const evidence = { sequence: 5, source: "a hint file" };
    const damaged = await fiveRecords(true);
    const { offset } = place(damaged, 1, 5);
    damaged.setBytes(pathOf(1), damaged.bytesOf(pathOf(1)).fill(0x55, offset));
    const copied = await threeSegments();
    copied.setBytes(pathOf(4), copied.bytesOf(pathOf(1)));
    for (const [what, disk] of Object.entries({ damaged, copied })) {
      let isRenamed = false;
      disk.onOperation = ({ kind, path }) => {
        if (kind === "rename") isRenamed = true;
        return isRenamed && kind === "syncDirectory" && path === QUARANTINE ? { dies: true } : undefined;
      };
      await t.rejects(openLog(disk, { evidence }), what);
      const restarted = disk.kill();
      const [kept, ...others] = await quarantinedFiles(restarted, QUARANTINE);
      t.ok(kept?.endsWith(".bin") && others.length === 0, `${what}: it has its name, in the cache`);
      const path = `${QUARANTINE}/${kept}`;
      const bytes = restarted.bytesOf(path);
      await openLog(restarted, { evidence });
      const after = restarted.crash("drop", createRandom(1));
      t.ok(after.has(path) && Buffer.from(after.bytesOf(path)).equals(bytes), `${what}: it is there after a power cut`);
    }
  },
);

t.test("superseded: what an interrupted recovery had copied already counts once", async (t) => {
  const disk = await fiveRecords(false);
  const before = disk.bytesOf(pathOf(1));
  await openLog(disk);
  const interrupted = disk.kill();
  t.ok(interrupted.bytesOf(pathOf(1)).length < before.length, "the old segment was shortened");
  interrupted.setBytes(pathOf(1), before);
  covered.add("superseded");
  const { names, log } = await openLog(interrupted);
  t.same(names, ["a", "b", "c", "d", "e"]);
  t.same(Object.keys(log.recovery.decisions).sort(), ["superseded", "tail_records"]);
  t.equal(log.recovery.corruptionCount, 0);
  const torn = interrupted.kill();
  torn.setBytes(pathOf(1), before.slice(0, before.length - 3));
  const again = await openLog(torn);
  t.same(again.names, ["a", "b", "c", "d", "e"]);
  t.equal(again.log.recovery.corruptionCount, 0, "torn or not");
});

/** A log whose opening cuts its first segment to so many bytes, and what the segment had before. */
async function cutAtOpening(): Promise<{ disk: SimulatedDisk; before: Uint8Array; cutBytes: number }> {
  const disk = await fiveRecords(false);
  const opened = disk.copy();
  await openLog(opened);
  const [before, after] = [disk.bytesOf(pathOf(1)), opened.bytesOf(pathOf(1))];
  t.ok(after.length < before.length, "it is cut");
  return { disk, before, cutBytes: after.length };
}

/** Whatever a power cut leaves: the first segment has no more than so many bytes. */
function staysCut(t: Tap, disk: SimulatedDisk, cutBytes: number): void {
  for (const { what, disk: left } of powerCuts(disk, createRandom(1)))
    t.equal(left.bytesOf(pathOf(1)).length, cutBytes, what);
}

t.test(
  "what an opening cuts off does not come back by a power cut, beside the records that took its numbers",
  async (t) => {
    const { disk, cutBytes } = await cutAtOpening();
    const { log } = await openLog(disk);
    await appendEach(log, ["f", "g"]);
    staysCut(t, disk, cutBytes);
  },
);

t.test("superseded: nor does what it cuts off for an interrupted recovery", async (t) => {
  const { disk, before, cutBytes } = await cutAtOpening();
  await openLog(disk);
  const interrupted = disk.kill();
  interrupted.setBytes(pathOf(1), before);
  await openLog(interrupted);
  staysCut(t, interrupted, cutBytes);
});

t.test("nor where the process was killed after the cut, before it was durable", async (t) => {
  const { disk, cutBytes } = await cutAtOpening();
  let isCut = false;
  disk.onOperation = ({ kind, path }) => {
    if (kind === "truncate") isCut = true;
    return isCut && kind === "datasync" && path === pathOf(1) ? { dies: true } : undefined;
  };
  await t.rejects(openLog(disk));
  const restarted = disk.kill();
  t.equal(restarted.bytesOf(pathOf(1)).length, cutBytes);
  t.not(restarted.fork("drop", createRandom(1)).bytesOf(pathOf(1)).length, cutBytes, "in the cache only");
  await openLog(restarted);
  staysCut(t, restarted, cutBytes);
});

t.test(
  "a closed segment that may only be read, as one restored from a backup, is no reason not to start",
  async (t) => {
    const disk = await threeSegments();
    const { open } = disk;
    const synced = new Set<string>();
    disk.open = async (path, mode) => {
      if (mode !== "read" && [1, 3].map(pathOf).includes(path)) throw new FileSystemError("EACCES", "open", path);
      return await open.call(disk, path, mode);
    };
    disk.onOperation = ({ kind, path }) => {
      if (kind === "datasync") synced.add(path);
      return undefined;
    };
    const { names, log } = await openLog(disk);
    t.same(names, ["a", "b", "c", "d", "e"]);
    t.ok(synced.has(pathOf(3)), "a cut of it that a killed process left in the cache is made durable all the same");
    await appendEach(log, ["f"]);
    await log.close();
  },
);

t.test("a newer format refuses to open and says what is needed", async (t) => {
  const segment = await fiveRecords(true);
  const { salt, base } = decodeSegmentHeader(segment.bytesOf(pathOf(1))).header!;
  const bytes = segment.bytesOf(pathOf(1));
  bytes.set(encodeSegmentHeader({ version: 2, salt, base }));
  segment.setBytes(pathOf(1), bytes);
  await t.rejects(openLog(segment), { code: "format_unsupported", message: /format version 2.*reads version 1/ });

  const record = await fiveRecords(true);
  const recordBytes = record.bytesOf(pathOf(1));
  const { offset } = place(record, 1, 2);
  recordBytes[offset + 7] = 2;
  const salted = decodeSegmentHeader(recordBytes).header!.salt;
  writeHeaderCrc(recordBytes, new DataView(recordBytes.buffer), offset, salted, offset);
  record.setBytes(pathOf(1), recordBytes);
  await t.rejects(openLog(record), { code: "format_unsupported", message: /record at \d+ has version 2/ });
  t.same(record.bytesOf(pathOf(1)), recordBytes, "nothing was changed");
});

t.test("an unknown record that must be understood refuses to open; another is delivered", async (t) => {
  for (const flags of [1, 0]) {
    const disk = await createDisk();
    const { log } = await openLog(disk);
    await log.whenCommitted(log.append({ ...recordOf("x"), type: 999, flags }));
    await log.close();
    if (flags === 1) {
      await t.rejects(openLog(disk), { code: "record_type_unsupported", message: /has type 999/ });
    } else {
      t.same((await openLog(disk)).names, ["x"]);
    }
  }
});

t.test("the clock resumes at the largest time of any record", async (t) => {
  const disk = await createDisk();
  const { log } = await openLog(disk, { segmentBytes: 200 });
  for (const timeUs of [100, 300, 200]) await log.whenCommitted(log.append({ ...recordOf("x"), timeUs }));
  await log.close();
  const again = await openLog(disk);
  t.equal(again.log.recovery.lastTimeUs, 300);
  t.equal(again.log.lastTimeUs, 300);
});

t.test("recovery waits for its reader between batches, and holds little", async (t) => {
  const disk = await createDisk();
  const { log } = await openLog(disk);
  for (let i = 0; i < 40; i++) await appendAll(log, [`r${i}`], 100_000);
  await log.close();
  let isBusy = false;
  let batches = 0;
  let largest = 0;
  await Log.open({
    fileSystem: disk,
    directory: META,
    quarantineDirectory: QUARANTINE,
    durability: "full",
    openingState: () => ({ index: new Uint8Array(0), body: new Uint8Array(0) }),
    onRecords: async (batch) => {
      t.notOk(isBusy);
      isBusy = true;
      batches++;
      largest = Math.max(largest, batch.bytes.length);
      await new Promise<void>((resolve) => setImmediate(resolve));
      isBusy = false;
    },
  });
  t.ok(batches >= 4 && largest <= 1024 * 1024, `${batches} batches, the largest of ${largest} bytes`);
});

t.test("every case of this file was shown", async (t) => showsItsCases(t, "recovery"));
