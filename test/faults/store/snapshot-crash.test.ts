import t, { type Test } from "tap";
import { createRandom } from "../../../core/random.js";
import type { MemorySnapshot } from "../../../storage/snapshot/memory-snapshot.js";
import { snapshotName } from "../../../storage/snapshot/snapshot-format.js";
import { makeSnapshot } from "../../../workers/snapshot/make-snapshot.js";
import type { DiskFault, DiskOperation, SimulatedDisk } from "../../helpers/disk/simulated-disk.js";
import { CellHistory } from "../../helpers/link/cell-history.js";
import { sectionDifferences } from "../../helpers/snapshot/section-differences.js";
import { createHistoryDisk, HistoryStore, SNAPSHOTS } from "../../helpers/store/history-store.js";
import { META, QUARANTINE } from "../../helpers/store/log-harness.js";
import { longOnly } from "../../helpers/test-size.js";

const SEED = Number(process.env.TEST_SEED ?? 20_263);
const MODES = ["drop", "keep", "tear"] as const;

interface Prepared {
  disk: SimulatedDisk;
  /** Of the snapshot that is there. */
  first: number;
  /** Of the one that is to be made. */
  second: number;
  /** What the log adds up to. */
  columns: MemorySnapshot;
}

/** A closed store with a snapshot, and records behind it. */
async function prepare(seed: number): Promise<Prepared> {
  const disk = await createHistoryDisk();
  const history = new CellHistory(createRandom(seed));
  const store = await HistoryStore.open(disk);
  await store.append(history, 120);
  const { sequence: first } = await store.makeSnapshot();
  await store.append(history, 60);
  const second = store.log.durableSequence;
  await store.append(history, 30);
  await store.log.close();
  return { disk, first, second, columns: await store.columns() };
}

function make(disk: SimulatedDisk, throughSequence: number) {
  return makeSnapshot(disk, { metaPath: META, snapshotPath: SNAPSHOTS, quarantinePath: QUARANTINE, throughSequence });
}

/** That the store opens with what its log holds, from the first or the second snapshot or none; gives which. */
async function assertOpens(t: Test, disk: SimulatedDisk, prepared: Prepared, what: string): Promise<number | null> {
  const store = await HistoryStore.open(disk);
  t.same(sectionDifferences(await store.columns(), prepared.columns), [], what);
  t.same(store.warnings, [], `${what}: nothing is wrong with what stands under a snapshot's name`);
  t.equal(store.log.recovery.corruptionCount, 0, what);
  await store.log.close();
  t.notOk(
    disk.paths().some((path) => path.startsWith(SNAPSHOTS) && path.endsWith(".tmp")),
    what,
  );
  return store.snapshot?.start.sequence ?? null;
}

/** The operations of making the second snapshot on an intact disk. */
async function operationsOf({ disk, second }: Prepared): Promise<DiskOperation[]> {
  const operations: DiskOperation[] = [];
  const copy = disk.copy();
  copy.onOperation = (operation) => {
    operations.push({ ...operation, number: operations.length });
    return undefined;
  };
  await make(copy, second);
  return operations;
}

/** The disk with a fault at the nth operation from now on. */
function faulty(disk: SimulatedDisk, nth: number, fault: DiskFault): SimulatedDisk {
  const copy = disk.copy();
  let operations = 0;
  copy.onOperation = () => (operations++ === nth ? fault : undefined);
  return copy;
}

t.test(`a crash at any operation of making one leaves a store that opens, TEST_SEED=${SEED}`, async (t) => {
  const prepared = await prepare(SEED);
  const random = createRandom(SEED);
  const operations = await operationsOf(prepared);
  t.same(
    [...new Set(operations.map(({ kind }) => kind))],
    ["create", "truncate", "write", "datasync", "rename", "syncDirectory", "unlink"],
  );
  let crashes = 0;
  const from = new Map<number | null, number>();
  for (const { kind, number } of operations) {
    const faults: DiskFault[] = [{ dies: true }];
    if (kind === "write") faults.push({ dies: true, short: 0 }, { dies: true, short: 100 });
    for (const fault of faults) {
      for (const mode of MODES) {
        const disk = faulty(prepared.disk, number, fault);
        await t.rejects(make(disk, prepared.second));
        const after = disk.crash(mode, random);
        const what = `${kind} ${number}, ${JSON.stringify(fault)}, ${mode}`;
        const sequence = await assertOpens(t, after, prepared, what);
        t.ok(sequence === prepared.first || sequence === prepared.second, `${what}: one of the two is there`);
        from.set(sequence, (from.get(sequence) ?? 0) + 1);
        crashes++;
      }
    }
  }
  const late = await prepared.disk.copy();
  await make(late, prepared.second);
  t.equal(await assertOpens(t, late.crash("drop", random), prepared, "after it"), prepared.second, "made is durable");
  t.comment(`${crashes} crashes at ${operations.length} operations, opened from ${JSON.stringify([...from])}`);
});

