import t, { type Test } from "tap";
import { createRandom } from "../../../core/random.js";
import { FileSystemError } from "../../../storage/disk/file-system-error.js";
import { segmentName } from "../../../storage/log/segment.js";
import { quarantinedFiles } from "../../../storage/recovery/quarantine.js";
import { SNAPSHOT_SECTIONS, snapshotName } from "../../../storage/snapshot/snapshot-format.js";
import { SnapshotReader } from "../../../storage/snapshot/snapshot-reader.js";
import type { StorageError } from "../../../storage/storage-error.js";
import { makeSnapshot, type SnapshotRequest } from "../../../workers/snapshot/make-snapshot.js";
import { type PowerCut, powerCuts, powerCutsWithin } from "../../helpers/disk/power-cuts.js";
import { SimulatedDisk } from "../../helpers/disk/simulated-disk.js";
import { CellHistory } from "../../helpers/link/cell-history.js";
import { listOf } from "../../helpers/list-of.js";
import { sectionDifferences } from "../../helpers/snapshot/section-differences.js";
import { createHistoryDisk, HistoryStore, SNAPSHOTS } from "../../helpers/store/history-store.js";
import { META, QUARANTINE } from "../../helpers/store/log-harness.js";
import { checkDisk } from "../../helpers/store/store-damage.js";
import { differences } from "../../helpers/store/view-comparison.js";
import { longOnly, sized } from "../../helpers/test-size.js";

const SEED = Number(process.env.TEST_SEED ?? 20_261);

/** The disk without its snapshots. */
function withoutSnapshots(disk: SimulatedDisk): SimulatedDisk {
  const copy = disk.copy();
  for (const path of copy.paths()) if (path.startsWith(SNAPSHOTS)) copy.removeFile(path);
  return copy;
}

/** Opens the store as it is on the disk, on a copy of it. */
async function opened(disk: SimulatedDisk): Promise<HistoryStore> {
  const store = await HistoryStore.open(disk.copy());
  await store.log.close();
  return store;
}

/** That a store opened from this disk is what the log alone says, by columns; gives it. */
async function assertAsFromLog(t: Test, disk: SimulatedDisk, what: string): Promise<HistoryStore> {
  const store = await opened(disk);
  const plain = await opened(withoutSnapshots(disk));
  t.equal(plain.snapshot, null);
  t.same(sectionDifferences(await store.columns(), await plain.columns()), [], what);
  t.equal(store.log.nextSequence, plain.log.nextSequence, what);
  t.equal(store.log.lastTimeUs, plain.log.lastTimeUs, what);
  return store;
}

/** A closed store with a snapshot amid its records: disk, history and the snapshot's sequence number. */
async function storeWithSnapshot(seed: number, before = 150, after = 100) {
  const disk = await createHistoryDisk();
  const history = new CellHistory(createRandom(seed));
  const store = await HistoryStore.open(disk);
  await store.append(history, before);
  const { sequence } = await store.makeSnapshot();
  await store.append(history, after);
  await store.log.close();
  return { disk, history, sequence, path: `${SNAPSHOTS}/${snapshotName(sequence)}` };
}

function requestThrough(throughSequence: number): SnapshotRequest {
  return { metaPath: META, snapshotPath: SNAPSHOTS, quarantinePath: QUARANTINE, throughSequence };
}

function flipAt(disk: SimulatedDisk, path: string, at: number): void {
  const bytes = disk.bytesOf(path);
  bytes[at]! ^= 0x10;
  disk.setBytes(path, bytes);
}

/** All but so many of the first ones. */
function removeSegmentsBehind(disk: SimulatedDisk, keeps: number): void {
  const segments = disk.paths().filter((name) => name.startsWith(META));
  for (const name of segments.slice(keeps)) disk.removeFile(name);
}

