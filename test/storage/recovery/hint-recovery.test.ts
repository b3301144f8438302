/** The cases of recovery's table that are about hint files; recovery.test.ts has the others. */
import t, { type Test } from "tap";
import { forEachRecord } from "../../../storage/log/committed-batch.js";
import { encodeHint, type HintEntry, hintName } from "../../../storage/log/hint-format.js";
import { decodeSegmentHeader, segmentName } from "../../../storage/log/segment.js";
import type { RecoveryCase } from "../../../storage/recovery/recovery-cases.js";
import type { RecoveryReport } from "../../../storage/recovery/recovery-report.js";
import type { SimulatedDisk } from "../../helpers/disk/simulated-disk.js";
import { listOf } from "../../helpers/list-of.js";
import { appendEach, createDisk, META, openLog, QUARANTINE } from "../../helpers/store/log-harness.js";

const ALL = ["a", "b", "c", "d", "e"];

interface Expectation {
  cases: RecoveryCase[];
  names: string[];
  lost?: number;
  corruption?: number;
}

/** Opens the disk twice, with hint files: the cases apply, and the second recovery gives the same records. */
async function recovers(t: Test, disk: SimulatedDisk, expected: Expectation): Promise<RecoveryReport> {
  const { log, names } = await openLog(disk, { usesHints: true });
  // The last mark of a log that was closed proves itself nowhere.
  t.same(Object.keys(log.recovery.decisions).sort(), [...expected.cases, "tail_marks"].sort(), "these cases apply");
  t.same(names, expected.names, "these records are there");
  t.equal(log.recovery.lostRecords, expected.lost ?? 0, "lost records");
  t.equal(log.recovery.corruptionCount, expected.corruption ?? 0, "corruption");
  const again = await openLog(disk.kill(), { usesHints: true });
  t.same(again.names, expected.names, "a second recovery gives the same records");
  await appendEach(again.log, ["later"]);
  await again.log.close();
  return log.recovery;
}

/** Segments 1 (a, b), 3 (c, d), 5 (e, and a mark), closed. */
async function threeSegments(): Promise<SimulatedDisk> {
  const disk = await createDisk();
  const { log } = await openLog(disk, { segmentBytes: 500 });
  await appendEach(log, ALL, 200);
  await log.close();
  return disk;
}

function pathOf(base: number): string {
  return `${META}/${segmentName(base)}`;
}

function flip(disk: SimulatedDisk, base: number, offset: number): void {
  const bytes = disk.bytesOf(pathOf(base));
  bytes[offset]! ^= 0x10;
  disk.setBytes(pathOf(base), bytes);
}

/** Within the first record after the opening state. */
function firstRecord(disk: SimulatedDisk, base: number): number {
  let found = 0;
  const bytes = disk.bytesOf(pathOf(base)).subarray(64);
  forEachRecord({ bytes, segmentBase: base, offset: 64 }, ({ sequence }, { offset }) => {
    if (sequence === base && found === 0) found = offset;
  });
  return found + 50;
}

/** Three segments, the sealed ones with hint files of all their records. */
async function hintedSegments(): Promise<SimulatedDisk> {
  const disk = await threeSegments();
  for (const base of [1, 3]) setHint(disk, base, hintOf(disk, base));
  return disk;
}

function setHint(disk: SimulatedDisk, base: number, bytes: Uint8Array): void {
  disk.setBytes(`${META}/${hintName(base)}`, bytes);
}

function hintOf(disk: SimulatedDisk, base: number, lastSequence = base + 1): Uint8Array {
  const bytes = disk.bytesOf(pathOf(base));
  const entries: HintEntry[] = [];
  forEachRecord({ bytes: bytes.subarray(64), segmentBase: base, offset: 64 }, (record, { offset, length }) => {
    const { type, sequence, timeUs, index, body } = record;
    if (type !== 2) entries.push({ type, sequence, timeUs, offset, length, index, body });
  });
  const salt = decodeSegmentHeader(bytes).header?.salt as number;
  return encodeHint({ base, salt, lastSequence, segmentBytes: bytes.length, segmentCrc: 0 }, entries);
}

