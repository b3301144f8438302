import t from "tap";
import { createRandom } from "../../../core/random.js";
import { FileSystemError } from "../../../storage/disk/file-system-error.js";
import { Log } from "../../../storage/log/log.js";
import { forEachRecord } from "../../../storage/log/log-batch.js";
import {
  readRecordHeader,
  recordLength,
  sealRecordHeader,
  writeRecordHeader,
} from "../../../storage/log/record-format.js";
import { decodeSegmentHeader, encodeSegmentHeader, segmentName } from "../../../storage/log/segment.js";
import { quarantinedFiles } from "../../../storage/recovery/quarantine.js";
import { RECOVERY_CASES, type RecoveryCase } from "../../../storage/recovery/recovery-cases.js";
import type { RecoveryReport } from "../../../storage/recovery/recovery-report.js";
import { type PowerCut, powerCuts, powerCutsWithin } from "../../helpers/disk/power-cuts.js";
import type { SimulatedDisk } from "../../helpers/disk/simulated-disk.js";
import { listOf } from "../../helpers/list-of.js";
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

/** Every case is named by a test below. */
const covered = new Set<RecoveryCase>();

interface Expectation {
  cases: RecoveryCase[];
  /** Names of the records that must be there, in order. */
  names: string[];
  lost?: number;
  corruption?: number;
}

/** Opens the damaged disk twice: the cases apply, and the second recovery gives the same records and loses nothing more. */
async function recovers(t: Tap, disk: SimulatedDisk, expected: Expectation): Promise<RecoveryReport> {
  for (const recoveryCase of expected.cases) covered.add(recoveryCase);
  const first = await openLog(disk);
  t.same(Object.keys(first.log.recovery.decisions).sort(), [...expected.cases].sort(), "these cases apply");
  t.same(first.names, expected.names, "these records are there");
  t.equal(first.log.recovery.lostRecords, expected.lost ?? 0, "lost records");
  t.equal(first.log.recovery.corruptionCount, expected.corruption ?? 0, "corruption");
  const again = await openLog(disk.kill());
  t.same(again.names, expected.names, "a second recovery gives the same records");
  t.equal(again.log.recovery.lostRecords, expected.lost ?? 0, "and reports the same loss");
  await appendEach(again.log, ["later"]);
  await again.log.close();
  return first.log.recovery;
}
type Tap = Pick<typeof t, "same" | "equal" | "ok" | "match">;

/** Records a to e, one group each; closed (proven by a mark) or just stopped (e is not proven). */
async function fiveRecords(closes: boolean): Promise<SimulatedDisk> {
  const disk = await createDisk();
  const { log } = await openLog(disk);
  await appendEach(log, ["a", "b", "c", "d", "e"]);
  if (!closes) return disk.kill();
  await log.close();
  return disk;
}

/** Segments 1 (a, b), 3 (c, d), 5 (e), and a mark; just stopped, without the mark. */
async function threeSegments(closes = true): Promise<SimulatedDisk> {
  const disk = await createDisk();
  const { log } = await openLog(disk, { segmentBytes: 500 });
  await appendEach(log, ["a", "b", "c", "d", "e"], 200);
  if (closes) await log.close();
  t.same(
    disk.paths().filter((path) => path.startsWith(META)),
    [1, 3, 5].map((base) => `${META}/${segmentName(base)}`),
  );
  return closes ? disk : disk.kill();
}

function cut(disk: SimulatedDisk, base: number, sizeBytes: number): void {
  disk.setBytes(pathOf(base), disk.bytesOf(pathOf(base)).slice(0, sizeBytes));
}

function pathOf(base: number): string {
  return `${META}/${segmentName(base)}`;
}

/** Offset and length of every record of a segment. */
function recordsOf(
  disk: SimulatedDisk,
  base: number,
): { sequence: number; offset: number; length: number; type: number }[] {
  const bytes = disk.bytesOf(pathOf(base)).subarray(64);
  const records: { sequence: number; offset: number; length: number; type: number }[] = [];
  forEachRecord({ bytes, segmentBase: base, offset: 64 }, ({ sequence, type }, { offset, length }) => {
    records.push({ sequence, offset, length, type });
  });
  return records;
}