t.test(`a snapshot anywhere and the log behind it are the whole log, TEST_SEED=${SEED}`, async (t) => {
  const random = createRandom(SEED);
  let snapshots = 0;
  let records = 0;
  let runs = 0;
  for (let round = 0; round < sized(3, 60); round++) {
    const disk = await createHistoryDisk();
    const history = new CellHistory(createRandom(SEED * 1_000 + round));
    // Each snapshot but the first is made of the one before, over several openings.
    for (let opening = 0; opening < 4; opening++) {
      const store = await HistoryStore.open(disk);
      t.equal(store.snapshot !== null, opening > 0);
      t.same(store.warnings, []);
      await store.append(history, random.integer(1, 250));
      const last = store.log.durableSequence;
      const through = random.chance(0.5) ? last : random.integer(store.log.recovery.lastSequence + 1, last);
      const made = await store.makeSnapshot(through);
      t.match(made, { sequence: through, fromSequence: store.snapshot?.start.sequence ?? null });
      snapshots++;
      if (random.chance(0.5)) await store.append(history, random.integer(1, 120));
      records = store.log.nextSequence - 1;
      await store.log.close();
      const again = await assertAsFromLog(
        t,
        disk,
        `round ${round}, opening ${opening}, snapshot ${through} of ${records}`,
      );
      t.equal(again.snapshot?.start.sequence, through);
      t.equal(again.log.recovery.snapshotSequence, through);
      const { records: read, segments } = again.log.recovery;
      t.ok(read <= records - through + segments + 1, "and no more of the log is read");
      again.view.finishOpening();
      t.same(await differences(again.view, history, random, 60), [], "it answers as a plain model does");
      t.same(again.state.finishReplay(), []);
    }
    runs += history.runs.size;
  }
  t.comment(`${snapshots} snapshots in stores of some ${records} records, ${runs} runs`);
});

t.test("nothing is new: the last one has it all, and stays as it is", async (t) => {
  const { disk, path, sequence } = await storeWithSnapshot(1, 50, 0);
  const store = await HistoryStore.open(disk);
  const { operations } = disk;
  const made = await store.makeSnapshot(sequence);
  t.match(made, { sequence, fromSequence: sequence, runs: store.view.runCount, bytes: disk.bytesOf(path).length });
  t.equal(disk.operations, operations, "nothing is written");
  await store.log.close();
});

t.test("damage in any section: found, and the same comes out of the log", async (t) => {
  const { disk, path } = await storeWithSnapshot(2);
  const reader = await SnapshotReader.open(disk, path);
  const places = reader.head.sections;
  const names = Object.keys(SNAPSHOT_SECTIONS);
  const bytes = disk.bytesOf(path);
  const damages: [string, number][] = [
    ["the fixed part of the head", 20],
    ["the segments", 70],
    ["the table of sections", 130],
    ...places
      .filter(({ length }) => length > 0)
      .map(({ offset, length }, nth): [string, number] => {
        return [`section ${names[nth]}`, offset + (length >> 1)];
      }),
  ];
  const plain = await (await opened(withoutSnapshots(disk))).columns();
  for (const [what, at] of damages) {
    const copy = disk.copy();
    const flipped = bytes.slice();
    flipped[at]! ^= 0x10;
    copy.setBytes(path, flipped);
    const store = await HistoryStore.open(copy);
    t.equal(store.snapshot, null, what);
    t.match(store.warnings, listOf({ snapshot: path.slice(SNAPSHOTS.length + 1), cause: /CRC/ }), what);
    t.notOk(copy.paths().includes(path));
    const kept = `/data/quarantine/${path.slice(SNAPSHOTS.length + 1)}`;
    t.same(copy.bytesOf(kept), flipped, "it is kept as it was found");
    t.same(sectionDifferences(await store.columns(), plain), [], what);
    await store.log.close();
  }
  t.comment(`${damages.length} places, ${places.length} sections`);
});

