import t, { type Test } from "tap";
import { createRandom } from "../../../../core/random.js";
import type { DiskFault, DiskOperation, SimulatedDisk } from "../../../helpers/disk/simulated-disk.js";
import { CellHistory } from "../../../helpers/link/cell-history.js";
import { listOf } from "../../../helpers/list-of.js";
import { HintedStore, hintPathsOf } from "../../../helpers/store/hinted-store.js";
import { createDisk, until } from "../../../helpers/store/log-harness.js";

const isOfHint = ({ path }: DiskOperation): boolean => path.includes(".hint");

function isSegment(path: string): boolean {
  return path.endsWith(".seg");
}

/** A store of some segments without hint files. */
async function unhintedDisk(): Promise<SimulatedDisk> {
  const disk = await createDisk();
  const store = await HintedStore.open(disk);
  const history = new CellHistory(createRandom(1));
  for (let nth = 0; nth < 200; nth++) await store.append(history.next());
  await store.close();
  return disk;
}

function sealedCount(disk: SimulatedDisk): number {
  return disk.paths().filter(isSegment).length - 1;
}

async function startedOn(disk: SimulatedDisk): Promise<HintedStore> {
  const store = await HintedStore.open(disk);
  store.hints.start();
  return store;
}

const written = (store: HintedStore): number =>
  store.lines.filter(({ message }) => message === "wrote a hint file").length;

t.test(
  "a start makes the hint files that lack, and a rotation that of the segment before; each is durable",
  async (t) => {
    const disk = await unhintedDisk();
    const store = await startedOn(disk);
    await until(() => written(store) === sealedCount(disk), "those that lack");
    const history = new CellHistory(createRandom(2));
    const before = sealedCount(disk);
    while (sealedCount(disk) < before + 2) await store.append(history.next());
    await until(() => written(store) === sealedCount(disk), "those of new segments");
    t.ok(store.spentBytes > 0);
    for (const mode of ["drop", "keep", "tear"] as const) {
      const cut = disk.fork(mode, createRandom(3));
      const { log } = await HintedStore.open(cut);
      t.equal(log.recovery.hints, sealedCount(disk), mode);
      t.same(log.recovery.findings, [], mode);
    }
    await store.close();
  },
);

t.test("a power cut at any moment leaves no hint file that is not whole, and costs nothing", async (t) => {
  const disk = await unhintedDisk();
  for (let at = 0; ; at++) {
    const copy = disk.copy();
    const store = await HintedStore.open(copy);
    let count = 0;
    let hasDied = false;
    copy.onOperation = (): DiskFault | undefined => {
      if (count++ < at) return undefined;
      hasDied = true;
      return { dies: true };
    };
    store.hints.start();
    await until(() => hasDied || written(store) === sealedCount(disk), "the end");
    if (!hasDied) break;
    for (const mode of ["drop", "keep", "tear"] as const) {
      const { log, state } = await HintedStore.open(copy.fork(mode, createRandom(at)));
      t.match(log.recovery, { corruptionCount: 0, lostRecords: 0 }, `${mode} at ${at}`);
      t.notOk(log.recovery.findings.some(({ code }) => code === "hint_unusable"));
      t.equal(state.runCount, store.state.runCount);
    }
  }
});

/** Starts on a disk on which these operations fail. */
async function failing(t: Test, fails: (operation: DiskOperation) => boolean) {
  const disk = await unhintedDisk();
  const store = await HintedStore.open(disk);
  let hasFailed = false;
  disk.onOperation = (operation) => {
    if (!fails(operation)) return undefined;
    hasFailed = true;
    return { error: "EIO" };
  };
  store.hints.start();
  await until(() => hasFailed && store.lines.length >= 1, "a line");
  disk.onOperation = () => undefined;
  t.match(store.lines[0], { level: "warn", message: "a hint file could not be written: the next start makes it" });
  return { disk, store };
}

t.test("a hint file that cannot be written holds up nothing", async (t) => {
  for (const kind of ["create", "write", "datasync", "rename"] as const) {
    const { disk, store } = await failing(t, (operation) => isOfHint(operation) && operation.kind === kind);
    t.equal(store.log.failure, null, kind);
    await store.append(new CellHistory(createRandom(4)).next());
    await store.close();
    t.notOk(
      disk.paths().some((path) => path.endsWith(".tmp")),
      kind,
    );
    const again = await startedOn(disk);
    await until(() => hintPathsOf(disk).length === sealedCount(disk), "the next start");
    await again.close();
  }
});

t.test("a failed sync of the folder's names ends the log, as that of a segment's name does", async (t) => {
  const { store } = await failing(t, ({ kind }) => kind === "syncDirectory");
  t.match(store.log.failure, { code: "log_failed" });
  await store.close().catch(() => {});
});

t.test("a damaged segment gets none, and each start reports its damage", async (t) => {
  const disk = await unhintedDisk();
  const [first] = disk.paths().filter(isSegment) as [string];
  const bytes = disk.bytesOf(first).slice();
  bytes[bytes.length >> 1]! ^= 1;
  disk.setBytes(first, bytes);
  for (const _ of [1, 2]) {
    const store = await startedOn(disk);
    const { findings } = store.log.recovery;
    t.match(
      findings.filter(({ code }) => code !== "hint_missing"),
      listOf({ code: "record_damaged" }),
    );
    await until(() => hintPathsOf(disk).length === sealedCount(disk) - 1, "the others");
    await store.close();
    t.notOk(hintPathsOf(disk).includes(first.replace(".seg", ".hint")));
  }
});

t.test("damage that comes after the start: the segment gets none", async (t) => {
  const disk = await unhintedDisk();
  const store = await HintedStore.open(disk);
  const [first] = disk.paths().filter(isSegment) as [string];
  disk.setBytes(first, disk.bytesOf(first).slice(0, -1));
  store.hints.start();
  await until(() => store.lines.length === sealedCount(disk), "all");
  t.match(store.lines[0], { level: "warn", message: /^a damaged segment gets no hint file/ });
  await store.close();
});

t.test("a stop ends the work on a hint file", async (t) => {
  const disk = await unhintedDisk();
  const store = await startedOn(disk);
  await store.close();
  t.ok(hintPathsOf(disk).length < sealedCount(disk));
  t.notOk(disk.paths().some((path) => path.endsWith(".tmp")));
});