function flip(disk: SimulatedDisk, base: number, offset: number): void {
  const bytes = disk.bytesOf(pathOf(base));
  bytes[offset]! ^= 0x10;
  disk.setBytes(pathOf(base), bytes);
}

function cutAt(disk: SimulatedDisk, base: number, offset: number): void {
  disk.setBytes(pathOf(base), disk.bytesOf(pathOf(base)).slice(0, offset));
}

function place(disk: SimulatedDisk, base: number, sequence: number): { offset: number; length: number } {
  const found = recordsOf(disk, base).find((record) => record.sequence === sequence && record.type !== 1);
  if (found === undefined) throw new Error(`no record ${sequence} in segment ${base}`);
  return found;
}

/** Rewrites the record at an offset with changed header fields, sealed as if the log had written it so. */
function rewrite(disk: SimulatedDisk, base: number, offset: number, change: object): void {
  const bytes = disk.bytesOf(pathOf(base));
  const view = new DataView(bytes.buffer);
  const { salt } = decodeSegmentHeader(bytes).header!;
  writeRecordHeader(bytes, view, offset, { ...readRecordHeader(view, offset), ...change }, salt, offset);
  disk.setBytes(pathOf(base), bytes);
}

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
  // Under a name that is no segment's it is nobody's.
  const disk = await threeSegments();
  disk.setBytes(pathOf(1).replace(".seg", "-copy.seg"), disk.bytesOf(pathOf(1)));
  await recovers(t, disk, { cases: ["tail_marks"], names });
});

t.test("stray_copy: behind any power cut it is in quarantine, told, and counts for nothing", async (t) => {
  const random = createRandom(11);
  const names = ["a", "b", "c", "d", "e"];
  let count = 0;
  // Of a log that was closed recovery goes on in the newest segment, of the other in a new one.
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
      t.ok(
        after.has(path) && Buffer.from(after.bytesOf(path)).equals(bytes),
        `${what}: it is there behind a power cut`,
      );
    }
  },
);

t.test("segment_unreadable: an older segment without a header is corruption, its numbers are lost", async (t) => {
  for (const size of [0, 63, 1000]) {
    const disk = await threeSegments();
    disk.setBytes(pathOf(3), new Uint8Array(size).fill(0x55));
    const report = await recovers(t, disk, {
      cases: ["segment_unreadable", "tail_marks"],
      names: ["a", "b", "e"],
      lost: 2,
      corruption: 1,
    });
    t.match(report.findings, listOf({ code: "segment_unreadable", firstLost: 3, lastLost: 4 }));
    if (size > 0) t.equal(disk.bytesOf(`${QUARANTINE}/${report.findings[0]?.quarantineFile}`).length, size);
  }
});

t.test("segment_unreadable: the newest one stays where it is, and no number of it is used again", async (t) => {
  const disk = await threeSegments();
  for (const at of [10, 42]) flip(disk, 5, at);
  const sizeBytes = disk.bytesOf(pathOf(5)).length;
  covered.add("segment_unreadable");
  const first = await openLog(disk);
  t.same(first.names, ["a", "b", "c", "d"]);
  t.match(first.log.recovery.findings, listOf({ code: "segment_unreadable", firstLost: 5, lastLost: null }));
  t.ok(first.log.nextSequence > 6, `goes on at ${first.log.nextSequence}`);
  t.equal(disk.bytesOf(pathOf(5)).length, sizeBytes);
  const again = await openLog(disk.kill());
  t.same(again.names, ["a", "b", "c", "d"]);
  t.match(again.log.recovery.findings, listOf({ code: "segment_unreadable", segment: segmentName(5) }));
});