t.test("a snapshot put in quarantine is there behind any power cut, told, and not taken", longOnly, async (t) => {
  const random = createRandom(8);
  let count = 0;
  for (const [what, hasLost, damage] of [
    ["it is damaged", false, (disk, path) => flipAt(disk, path, disk.bytesOf(path).length >> 1)],
    ["the log is gone", true, (disk) => removeSegmentsBehind(disk, 0)],
    ["the log's end is gone", true, (disk) => removeSegmentsBehind(disk, 1)],
  ] as [string, boolean, (disk: SimulatedDisk, path: string) => void][]) {
    const { disk, history, path, sequence } = await storeWithSnapshot(8);
    damage(disk, path);
    const bytes = disk.bytesOf(path);
    const name = path.slice(SNAPSHOTS.length + 1);
    const kept = `${QUARANTINE}/${name}`;
    const { result: store, cuts: within } = await powerCutsWithin(disk, random, () => HistoryStore.open(disk));
    t.match(store.warnings, listOf({ snapshot: name, message: /is kept in quarantine$/ }), what);
    const next = store.log.nextSequence;
    t.ok(next > sequence, what);
    const behind = powerCuts(disk, random);
    await store.append(history, 3);
    const later = powerCuts(disk, random);
    await store.log.close();
    for (const cut of [...behind, ...later])
      t.ok(cut.disk.has(kept), `${what}, ${cut.what}: it was durable with the opening`);

    const judge = async ({ what: cut, disk: after }: PowerCut, leastNext: number): Promise<void> => {
      const said = `${what}, ${cut}`;
      const again = await HistoryStore.open(after);
      await again.log.close();
      t.equal(again.snapshot, null, said);
      const plain = await opened(withoutSnapshots(after));
      t.same(sectionDifferences(await again.columns(), await plain.columns()), [], said);
      t.ok(again.log.nextSequence >= leastNext, `${said}: no number is used again`);
      const losses = again.log.recovery.findings.filter(({ firstLost }) => firstLost !== null);
      t.equal(losses.length > 0, hasLost, said);
      t.notOk(after.has(path), said);
      t.same(await quarantinedFiles(after, QUARANTINE), [name], `${said}: health tells of it`);
      const { ok, findings } = await checkDisk(after, "/data");
      const told = findings.filter(({ code }) => code === "quarantined");
      t.notOk(ok, said);
      t.match(told, listOf({ file: `quarantine/${name}` }), `${said}: check tells of it`);
      t.same(after.has(kept) && after.bytesOf(kept), bytes, said);
      count++;
    };
    for (const cut of [...within, ...behind]) await judge(cut, next);
    for (const cut of later) await judge(cut, next + 3);
  }
  t.comment(`${count} power cuts`);
});