t.test(
  "a disk that is full, refuses or fails a sync at any operation: the last one stays, and the next attempt goes",
  longOnly,
  async (t) => {
    const prepared = await prepare(SEED + 1);
    const operations = await operationsOf(prepared);
    const snapshots = (disk: SimulatedDisk) => disk.paths().filter((path) => path.startsWith(SNAPSHOTS));
    let faults = 0;
    for (const { kind, number } of operations) {
      for (const error of ["ENOSPC", "EIO"]) {
        const disk = faulty(prepared.disk, number, { error });
        await t.rejects(make(disk, prepared.second), { code: error }, `${kind} ${number} ${error}`);
        const left = snapshots(disk);
        const isNamed = left.includes(`${SNAPSHOTS}/${snapshotName(prepared.second)}`);
        // Behind the rename the new one is whole; before it the old one is alone.
        if (!isNamed) t.same(left, [`${SNAPSHOTS}/${snapshotName(prepared.first)}`], `${kind} ${number} ${error}`);
        disk.onOperation = () => undefined;
        await assertOpens(t, disk.copy(), prepared, `${kind} ${number} ${error}`);
        if (!isNamed) {
          t.match(await make(disk, prepared.second), { fromSequence: prepared.first });
          t.equal(await assertOpens(t, disk, prepared, "the next attempt"), prepared.second);
        }
        faults++;
      }
    }
    t.comment(`${faults} faults at ${operations.length} operations`);
  },
);

t.test("a disk with room for a part of it only", async (t) => {
  const prepared = await prepare(SEED + 2);
  const whole = prepared.disk.copy();
  const { bytes } = await make(whole, prepared.second);
  let refused = 0;
  for (let room = 0; room < bytes; room += Math.ceil(bytes / 40)) {
    const disk = prepared.disk.copy();
    disk.limitBytes = disk.usedBytes + room;
    await t.rejects(make(disk, prepared.second), { code: "ENOSPC" });
    t.equal(disk.usedBytes, prepared.disk.usedBytes, "it gives back what it took");
    disk.limitBytes = Number.POSITIVE_INFINITY;
    t.equal(await assertOpens(t, disk, prepared, `${room} bytes`), prepared.first);
    refused++;
  }
  t.comment(`${refused} sizes of room, a snapshot of ${bytes} bytes`);
});

t.test(
  "a crash while records behind a snapshot are not proven: they stay where the snapshot knows them",
  longOnly,
  async (t) => {
    const random = createRandom(SEED + 3);
    let tails = 0;
    for (let round = 0; round < 30; round++) {
      const disk = await createHistoryDisk();
      const history = new CellHistory(createRandom(SEED * 100 + round));
      const store = await HistoryStore.open(disk);
      await store.append(history, random.integer(5, 60));
      // The snapshot's last record is durable, and no record on the disk says so yet.
      const { sequence } = await store.makeSnapshot();
      await store.append(history, random.integer(0, 3));
      const after = disk.crash(random.pick([...MODES]), random);
      const opened = await HistoryStore.open(after);
      t.equal(opened.snapshot?.start.sequence, sequence);
      if (opened.log.recovery.newSegmentBase !== null) {
        t.ok(opened.log.recovery.newSegmentBase > sequence);
        tails++;
      }
      await opened.append(history, 10);
      await opened.log.close();
      const again = await HistoryStore.open(after.copy());
      t.equal(again.snapshot?.start.sequence, sequence, "and it is still of this log");
      const plain = after.copy();
      plain.removeFile(`${SNAPSHOTS}/${snapshotName(sequence)}`);
      const fromLog = await HistoryStore.open(plain);
      t.same(sectionDifferences(await again.columns(), await fromLog.columns()), []);
      t.equal(fromLog.log.recovery.corruptionCount, 0);
      await again.log.close();
      await fromLog.log.close();
    }
    t.comment(`30 crashes, ${tails} with a tail that moved into a new segment`);
    t.ok(tails > 5);
  },
);