t.test("segment_unreadable: no crash leaves the newest one shorter than its header, whatever it was", async (t) => {
  for (const [base, names, size] of [
    [1, [], 0],
    [1, [], 40],
    [5, ["a", "b", "c", "d"], 0],
    [5, ["a", "b", "c", "d"], 63],
  ] as [number, string[], number][]) {
    const disk = base === 1 ? await fiveRecords(true) : await threeSegments();
    const bytes = disk.bytesOf(pathOf(base)).slice(0, size);
    disk.setBytes(pathOf(base), bytes);
    const found = { code: "segment_unreadable", firstLost: base, lastLost: null };
    const first = await openLog(disk);
    t.same(first.names, names);
    t.match(first.log.recovery, { corruptionCount: 1, isLostCountExact: false, findings: listOf(found) });
    t.same(Object.keys(first.log.recovery.decisions), ["segment_unreadable"]);
    const { quarantineFile } = first.log.recovery.findings[0] as { quarantineFile: string | null };
    if (size > 0) t.same(disk.bytesOf(`${QUARANTINE}/${quarantineFile}`), bytes);
    const number = first.log.nextSequence;
    await appendEach(first.log, ["later"]);
    t.ok(number >= base + 2 ** 25, `goes on at ${number}: as many numbers may have been used`);
    await first.log.close();
    const again = await openLog(disk.kill());
    t.same(again.names, [...names, "later"]);
    t.match(
      again.log.recovery,
      { corruptionCount: 1, lostRecords: 0, isLostCountExact: false, findings: listOf(found) },
      "later starts do not count the numbers that were skipped",
    );
    t.equal(again.log.nextSequence, number + 2, "behind the mark");
    await again.log.close();
  }
});

t.test("segment_unreadable: a segment that a copy of another one has overwritten is no stray one", async (t) => {
  const disk = await threeSegments();
  disk.setBytes(pathOf(3), disk.bytesOf(pathOf(1)));
  await recovers(t, disk, {
    cases: ["segment_unreadable", "tail_marks"],
    names: ["a", "b", "e"],
    lost: 2,
    corruption: 1,
  });
});

t.test("header_copy_damaged: the other copy serves", async (t) => {
  for (const at of [12, 40]) {
    const disk = await fiveRecords(true);
    flip(disk, 1, at);
    const cases: RecoveryCase[] = ["header_copy_damaged", "tail_marks"];
    await recovers(t, disk, { cases, names: ["a", "b", "c", "d", "e"], corruption: 1 });
  }
});

t.test("opening_state_damaged: the records behind it stay", async (t) => {
  const disk = await threeSegments();
  for (const [base, delta] of [
    [3, 0],
    [5, 50],
  ] as const) {
    const damaged = disk.copy();
    flip(damaged, base, 64 + delta);
    const report = await recovers(t, damaged, {
      cases: ["opening_state_damaged", "tail_marks"],
      names: ["a", "b", "c", "d", "e"],
      corruption: 1,
    });
    t.match(report.findings, listOf({ code: "opening_state_damaged", offset: 64, firstLost: null }));
  }
});

t.test("opening_state_damaged: with nothing behind it anything may be lost, and no number is used again", async (t) => {
  for (const [what, damage] of [
    ["nothing ever stood behind it", (disk) => flip(disk, 1, 70)],
    ["the file ends before it", (disk) => cut(disk, 1, 64)],
    ["the file ends within it", (disk) => cut(disk, 1, 80)],
    ["zeros from there on", (disk) => disk.setBytes(pathOf(1), disk.bytesOf(pathOf(1)).fill(0, 70))],
  ] as [string, (disk: SimulatedDisk) => void][]) {
    const disk = await createDisk();
    const { log } = await openLog(disk);
    if (!what.startsWith("nothing")) await appendEach(log, ["a", "b"]);
    await log.close();
    const damaged = disk.kill();
    damage(damaged);
    const found = { code: "opening_state_damaged", firstLost: 1, lastLost: null };
    const first = await openLog(damaged);
    t.same(Object.keys(first.log.recovery.decisions).sort(), ["newest_ends_in_damage", "opening_state_damaged"], what);
    t.match(first.log.recovery, { corruptionCount: 1, isLostCountExact: false, findings: listOf(found) }, what);
    t.ok(first.log.nextSequence > 2 ** 25, `${what}: goes on at ${first.log.nextSequence}`);
    const again = await openLog(damaged.kill());
    t.match(
      again.log.recovery,
      { corruptionCount: 1, lostRecords: 0, isLostCountExact: false, findings: listOf(found) },
      what,
    );
    t.equal(again.log.nextSequence, first.log.nextSequence, what);
  }
});