t.test("a log that it is not of: discarded, and the log counts", async (t) => {
  const { disk, path, sequence } = await storeWithSnapshot(3);
  const segments = disk.paths().filter((name) => name.startsWith(META));
  t.ok(segments.length > 3);
  const expectDiscarded = async (what: string, cause: RegExp, change: (copy: SimulatedDisk) => void) => {
    const copy = disk.copy();
    change(copy);
    const store = await HistoryStore.open(copy);
    t.equal(store.snapshot, null, what);
    t.match(store.warnings, listOf({ cause }), what);
    t.notOk(copy.paths().includes(path), what);
    const plain = await opened(withoutSnapshots(copy));
    t.same(sectionDifferences(await store.columns(), await plain.columns()), [], what);
    await store.log.close();
  };
  const positionSegment = [...segments].reverse().find((name) => Number(name.slice(-20, -4)) <= sequence) as string;

  await expectDiscarded("a log that ends before it", /does not have the record/, (copy) => {
    for (const name of segments) if (name > positionSegment) copy.removeFile(name);
    const bytes = copy.bytesOf(positionSegment);
    const store = new DataView(bytes.buffer);
    // Up to its first record behind the opening state.
    const end = 64 + 48 + store.getUint32(64 + 32, true) + store.getUint32(64 + 36, true);
    copy.setBytes(positionSegment, bytes.subarray(0, Math.ceil(end / 8) * 8));
  });
  await expectDiscarded("a segment that is gone", /is not there/, (copy) => copy.removeFile(segments[1] as string));
  await expectDiscarded("the log's first segment gone", /is not there/, (copy) =>
    copy.removeFile(segments[0] as string),
  );
  await expectDiscarded("a damaged record at its position", /damaged|does not have/, (copy) => {
    const bytes = copy.bytesOf(positionSegment);
    const reader = new DataView(bytes.buffer);
    let at = 64;
    for (;;) {
      if (reader.getUint32(at + 8, true) === sequence && at > 64) break;
      at += Math.ceil((48 + reader.getUint32(at + 32, true) + reader.getUint32(at + 36, true)) / 8) * 8;
    }
    bytes[at + 50]! ^= 1;
    copy.setBytes(positionSegment, bytes);
  });
  const other = await storeWithSnapshot(4);
  await expectDiscarded(
    "another store's log",
    /is not there|is damaged at|ends before|which it does not know|another one than it knows/,
    (copy) => {
      for (const name of segments) copy.removeFile(name);
      for (const name of other.disk.paths()) if (name.startsWith(META)) copy.setBytes(name, other.disk.bytesOf(name));
    },
  );
  await expectDiscarded(
    "one segment of another store",
    /is damaged at|ends before|which it does not know|another one than it knows/,
    (copy) => {
      const first = segments[0] as string;
      copy.setBytes(first, other.disk.bytesOf(first));
    },
  );
  await expectDiscarded("an empty log", /is not there/, (copy) => {
    for (const name of segments) copy.removeFile(name);
  });
  await expectDiscarded("a segment amid those that it knows", /does not know/, (copy) => {
    copy.setBytes(`${META}/${segmentName(2)}`, copy.bytesOf(segments[0] as string));
  });
});

t.test("the front refuses it: both begin from nothing", async (t) => {
  const { disk, path } = await storeWithSnapshot(5);
  const store = await HistoryStore.open(disk, { frontRefuses: true });
  t.match(store.warnings, listOf({ cause: /the front refused it: it does not like it/ }));
  t.notOk(disk.paths().includes(path));
  const plain = await opened(withoutSnapshots(disk));
  t.same(sectionDifferences(await store.columns(), await plain.columns()), []);
  await store.log.close();
});

/** The disk, on which some openings of the file fail, counted from 1, or reads in it. */
function failing(disk: SimulatedDisk, path: string, operation: "open" | "read", code: string, nths?: number[]) {
  const copy = disk.copy();
  let count = 0;
  const isFailing = (of: string): boolean => of === path && (nths?.includes(++count) ?? true);
  if (operation === "read") copy.onRead = (of) => (isFailing(of) ? code : undefined);
  const open = copy.open.bind(copy);
  if (operation === "open") {
    copy.open = (of, mode) =>
      isFailing(of) ? Promise.reject(new FileSystemError(code, operation, of)) : open(of, mode);
  }
  return copy;
}

t.test("a snapshot that the disk does not give is damaged, whatever the disk says of it", async (t) => {
  const { disk, path } = await storeWithSnapshot(9);
  const name = path.slice(SNAPSHOTS.length + 1);
  const plain = await (await opened(withoutSnapshots(disk))).columns();
  for (const operation of ["open", "read"] as const) {
    for (const code of ["EIO", "EUCLEAN", "EBADMSG", "ENODATA"]) {
      const copy = failing(disk, path, operation, code);
      const store = await HistoryStore.open(copy);
      t.equal(store.snapshot, null, `${operation} ${code}`);
      t.match(store.warnings, listOf({ message: /is damaged, .*is kept in quarantine$/, cause: code }));
      t.same([copy.has(path), copy.has(`${QUARANTINE}/${name}`)], [false, true]);
      t.same(sectionDifferences(await store.columns(), plain), []);
      await store.log.close();
    }
  }
});

