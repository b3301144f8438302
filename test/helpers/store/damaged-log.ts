import t from "tap";
import { forEachRecord } from "../../../storage/log/committed-batch.js";
import { readRecordHeader, writeRecordHeader } from "../../../storage/log/record-format.js";
import { decodeSegmentHeader, segmentName } from "../../../storage/log/segment.js";
import type { RecoveryCase } from "../../../storage/recovery/recovery-cases.js";
import type { RecoveryReport } from "../../../storage/recovery/recovery-report.js";
import type { SimulatedDisk } from "../disk/simulated-disk.js";
import { appendEach, createDisk, META, openLog } from "./log-harness.js";

/** What the tests of this process have shown. */
export const covered = new Set<RecoveryCase>();

interface Expectation {
  cases: RecoveryCase[];
  /** Names of the records that must be there, in order. */
  names: string[];
  lost?: number;
  corruption?: number;
}

/** Opens the damaged disk twice: the cases apply, and the second recovery gives the same records and loses nothing more. */
export async function recovers(t: Tap, disk: SimulatedDisk, expected: Expectation): Promise<RecoveryReport> {
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
/** What these helpers need of a test. */
export type Tap = Pick<typeof t, "same" | "equal" | "ok" | "match">;

/** Records a to e, one group each; closed (proven by a mark) or just stopped (e is not proven). */
export async function fiveRecords(closes: boolean): Promise<SimulatedDisk> {
  const disk = await createDisk();
  const { log } = await openLog(disk);
  await appendEach(log, ["a", "b", "c", "d", "e"]);
  if (!closes) return disk.kill();
  await log.close();
  return disk;
}

/** Segments 1 (a, b), 3 (c, d), 5 (e), and a mark; just stopped, without the mark. */
export async function threeSegments(closes = true): Promise<SimulatedDisk> {
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

export function cut(disk: SimulatedDisk, base: number, sizeBytes: number): void {
  disk.setBytes(pathOf(base), disk.bytesOf(pathOf(base)).slice(0, sizeBytes));
}

export function pathOf(base: number): string {
  return `${META}/${segmentName(base)}`;
}

/** Offset and length of every record of a segment. */
export function recordsOf(
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

export function flip(disk: SimulatedDisk, base: number, offset: number): void {
  const bytes = disk.bytesOf(pathOf(base));
  bytes[offset]! ^= 0x10;
  disk.setBytes(pathOf(base), bytes);
}

export function cutAt(disk: SimulatedDisk, base: number, offset: number): void {
  disk.setBytes(pathOf(base), disk.bytesOf(pathOf(base)).slice(0, offset));
}

export function place(disk: SimulatedDisk, base: number, sequence: number): { offset: number; length: number } {
  const found = recordsOf(disk, base).find((record) => record.sequence === sequence && record.type !== 1);
  if (found === undefined) throw new Error(`no record ${sequence} in segment ${base}`);
  return found;
}

/** Rewrites the record at an offset with changed header fields and right CRCs, as if the log had written it so. */
export function rewrite(disk: SimulatedDisk, base: number, offset: number, change: object): void {
  const bytes = disk.bytesOf(pathOf(base));
  const view = new DataView(bytes.buffer);
  const { salt } = decodeSegmentHeader(bytes).header!;
  writeRecordHeader(bytes, view, offset, { ...readRecordHeader(view, offset), ...change }, salt, offset);
  disk.setBytes(pathOf(base), bytes);
}
/** Which file of tests in storage/recovery shows each case of the recovery table. */
const FILE_OF_CASE: Readonly<Record<RecoveryCase, string>> = {
  no_segment: "recovery",
  temporary_file: "recovery",
  stray_copy: "recovery",
  superseded: "recovery",
  tail_records: "recovery",
  tail_marks: "recovery",
  segment_unreadable: "unreadable-segments",
  header_copy_damaged: "unreadable-segments",
  opening_state_damaged: "unreadable-segments",
  end_lost: "unreadable-segments",
  damage_proven: "damaged-records",
  damage_unproven: "damaged-records",
  gap_proven: "damaged-records",
  gap_unproven: "damaged-records",
  newest_ends_in_damage: "damaged-records",
  hint_missing: "hint-recovery",
  hint_damaged: "hint-recovery",
  hint_unusable: "hint-recovery",
};

/** Every case of the file was shown by one of its tests. */
export function showsItsCases(t: Tap, file: string): void {
  const own = Object.entries(FILE_OF_CASE).filter(([, one]) => one === file);
  const missing = own.filter(([name]) => !covered.has(name as RecoveryCase));
  t.ok(own.length > 0);
  t.same(missing, [], `all of ${own.length} cases`);
}
