import t from "tap";
import { segmentName } from "../../../storage/log/segment.js";
import type { RecoveryCase } from "../../../storage/recovery/recovery-cases.js";
import type { SimulatedDisk } from "../../helpers/disk/simulated-disk.js";
import { listOf } from "../../helpers/list-of.js";
import {
  covered,
  cut,
  fiveRecords,
  flip,
  pathOf,
  place,
  recovers,
  showsItsCases,
  threeSegments,
} from "../../helpers/store/damaged-log.js";
import { appendEach, createDisk, openLog, QUARANTINE } from "../../helpers/store/log-harness.js";

t.test("segment_unreadable: an older one without a header is corruption, its sequence numbers are lost", async (t) => {
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

t.test("segment_unreadable: the newest one stays where it is; no sequence number of it is used again", async (t) => {
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
    t.ok(number >= base + 2 ** 25, `goes on at ${number}: as many sequence numbers may have been used`);
    await first.log.close();
    const again = await openLog(disk.kill());
    t.same(again.names, [...names, "later"]);
    t.match(
      again.log.recovery,
      { corruptionCount: 1, lostRecords: 0, isLostCountExact: false, findings: listOf(found) },
      "later starts do not count the sequence numbers that were skipped",
    );
    t.equal(again.log.nextSequence, number + 2, "after the mark");
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

t.test("opening_state_damaged: the records after it stay", async (t) => {
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

t.test("opening_state_damaged: with nothing after it all may be lost; no sequence number is used again", async (t) => {
  for (const [what, damage] of [
    ["nothing ever was after it", (disk) => flip(disk, 1, 70)],
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
    // If a segment has no header or opening state, records that the evidence does not name may be lost too.
    const { segment_unreadable, opening_state_damaged } = first.log.recovery.decisions;
    const isUnreadable = segment_unreadable === 1 || opening_state_damaged === 1;
    if (isUnreadable) t.ok(first.log.nextSequence > 2 ** 25, "no sequence number is used again");
    else t.equal(first.log.nextSequence, 10, "no sequence number is used again");
    await appendEach(first.log, ["new"]);
    const again = await openLog(disk.kill());
    t.same(again.names, [...names, "new"]);
    const { lostRecords, isLostCountExact } = again.log.recovery;
    const later = isUnreadable ? [0, false] : [9 - firstLost + 1, true];
    t.same([lostRecords, isLostCountExact], later, "the gap tells the same loss from then on");
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

t.test("every case of this file was shown", async (t) => showsItsCases(t, "unreadable-segments"));