t.test("a snapshot that cannot be read for the moment stays, and the log is read in its place", async (t) => {
  const { disk, path, sequence } = await storeWithSnapshot(10, 100, 0);
  const name = path.slice(SNAPSHOTS.length + 1);
  const bytes = disk.bytesOf(path);
  const plain = await (await opened(withoutSnapshots(disk))).columns();
  /** Of the file: by the recorder, by the front, by whoever looks what is wrong with it. */
  const openings = { recorder: [1], front: [2], "recorder, and its second look": [1, 3], everybody: undefined };
  for (const code of ["EMFILE", "ENFILE", "ENOMEM", "EACCES"]) {
    for (const [who, nths] of Object.entries(openings)) {
      const copy = failing(disk, path, "open", code, nths);
      const store = await HistoryStore.open(copy);
      t.equal(store.snapshot, null, `${code}: ${who}`);
      t.match(store.warnings, listOf({ message: /could not be read, and stays/, snapshot: name, cause: code }));
      t.same(sectionDifferences(await store.columns(), plain), []);
      t.same(copy.bytesOf(path), bytes);
      // It is the last one still, of which this start knows nothing.
      const { open } = SimulatedDisk.prototype;
      copy.open = open;
      t.match(await store.makeSnapshot(sequence), { sequence, fromSequence: sequence });
      await store.log.close();
      const again = await HistoryStore.open(copy);
      t.equal(again.snapshot?.start.sequence, sequence, "the next start begins from it");
      await again.log.close();
    }
  }
  const segment = disk.paths().find((one) => one.startsWith(META)) as string;
  for (const copy of [failing(disk, path, "read", "ENOMEM"), failing(disk, segment, "read", "EIO", [1])]) {
    const store = await HistoryStore.open(copy);
    t.match(store.warnings, listOf({ message: /could not be read, and stays/ }));
    t.same(copy.bytesOf(path), bytes);
    await store.log.close();
  }
  const lost = failing(disk, path, "open", "EMFILE", [1]);
  removeSegmentsBehind(lost, 1);
  const store = await HistoryStore.open(lost);
  await store.log.close();
  t.same(lost.has(path) || lost.bytesOf(`${QUARANTINE}/${name}`), bytes, "where records are lost it may know them");
});

t.test("what a crash left beside it goes at the next opening", async (t) => {
  const { disk, path, sequence } = await storeWithSnapshot(6);
  disk.setBytes(`${SNAPSHOTS}/${snapshotName(sequence + 5)}.tmp`, new Uint8Array(10));
  disk.setBytes(`${SNAPSHOTS}/${snapshotName(3)}`, new Uint8Array(10));
  const store = await HistoryStore.open(disk);
  t.equal(store.snapshot?.start.sequence, sequence);
  t.same(
    disk.paths().filter((name) => name.startsWith(SNAPSHOTS)),
    [path],
  );
  await store.log.close();
});