for (const [what, damage, names, firstLost] of [
  [
    "all segments",
    (disk) => {
      for (const base of [1, 3, 5]) disk.removeFile(pathOf(base));
    },
    [],
    1,
  ],
  ["the newest segment", (disk) => void disk.removeFile(pathOf(5)), ["a", "b", "c", "d"], 5],
  ["the newest but for its name", (disk) => disk.setBytes(pathOf(5), new Uint8Array(0)), ["a", "b", "c", "d"], 5],
  ["the newest but for its header", (disk) => cut(disk, 5, 64), ["a", "b", "c", "d"], 5],
  ["the newest but for half a header", (disk) => cut(disk, 5, 30), ["a", "b", "c", "d"], 5],
  ["the last record", (disk) => cut(disk, 5, place(disk, 5, 5).offset + 40), ["a", "b", "c", "d"], 5],
  ["what was recorded last", () => {}, ["a", "b", "c", "d", "e"], 7],
] as [string, (disk: SimulatedDisk) => void, string[], number][]) {
  t.test(`end_lost: ${what}`, async (t) => {
    covered.add("end_lost");
    const evidence = { sequence: 9, source: "meta/9.hint" };
    const disk = await threeSegments();
    damage(disk);
    const first = await openLog(disk, { evidence });
    t.same(first.names, names);
    const lost = first.log.recovery.findings.filter(({ code }) => code === "log_lost");
    t.match(lost, listOf({ firstLost, lastLost: 9, detail: /meta\/9.hint says that everything up to 9 was durable/ }));
    t.match(first.log.recovery, { lostRecords: 9 - firstLost + 1, isLostCountExact: false });
    // Of a segment without a header or an opening state, what the evidence does not know may be lost too.
    const { segment_unreadable, opening_state_damaged } = first.log.recovery.decisions;
    const isUnreadable = segment_unreadable === 1 || opening_state_damaged === 1;
    if (isUnreadable) t.ok(first.log.nextSequence > 2 ** 25, "no number is used again");
    else t.equal(first.log.nextSequence, 10, "no number is used again");
    await appendEach(first.log, ["new"]);
    const again = await openLog(disk.kill());
    t.same(again.names, [...names, "new"]);
    const { lostRecords, isLostCountExact } = again.log.recovery;
    const later = isUnreadable ? [0, false] : [9 - firstLost + 1, true];
    t.same([lostRecords, isLostCountExact], later, "the hole tells the same loss from then on");
    await again.log.close();
  });
}

t.test("end_lost: a log that was there and nothing tells how long it was", async (t) => {
  const { log } = await openLog(await createDisk(), { evidence: { sequence: 0, source: "captures/x" } });
  t.match(log.recovery.findings, listOf({ code: "log_lost", firstLost: 1, lastLost: null }));
  t.match(log.recovery, { corruptionCount: 1, lostRecords: 0, isLostCountExact: false });
  t.equal(log.nextSequence, 1);
});

t.test("what is said to be durable and is there changes nothing of what is recovered", async (t) => {
  for (const closes of [true, false]) {
    const disk = await fiveRecords(closes);
    for (let sequence = 0; sequence <= 5; sequence++) {
      const copy = disk.copy();
      const first = await openLog(copy, { evidence: { sequence, source: "a hint file" } });
      t.same(first.names, ["a", "b", "c", "d", "e"]);
      t.match(first.log.recovery, { findings: { length: 0 }, corruptionCount: 0 });
      await appendEach(first.log, ["f"]);
      const again = await openLog(copy.kill());
      t.same(again.names, ["a", "b", "c", "d", "e", "f"]);
      t.match(again.log.recovery, { corruptionCount: 0 });
    }
  }
});

for (const [what, delta] of [
  ["header", 9],
  ["content", 50],
] as const) {
  t.test(`damage_proven: a record with a damaged ${what} is quarantined, the others stay`, async (t) => {
    const disk = await fiveRecords(true);
    const { offset, length } = place(disk, 1, 3);
    const before = disk.bytesOf(pathOf(1));
    flip(disk, 1, offset + delta);
    const report = await recovers(t, disk, {
      cases: ["damage_proven", "tail_marks"],
      names: ["a", "b", "d", "e"],
      lost: 1,
      corruption: 1,
    });
    t.match(
      report.findings,
      listOf({ code: "record_damaged", offset, lengthBytes: length, firstLost: 3, lastLost: 3 }),
    );
    const durable = disk.fork("drop", createRandom(1));
    const kept = durable.bytesOf(`${QUARANTINE}/${report.findings[0]?.quarantineFile}`);
    before[offset + delta]! ^= 0x10;
    t.same(kept, before.subarray(offset, offset + length), "the quarantine has the bytes as they were found");
  });
}

