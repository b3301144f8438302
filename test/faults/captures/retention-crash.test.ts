import t, { type Test } from "tap";
import { createRandom, type Random } from "../../../core/random.js";
import type { RunState } from "../../../core/run/run-state.js";
import { capturePath } from "../../../storage/captures/capture-path.js";
import type { Durability } from "../../../storage/log/log-options.js";
import { isRemoved, type KeptRun, REPORT, runWithCaptures } from "../../helpers/captures/kept-captures.js";
import type { DiskFault, DiskOperation } from "../../helpers/disk/simulated-disk.js";
import { SimulatedDisk } from "../../helpers/disk/simulated-disk.js";
import { recorderDisk } from "../../helpers/recorder/recorder-disk.js";
import { RecorderHarness, temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { checkDisk } from "../../helpers/store/checked-disk.js";
import { isFullSize, sized } from "../../helpers/test-size.js";

const SEED = Number(process.env.TEST_SEED ?? 20261120);
/** More than one slice takes. */
const RUNS = 34;
const MODES = ["drop", "keep", "tear"] as const;
/** One in so many operations fails. */
const EIO_STRIDE = sized(4, 1);

interface Store {
  directory: string;
  disk: SimulatedDisk;
  runs: KeptRun[];
  active: KeptRun;
}

/** A store of ended runs and one that is active, as retention finds it when it is turned on. */
async function createStore(t: Test): Promise<Store> {
  const directory = temporaryDirectory(t);
  const disk = new SimulatedDisk();
  const recorder = await RecorderHarness.start(t, directory, { fileSystem: recorderDisk(disk) });
  const raw = await recorder.connect("controller");
  const active = await runWithCaptures(raw, 200);
  const runs: KeptRun[] = [];
  for (let n = 0; n < RUNS; n++) {
    const run = await runWithCaptures(raw, n);
    await raw.accept({ type: "run.finish", id: run.id });
    runs.push(run);
  }
  await recorder.until(() => runs.every(({ id }) => recorder.run(id).status === "completed"));
  await recorder.stop();
  return { directory, disk: disk.copy(), runs, active };
}

function pathOf(store: Store, run: KeptRun, kind: "capture" | "report"): string {
  return `${store.directory}/captures/${capturePath(run.id, kind)}`;
}

/** Runs retention to its end, or until the disk dies. Gives the disk operations that it made. */
async function removeAll(
  t: Test,
  store: Store,
  disk: SimulatedDisk,
  durability: Durability,
  fault: (operation: DiskOperation) => DiskFault | undefined,
): Promise<{ operations: DiskOperation[]; ended: boolean }> {
  const operations: DiskOperation[] = [];
  let setStruck: () => void = () => {};
  const struck = new Promise<void>((resolve) => {
    setStruck = resolve;
  });
  disk.onOperation = (operation) => {
    operations.push(operation);
    const result = fault(operation);
    if (result !== undefined) setStruck();
    return result;
  };
  let ended = false;
  try {
    const recorder = await RecorderHarness.start(t, store.directory, {
      fileSystem: recorderDisk(disk),
      durability,
      retention: { days: null, bytes: 1 },
    });
    const done = recorder.until(() => recorder.lines.some(({ message }) => message === "retention removed captures"));
    await Promise.race([done.then(() => (ended = true)), struck]);
    await recorder.stop();
  } catch {
    // A disk that dies while the recorder opens.
  }
  return { operations, ended };
}

/** Reads the store as a restart finds it, first as it lies, then after what the restart took up. */
async function judge(
  t: Test,
  store: Store,
  disk: SimulatedDisk,
): Promise<{ faults: string[]; removed: number; left: number }> {
  const faults: string[] = [];
  const check = () => checkDisk(disk, store.directory);
  // The dangerous direction: bytes that are gone without a tombstone.
  const before = await check();
  if (!before.ok) faults.push(`check right after the crash: ${JSON.stringify(before.findings)}`);
  const recorder = await RecorderHarness.start(t, store.directory, { fileSystem: recorderDisk(disk) });
  const states = store.runs.map(({ id }) => recorder.run(id));
  const removed = states.filter(isRemoved);
  if (removed.length > 0) await recorder.until(() => recorder.askedToLetGo.length === 2);
  const there = (run: KeptRun, kind: "capture" | "report") => disk.paths().includes(pathOf(store, run, kind));
  const compare = (run: KeptRun, state: RunState): void => {
    if (isRemoved(state)) {
      if (there(run, "capture")) faults.push(`${run.id}: a tombstone, and the file is there still`);
    } else if (!there(run, "capture") || !run.captures.equals(disk.bytesOf(pathOf(store, run, "capture")))) {
      faults.push(`${run.id}: no tombstone, and the bytes are not what they were`);
    }
    if (!there(run, "report") || !REPORT.equals(disk.bytesOf(pathOf(store, run, "report")))) {
      faults.push(`${run.id}: the report is gone`);
    }
  };
  for (const [n, run] of store.runs.entries()) compare(run, states[n] as RunState);
  if (isRemoved(recorder.run(store.active.id))) faults.push("an active run was removed");
  compare(store.active, recorder.run(store.active.id));
  // Oldest first: what has a tombstone is a prefix.
  if (states.slice(0, removed.length).some((state) => !isRemoved(state))) faults.push("not the oldest first");
  await recorder.stop();
  const after = await check();
  if (!after.ok || after.findings.some(({ code }) => code === "capture_left")) {
    faults.push(`check after the restart: ${JSON.stringify(after.findings)}`);
  }
  return {
    faults,
    removed: removed.length,
    left: before.findings.filter(({ code }) => code === "capture_left").length,
  };
}

for (const durability of ["full", "interval", "none"] as const) {
  t.test(
    `a crash at every operation of retention, durability ${durability}: bytes are never gone without a tombstone`,
    async (t) => {
      t.comment(`TEST_SEED=${SEED}`);
      const random: Random = createRandom(SEED);
      const store = await createStore(t);
      const whole = store.disk.copy();
      const { operations, ended } = await removeAll(t, store, whole, durability, () => undefined);
      t.ok(ended);
      t.same(await judge(t, store, whole), { faults: [], removed: RUNS, left: 0 });
      const unlinks = operations.filter(({ kind, path }) => kind === "unlink" && path.endsWith(".cap"));
      t.equal(unlinks.length, RUNS, "one file a run");
      let crashes = 0;
      let left = 0;
      const faults: string[] = [];
      // Each operation in each mode if records are durable before acknowledgements, else in one. A commit tries some.
      const isEveryMode = durability === "full" && isFullSize;
      for (let at = 0; at < operations.length; at += sized(durability === "full" ? 2 : 3, 1)) {
        for (const mode of isEveryMode ? MODES : [random.pick([...MODES])]) {
          const disk = store.disk.copy();
          await removeAll(t, store, disk, durability, ({ number }) => (number === at ? { dies: true } : undefined));
          const result = await judge(t, store, disk.crash(mode, random));
          crashes++;
          left += result.left;
          faults.push(...result.faults.map((fault) => `${mode} at ${at}: ${fault}`));
        }
      }
      let errors = 0;
      for (
        let at = random.integer(0, EIO_STRIDE - 1);
        durability === "full" && at < operations.length;
        at += EIO_STRIDE
      ) {
        const disk = store.disk.copy();
        await removeAll(t, store, disk, durability, ({ number }) => (number === at ? { error: "EIO" } : undefined));
        const result = await judge(t, store, disk.crash("drop", random));
        errors++;
        faults.push(...result.faults.map((fault) => `EIO at ${at}: ${fault}`));
      }
      t.same(faults.slice(0, 5), []);
      t.ok(left > 0, "some crashes left files behind");
      t.comment(
        `${crashes} crashes and ${errors} I/O errors in ${operations.length} operations: ${faults.length} faults, ${left} files left and taken up`,
      );
    },
  );
}