t.test("hint files that are right: sealed segments are not read", async (t) => {
  const disk = await hintedSegments();
  // Nothing but their headers is looked at.
  for (const base of [1, 3]) flip(disk, base, firstRecord(disk, base));
  const { hints } = await recovers(t, disk, { cases: [], names: ALL });
  t.equal(hints, 2);
});

t.test("hint files that are missing, damaged, or of another segment: the segments are read", async (t) => {
  const missing = await hintedSegments();
  missing.removeFile(`${META}/${hintName(1)}`);
  t.equal((await recovers(t, missing, { cases: ["hint_missing"], names: ALL })).hints, 1);

  const damaged = await hintedSegments();
  const bytes = damaged.bytesOf(`${META}/${hintName(3)}`).slice();
  bytes[70]! ^= 4;
  setHint(damaged, 3, bytes);
  const report = await recovers(t, damaged, { cases: ["hint_damaged"], names: ALL, corruption: 1 });
  const kept = report.findings[0]?.quarantineFile;
  t.match(report.findings, listOf({ code: "hint_damaged", segment: hintName(3), offset: 0, quarantineFile: kept }));
  t.same(damaged.bytesOf(`${QUARANTINE}/${kept}`), bytes);

  const other = await hintedSegments();
  setHint(other, 1, hintOf(other, 3));
  await recovers(t, other, { cases: ["hint_unusable"], names: ALL });
  const ofAnotherStore = await hintedSegments();
  setHint(ofAnotherStore, 1, hintOf(await threeSegments(), 1));
  await recovers(t, ofAnotherStore, { cases: ["hint_unusable"], names: ALL });
});

t.test("a hint file of a segment that went on, or that no sealed segment has", async (t) => {
  const stale = await hintedSegments();
  setHint(stale, 3, hintOf(stale, 3, 3));
  await recovers(t, stale, { cases: ["hint_unusable"], names: ALL });
  const shorter = await hintedSegments();
  shorter.setBytes(pathOf(3), Buffer.concat([shorter.bytesOf(pathOf(3)), new Uint8Array(8)]));
  const { findings } = await recovers(t, shorter, { cases: ["hint_unusable", "superseded"], names: ALL });
  t.match(findings, listOf({ code: "superseded" }, { code: "hint_unusable" }));

  const stray = await hintedSegments();
  setHint(stray, 5, hintOf(stray, 5));
  const { log } = await openLog(stray, { usesHints: true });
  t.match(log.recovery.findings, listOf({ code: "hint_unusable", segment: hintName(5) }));
  t.notOk(stray.has(`${META}/${hintName(5)}`), "it is removed");
  await log.close();
});

t.test("a damaged header of a segment counts, whatever its hint file says", async (t) => {
  const one = await hintedSegments();
  flip(one, 1, 3);
  const expected: Expectation = { cases: ["header_copy_damaged"], names: ALL, corruption: 1 };
  t.equal((await recovers(t, one, expected)).hints, 1);
  const both = await hintedSegments();
  flip(both, 1, 3);
  flip(both, 1, 35);
  await recovers(t, both, { cases: ["segment_unreadable"], names: ["c", "d", "e"], lost: 2, corruption: 1 });
});

t.test("a damaged segment without a hint file gets none", async (t) => {
  const disk = await hintedSegments();
  disk.removeFile(`${META}/${hintName(1)}`);
  flip(disk, 1, firstRecord(disk, 1));
  const { log } = await openLog(disk.copy(), { usesHints: true });
  t.same(log.recovery.unhinted, []);
  const expected: Expectation = { cases: ["damage_proven"], names: ["b", "c", "d", "e"], lost: 1, corruption: 1 };
  await recovers(t, disk, expected);
});