t.test("damage_proven: in an older segment, also at its end", async (t) => {
  const disk = await threeSegments();
  flip(disk, 3, place(disk, 3, 4).offset + 60);
  await recovers(t, disk, {
    cases: ["damage_proven", "tail_marks"],
    names: ["a", "b", "c", "e"],
    lost: 1,
    corruption: 1,
  });
});

t.test("damage_proven: a record that stands twice, or is stale, is no record the second time", async (t) => {
  const disk = await fiveRecords(true);
  rewrite(disk, 1, place(disk, 1, 3).offset, { sequence: 2 });
  const report = await recovers(t, disk, {
    cases: ["damage_proven", "tail_marks"],
    names: ["a", "b", "d", "e"],
    lost: 1,
    corruption: 1,
  });
  t.match(report.findings, listOf({ detail: "record 2 stands behind record 2" }));
});

t.test("damage_proven: a record of another segment's salt, or copied from another place", async (t) => {
  const other = await fiveRecords(true);
  const disk = await fiveRecords(true);
  const { offset, length } = place(disk, 1, 3);
  for (const [source, from] of [
    [other, offset],
    [disk, place(disk, 1, 2).offset],
  ] as const) {
    const damaged = disk.copy();
    const bytes = disk.bytesOf(pathOf(1));
    bytes.set(source.bytesOf(pathOf(1)).subarray(from, from + length), offset);
    damaged.setBytes(pathOf(1), bytes);
    await recovers(t, damaged, {
      cases: ["damage_proven", "tail_marks"],
      names: ["a", "b", "d", "e"],
      lost: 1,
      corruption: 1,
    });
  }
});

t.test("damage_proven to the end of the newest segment: a new one begins behind what is lost", async (t) => {
  const disk = await fiveRecords(true);
  const { offset } = place(disk, 1, 4);
  const bytes = disk.bytesOf(pathOf(1));
  // Records 4 and 5 are gone, and all that is left of the mark is a header that says they were durable.
  bytes.fill(0xee, offset, place(disk, 1, 6).offset);
  disk.setBytes(pathOf(1), bytes);
  await recovers(t, disk, {
    cases: ["damage_proven", "tail_marks"],
    names: ["a", "b", "c"],
    lost: 2,
    corruption: 1,
  });
  const ending = await fiveRecords(true);
  const mark = place(ending, 1, 6);
  rewrite(ending, 1, mark.offset, { sequence: 5, bodyLength: 8 });
  const withEnd = ending.bytesOf(pathOf(1));
  withEnd.fill(0xee, place(ending, 1, 5).offset, mark.offset);
  ending.setBytes(pathOf(1), withEnd);
  await recovers(t, ending, {
    cases: ["damage_proven", "newest_ends_in_damage"],
    names: ["a", "b", "c", "d"],
    lost: 1,
    corruption: 1,
  });
});

t.test("damage_unproven: a torn tail is cut, which is no corruption", async (t) => {
  const disk = await fiveRecords(false);
  const { offset, length } = place(disk, 1, 5);
  cutAt(disk, 1, offset + length - 1);
  const report = await recovers(t, disk, {
    cases: ["damage_unproven", "newest_ends_in_damage"],
    names: ["a", "b", "c", "d"].slice(0, 4),
  });
  t.match(report, { cutBytes: length - 1, findings: listOf({ code: "tail_cut", offset }) });
});

t.test("damage_unproven: what follows the damage is cut too", async (t) => {
  const disk = await createDisk();
  const { log } = await openLog(disk);
  await appendAll(log, ["a", "b"]);
  await appendAll(log, ["c", "d", "e", "f"]);
  const damaged = disk.kill();
  flip(damaged, 1, place(damaged, 1, 4).offset + 20);
  await recovers(t, damaged, { cases: ["damage_unproven", "tail_records"], names: ["a", "b", "c"] });
});

