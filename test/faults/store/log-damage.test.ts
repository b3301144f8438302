import t from "tap";
import { segmentName } from "../../../storage/log/segment.js";
import { appendAll, appendEach, createDisk, META, openLog, until } from "../../helpers/store/log-harness.js";
import { sized } from "../../helpers/test-size.js";

const PATH = `${META}/${segmentName(1)}`;

t.test("a log that ends at any byte of its last groups gives a prefix of whole records", async (t) => {
  const disk = await createDisk();
  const { log, seen } = await openLog(disk);
  await appendEach(log, ["a", "b"]);
  await appendAll(log, ["c", "d", "e"], 100);
  await appendAll(log, ["f"], 3);
  const whole = disk.bytesOf(PATH);
  const start = endOf(seen, 1);
  let cuts = 0;
  let wrong = 0;
  for (let size = start; size <= whole.length; size++) {
    const cut = disk.copy();
    cut.setBytes(PATH, whole.slice(0, size));
    const reopened = await openLog(cut);
    const expected = seen.filter(({ location }) => location.offset + location.length <= size).map(({ name }) => name);
    const { recovery } = reopened.log;
    const isRight =
      reopened.names.join() === expected.join() &&
      recovery.corruptionCount === 0 &&
      recovery.cutBytes === size - endOf(seen, expected.length);
    if (!isRight) wrong++;
    // Records that are appended then stand behind the prefix, and stay.
    await appendEach(reopened.log, ["next"]);
    const again = await openLog(cut.kill());
    if (again.names.join() !== [...expected, "next"].join() || again.log.recovery.corruptionCount > 0) wrong++;
    cuts++;
  }
  t.equal(wrong, 0);
  t.comment(`${cuts} cuts of a log of ${seen.length} records: ${wrong} wrong`);
});

function endOf(seen: { location: { offset: number; length: number } }[], count: number): number {
  const { offset, length } = seen[count - 1]!.location;
  return offset + length;
}

t.test("no flipped bit goes undetected, and before the durable mark it costs at most one record", async (t) => {
  const disk = await createDisk();
  const { log, seen } = await openLog(disk);
  await appendEach(log, ["a", "bb", "ccc"], 5);
  await appendAll(log, ["d", "ee", "fff", "gggg"], 64);
  await appendEach(log, ["h", "i"], 200);
  await log.close();
  const whole = disk.bytesOf(PATH);
  const original = new Map(seen.map((record) => [record.sequence, record]));
  // Nothing proves the mark itself, but it carries nothing either.
  const marked = endOf(seen, seen.length);
  let flips = 0;
  let undetected = 0;
  let wrongBytes = 0;
  let mostLost = 0;
  let unreported = 0;
  for (let bit = 0; bit < whole.length * 8; bit += sized(7, 1)) {
    const damaged = disk.copy();
    const bytes = whole.slice();
    bytes[bit >> 3]! ^= 1 << (bit & 7);
    damaged.setBytes(PATH, bytes);
    const reopened = await openLog(damaged);
    const { recovery } = reopened.log;
    flips++;
    if (recovery.findingCount === 0) undetected++;
    const lost = seen.length - reopened.seen.length;
    mostLost = Math.max(mostLost, lost);
    if (bit >> 3 < marked && (recovery.corruptionCount === 0 || recovery.lostRecords !== lost)) unreported++;
    for (const record of reopened.seen) {
      const before = original.get(record.sequence);
      if (before?.name !== record.name || Buffer.compare(before.body, record.body) !== 0) wrongBytes++;
    }
  }
  t.match({ undetected, wrongBytes, unreported }, { undetected: 0, wrongBytes: 0, unreported: 0 });
  t.equal(mostLost, 1);
  t.comment(`${flips} flipped bits: ${undetected} undetected, ${wrongBytes} wrong, at most ${mostLost} record lost`);
});

t.test("damage to the last group is a torn tail until an idle mark proves it, then it is corruption", async (t) => {
  for (const hasMark of [false, true]) {
    const disk = await createDisk();
    const { log, seen, timers } = await openLog(disk);
    await appendEach(log, ["a", "b", "c"]);
    if (hasMark) {
      const marked = (): boolean => {
        timers.fire();
        return log.nextSequence === 5;
      };
      await until(marked, "a mark is appended");
      await log.whenCommitted(4);
      timers.fire();
      t.equal(log.nextSequence, 5, "and no further one");
    }
    const damaged = disk.kill();
    const bytes = damaged.bytesOf(PATH);
    bytes[seen[2]!.location.offset + 50]! ^= 1;
    damaged.setBytes(PATH, bytes);
    const { recovery } = (await openLog(damaged)).log;
    t.same(
      recovery.findings.map(({ code }) => code),
      [hasMark ? "record_damaged" : "tail_cut"],
    );
    t.equal(recovery.lostRecords, hasMark ? 1 : 0);
  }
});
