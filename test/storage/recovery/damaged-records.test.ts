import t from "tap";
import { createRandom } from "../../../core/random.js";
import { readRecordHeader, recordLength, writeHeaderCrc } from "../../../storage/log/record-format.js";
import { decodeSegmentHeader } from "../../../storage/log/segment.js";
import { listOf } from "../../helpers/list-of.js";
import {
  cutAt,
  fiveRecords,
  flip,
  pathOf,
  place,
  recordsOf,
  recovers,
  rewrite,
  showsItsCases,
  threeSegments,
} from "../../helpers/store/damaged-log.js";
import { appendAll, createDisk, openLog, QUARANTINE } from "../../helpers/store/log-harness.js";

/** The third of five records is damaged. */
const THIRD_LOST: Parameters<typeof recovers>[2] = {
  cases: ["damage_proven", "tail_marks"],
  names: ["a", "b", "d", "e"],
  lost: 1,
  corruption: 1,
};

for (const [what, delta] of [
  ["header", 9],
  ["content", 50],
] as const) {
  t.test(`damage_proven: a record with a damaged ${what} is quarantined, the others stay`, async (t) => {
    const disk = await fiveRecords(true);
    const { offset, length } = place(disk, 1, 3);
    const before = disk.bytesOf(pathOf(1));
    flip(disk, 1, offset + delta);
    const report = await recovers(t, disk, THIRD_LOST);
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
  const report = await recovers(t, disk, THIRD_LOST);
  t.match(report.findings, listOf({ detail: "record 2 follows record 2" }));
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
    await recovers(t, damaged, THIRD_LOST);
  }
});

t.test("damage_proven to the end of the newest segment: a new one begins after what is lost", async (t) => {
  const disk = await fiveRecords(true);
  const { offset } = place(disk, 1, 4);
  const bytes = disk.bytesOf(pathOf(1));
  // Records 4 and 5 are gone, and all that is left of the mark is a header that says they were durable.
  bytes.fill(0xee, offset, place(disk, 1, 6).offset);
  disk.setBytes(pathOf(1), bytes);
  await recovers(t, disk, { cases: ["damage_proven", "tail_marks"], names: ["a", "b", "c"], lost: 2, corruption: 1 });
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
    names: ["a", "b", "c", "d"],
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

t.test("gap_proven: sequence numbers that are nowhere are reported", async (t) => {
  const disk = await fiveRecords(true);
  rewrite(disk, 1, place(disk, 1, 3).offset, { type: 2, sequence: 2 });
  const bytes = disk.bytesOf(pathOf(1));
  const [third, fourth] = [place(disk, 1, 2), place(disk, 1, 4)];
  t.ok(third.offset < fourth.offset);
  // Records 4 and on move to where 3 stood, with the CRCs for that place: as if 3 had never been written.
  const { salt } = decodeSegmentHeader(bytes).header!;
  const removed = recordsOf(disk, 1).find((record) => record.offset > third.offset && record.offset < fourth.offset)!;
  const moved = bytes.slice();
  moved.copyWithin(removed.offset, fourth.offset);
  const closed = moved.slice(0, bytes.length - (fourth.offset - removed.offset));
  const view = new DataView(closed.buffer);
  for (let at = removed.offset; at < closed.length; ) {
    const header = readRecordHeader(view, at);
    writeHeaderCrc(closed, view, at, salt, at);
    at += recordLength(header.indexLength, header.bodyLength);
  }
  disk.setBytes(pathOf(1), closed);
  const report = await recovers(t, disk, {
    cases: ["gap_proven", "tail_marks"],
    names: ["a", "b", "d", "e"],
    lost: 1,
    corruption: 1,
  });
  t.match(report.findings, listOf({ code: "sequences_missing", firstLost: 3, lastLost: 3, lengthBytes: 0 }));
});

t.test("gap_proven: a missing segment, at the start and in the middle, and one that ends early", async (t) => {
  const disk = await threeSegments();
  const middle = disk.copy();
  middle.removeFile(pathOf(3));
  await recovers(t, middle, { cases: ["gap_proven", "tail_marks"], names: ["a", "b", "e"], lost: 2, corruption: 1 });
  const start = disk.copy();
  start.removeFile(pathOf(1));
  const report = await recovers(t, start, {
    cases: ["gap_proven", "tail_marks"],
    names: ["c", "d", "e"],
    lost: 2,
    corruption: 1,
  });
  t.match(report.findings, listOf({ firstLost: 1, lastLost: 2, detail: "the log starts at 3 instead of 1" }));
  const early = disk.copy();
  cutAt(early, 3, place(early, 3, 4).offset);
  await recovers(t, early, {
    cases: ["gap_proven", "tail_marks"],
    names: ["a", "b", "c", "e"],
    lost: 1,
    corruption: 1,
  });
});

t.test("gap_unproven: a gap in what is not proven ends the log", async (t) => {
  const disk = await createDisk();
  const { log } = await openLog(disk);
  await appendAll(log, ["a", "b"]);
  await appendAll(log, ["c", "d"]);
  const damaged = disk.kill();
  rewrite(damaged, 1, place(damaged, 1, 4).offset, { sequence: 5 });
  await recovers(t, damaged, { cases: ["gap_unproven", "tail_records"], names: ["a", "b", "c"] });
});

t.test("every case of this file was shown", async (t) => showsItsCases(t, "damaged-records"));