t.test("hole_proven: numbers that are nowhere are reported", async (t) => {
  const disk = await fiveRecords(true);
  rewrite(disk, 1, place(disk, 1, 3).offset, { type: 2, sequence: 2 });
  const bytes = disk.bytesOf(pathOf(1));
  const [third, fourth] = [place(disk, 1, 2), place(disk, 1, 4)];
  t.ok(third.offset < fourth.offset);
  // Records 4 and on move to where 3 stood, sealed for that place: as if 3 had never been written.
  const { salt } = decodeSegmentHeader(bytes).header!;
  const gap = recordsOf(disk, 1).find((record) => record.offset > third.offset && record.offset < fourth.offset)!;
  const moved = bytes.slice();
  moved.copyWithin(gap.offset, fourth.offset);
  const closed = moved.slice(0, bytes.length - (fourth.offset - gap.offset));
  const view = new DataView(closed.buffer);
  for (let at = gap.offset; at < closed.length; ) {
    const header = readRecordHeader(view, at);
    sealRecordHeader(closed, view, at, salt, at);
    at += recordLength(header.indexLength, header.bodyLength);
  }
  disk.setBytes(pathOf(1), closed);
  const report = await recovers(t, disk, {
    cases: ["hole_proven", "tail_marks"],
    names: ["a", "b", "d", "e"],
    lost: 1,
    corruption: 1,
  });
  t.match(report.findings, listOf({ code: "sequences_missing", firstLost: 3, lastLost: 3, lengthBytes: 0 }));
});

t.test("hole_proven: a missing segment, at the start and in the middle, and one that ends early", async (t) => {
  const disk = await threeSegments();
  const middle = disk.copy();
  middle.removeFile(pathOf(3));
  await recovers(t, middle, { cases: ["hole_proven", "tail_marks"], names: ["a", "b", "e"], lost: 2, corruption: 1 });
  const start = disk.copy();
  start.removeFile(pathOf(1));
  const report = await recovers(t, start, {
    cases: ["hole_proven", "tail_marks"],
    names: ["c", "d", "e"],
    lost: 2,
    corruption: 1,
  });
  t.match(report.findings, listOf({ firstLost: 1, lastLost: 2, detail: "the log starts at 3 instead of 1" }));
  const early = disk.copy();
  cutAt(early, 3, place(early, 3, 4).offset);
  await recovers(t, early, {
    cases: ["hole_proven", "tail_marks"],
    names: ["a", "b", "c", "e"],
    lost: 1,
    corruption: 1,
  });
});

t.test("hole_unproven: a hole in what is not proven ends the log", async (t) => {
  const disk = await createDisk();
  const { log } = await openLog(disk);
  await appendAll(log, ["a", "b"]);
  await appendAll(log, ["c", "d"]);
  const damaged = disk.kill();
  rewrite(damaged, 1, place(damaged, 1, 4).offset, { sequence: 5 });
  await recovers(t, damaged, { cases: ["hole_unproven", "tail_records"], names: ["a", "b", "c"] });
});

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

/** A log that cuts its first segment when it is opened, to so many bytes, and what the segment had. */
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

t.test("nor where the process was killed behind the cut, before it was durable", async (t) => {
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
  sealRecordHeader(recordBytes, new DataView(recordBytes.buffer), offset, salted, offset);
  record.setBytes(pathOf(1), recordBytes);
  await t.rejects(openLog(record), { code: "format_unsupported", message: /record at \d+ has version 2/ });
  t.same(record.bytesOf(pathOf(1)), recordBytes, "nothing was changed");
});

t.test("an unknown record that must be understood refuses to open; another is delivered", async (t) => {
  for (const flags of [1, 0]) {
    const disk = await createDisk();
    const { log } = await openLog(disk, { understandsType: () => true });
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
    understandsType: () => true,
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

t.test("every case was tested", async (t) => {
  const others = ["hint_missing", "hint_damaged", "hint_unusable"];
  t.same([...covered, ...others].sort(), Object.keys(RECOVERY_CASES).sort(), "those of hint-recovery.test.ts too");
  t.comment(`recovery table: ${covered.size + others.length} of ${Object.keys(RECOVERY_CASES).length} cases`);
});