t.test("a damaged last snapshot is kept and told, and the new one made of the log alone", async (t) => {
  const { disk, path, sequence } = await storeWithSnapshot(11);
  const name = path.slice(SNAPSHOTS.length + 1);
  const kept = `${QUARANTINE}/${name}`;
  const whole = disk.bytesOf(path);
  const harms: [RegExp, (copy: SimulatedDisk) => SimulatedDisk][] = [
    [
      /does not match its CRC$/,
      (copy) => {
        flipAt(copy, path, whole.length >> 1);
        return copy;
      },
    ],
    [/EUCLEAN$/, (copy) => failing(copy, path, "read", "EUCLEAN")],
  ];
  for (const [cause, harm] of harms) {
    // Once the store is open.
    const before = disk.copy();
    const store = await HistoryStore.open(before);
    const last = store.log.durableSequence;
    await store.log.close();
    const copy = harm(before);
    const damages: StorageError[] = [];
    const made = await makeSnapshot(copy, requestThrough(last), (error) => damages.push(error));
    t.match(made, { sequence: last, fromSequence: null });
    t.match(damages, listOf({ code: "snapshot_damaged", message: new RegExp(`^snapshot ${name}: .*${cause.source}`) }));
    t.ok(copy.has(kept) && !copy.has(path));
    const again = await assertAsFromLog(t, copy, `${cause}`);
    t.equal(again.snapshot?.start.sequence, last);
  }
  for (const code of ["EACCES", "ENOENT", "ELOOP", "ENXIO"]) {
    const made = await makeSnapshot(failing(disk, path, "open", code), requestThrough(sequence), (error) =>
      t.fail(error.message),
    );
    t.match(made, { sequence, fromSequence: null }, `${code}: it is never read, and no reason to have none`);
  }
  const elsewhere = disk.copy();
  flipAt(elsewhere, path, whole.length >> 1);
  elsewhere.rename = (from, to) =>
    from === path
      ? Promise.reject(new FileSystemError("EXDEV", "rename", from))
      : SimulatedDisk.prototype.rename.call(elsewhere, from, to);
  const told: StorageError[] = [];
  t.match(await makeSnapshot(elsewhere, requestThrough(sequence), (error) => told.push(error)), { fromSequence: null });
  t.match(
    told.map(({ message }) => message),
    listOf(/does not match its CRC$/, /could not be kept in quarantine: .*EXDEV/),
  );
  const passing = failing(disk, path, "open", "EMFILE");
  const damages: StorageError[] = [];
  await t.rejects(
    makeSnapshot(passing, requestThrough(sequence + 1), (error) => damages.push(error)),
    {
      code: "EMFILE",
    },
  );
  t.same(damages, [], "what may pass is none");
  t.same(passing.bytesOf(path), whole);
});

t.test("bytes of the log that are damaged, or that the disk does not give, are told", async (t) => {
  const { disk } = await storeWithSnapshot(13);
  const store = await HistoryStore.open(disk);
  const last = store.log.durableSequence;
  await store.log.close();
  const newest = disk.paths().findLast((name) => name.startsWith(META)) as string;
  const name = newest.slice(META.length + 1);
  const told = async (copy: SimulatedDisk) => {
    const damages: StorageError[] = [];
    const { name: error } = await makeSnapshot(copy, requestThrough(last), (one) => damages.push(one)).then(
      () => ({ name: "none" }),
      (failure: Error) => failure,
    );
    return { error, damages };
  };
  const damaged = disk.copy();
  flipAt(damaged, newest, disk.bytesOf(newest).length - 300);
  const message = new RegExp(`^segment ${name}, offset \\d+: `);
  t.match(await told(damaged), { error: "SnapshotError", damages: listOf({ code: "record_damaged", message }) });
  const given = `${newest}: the disk cannot read these bytes (EBADMSG)`;
  t.match(await told(failing(disk, newest, "read", "EBADMSG")), {
    error: "FileSystemError",
    damages: listOf({ code: "record_damaged", message: given }),
  });
  t.match(await told(failing(disk, newest, "read", "ENOMEM")), { error: "FileSystemError", damages: { length: 0 } });
});

t.test("never across damage: none is made, and the last one stays", async (t) => {
  const { disk, path } = await storeWithSnapshot(7);
  const before = await HistoryStore.open(disk);
  const last = before.log.durableSequence;
  await before.log.close();
  const segments = disk.paths().filter((name) => name.startsWith(META));
  const newest = segments.at(-1) as string;
  const intact = disk.bytesOf(newest);
  for (const [what, at] of [
    ["a record", intact.length - 300],
    ["an opening state, behind which no number is missing", 64 + 50],
  ] as const) {
    const bytes = intact.slice();
    bytes[at]! ^= 1;
    disk.setBytes(newest, bytes);
    await t.rejects(before.makeSnapshot(last), { name: "SnapshotError", message: /the log is damaged: segment/ }, what);
  }
  t.same(
    disk.paths().filter((name) => name.startsWith(SNAPSHOTS)),
    [path],
  );
  await t.rejects(before.makeSnapshot(last + 1_000), { name: "SnapshotError" }, "nor beyond the log's end");
});
