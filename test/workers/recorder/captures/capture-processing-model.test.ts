import { setImmediate as eventLoopTurn } from "node:timers/promises";
import t from "tap";
import { type ArtefactSubject, isProcessingOpen } from "../../../../core/capture/artefact.js";
import type { Extent } from "../../../../core/capture/capture.js";
import type { RunChange } from "../../../../core/link/change.js";
import { createRandom, type Random } from "../../../../core/random.js";
import { endRun } from "../../../../core/run/run-end.js";
import { withoutCaptures } from "../../../../core/run/run-files.js";
import { type ArtefactChange, foldRun, withArtefacts } from "../../../../core/run/run-fold.js";
import { isTerminal, type RunState } from "../../../../core/run/run-state.js";
import type { TaskInput, TaskName } from "../../../../workers/artefacts/pool/artefact-tasks.js";
import type { TaskErrorData } from "../../../../workers/artefacts/pool/task-failures.js";
import type { ArtefactMaker } from "../../../../workers/recorder/captures/artefact-maker.js";
import { CaptureProcessing } from "../../../../workers/recorder/captures/capture-processing.js";
import type { MadeArtefact } from "../../../../workers/recorder/captures/make-artefact.js";
import { FRAME_ID, idOf, RUN_ID, stateWithRun } from "../../../helpers/link/cell-messages.js";
import { ManualTimers } from "../../../helpers/recorder/manual-timers.js";

const seed = Number(process.env.TEST_SEED ?? 20261122);
t.comment(`TEST_SEED=${seed}`);

const CONCURRENCY = 3;
const SERIES_STEP = 2;

interface AskedTask {
  name: TaskName;
  answer(error?: TaskErrorData): void;
}

/** Gives each task's result when the test says so. */
class HeldMaker implements ArtefactMaker {
  readonly concurrency = CONCURRENCY;
  readonly asked: AskedTask[] = [];
  most = 0;
  total = 0;

  make<N extends TaskName>(name: N, _input: TaskInput<N>): Promise<never> {
    // A preview belongs to the height map that is asked for with it.
    if (name !== "preview") this.total++;
    return new Promise((resolve) => {
      this.asked.push({ name, answer: (error) => resolve((error ? { error } : { value: resultOf(name) }) as never) });
      this.most = Math.max(this.most, this.asked.filter((task) => task.name !== "preview").length);
    });
  }
}

function resultOf(name: TaskName): unknown {
  const lineCounts = Uint32Array.of(3, 2);
  if (name === "countPoints") return lineCounts;
  if (name === "filter") return { bits: Uint8Array.of(31), points: 6, inliers: 5, lineCounts };
  if (name === "indexSeries") return { totalBytes: 99, offsets: Float64Array.of(9, 99) };
  return new Uint8Array(10);
}

/** Holds runs as the recorder does for processing: it folds records, and counts them by what they are about. */
class PlainStore {
  readonly runs = new Map<string, RunState>();
  readonly recorded = new Map<string, number>();
  readonly faults: string[] = [];
  records = 0;
  timeUs = 1_000;
  fails = false;
  hasRoom = true;
  processing: CaptureProcessing | undefined;

  /** As the recorder has it: going on, or ended with something open. */
  run(id: string): RunState | undefined {
    const run = this.runs.get(id);
    return run !== undefined && isTerminal(run.status) && !isProcessingOpen(run) ? undefined : run;
  }

  get endedDocumentBytes(): number {
    let bytes = 0;
    for (const id of this.runs.keys()) {
      const run = this.run(id);
      if (run !== undefined && isTerminal(run.status)) bytes += run.documentBytes;
    }
    return bytes;
  }

  apply(change: RunChange): void {
    this.runs.set(change.runId, foldRun(this.runs.get(change.runId), structuredClone(change), this.timeUs++));
    this.processing?.changed([change]);
  }

  put(run: RunState): void {
    this.runs.set(run.id, run);
    this.processing?.changed([{ kind: "run_ended", runId: run.id, run }]);
  }

  record(run: RunState, made: readonly MadeArtefact[]): void {
    if (this.fails) throw new Error("the log may hold no more");
    if (run !== this.runs.get(run.id)) this.faults.push(`an old state of ${run.id} is recorded`);
    if (run.capturesRemovedAtUs !== null) this.faults.push(`removed captures of ${run.id} are recorded`);
    this.records++;
    const changes = made.map((one): ArtefactChange => {
      const key = `${run.id} ${JSON.stringify(one.of)}`;
      this.recorded.set(key, (this.recorded.get(key) ?? 0) + 1);
      if (one.kind === "failed") return { ...one, kind: "artefact_failed", runId: run.id };
      const extents = one.parts.map((part): Extent => ({ offset: 0, lengthBytes: part.length, crc32: 1 }));
      return { kind: "artefact_stored", runId: run.id, of: one.of, artefact: one.placed(extents) };
    });
    if (isTerminal(run.status)) this.put(withArtefacts(run, changes, this.timeUs++));
    else for (const change of changes) this.apply(change);
  }
}

const BASE = structuredClone(stateWithRun("running").runs.get(RUN_ID)) as RunState;

function newRun(id: string): RunState {
  return structuredClone({ ...BASE, id, frames: [], frameIds: [], jobs: [] });
}

function beginFrame(run: RunState, id: string, random: Random): RunChange {
  const [{ lines, batches, status, completedAtUs, artefacts, ...frame }] = BASE.frames as [RunState["frames"][0]];
  const planes = random.chance(0.5) ? frame.planes : { height: frame.planes.height };
  return { kind: "frame_begun", runId: run.id, frame: { ...frame, id, planes } };
}

const batch = { offset: 0, lengthBytes: 9, crc32: 1, lineCount: 2, heightCrc32: 1 };
const append = {
  ...{ offset: 0, lengthBytes: 4, crc32: 1, rows: 1, firstTimestampUs: 1, samplePeriodUs: 1, dtype: "f32" as const },
  ...{ valueScale: null, valueOffset: null, invalid: [] },
};

function startProcessing(store: PlainStore, maker: ArtefactMaker, timers: ManualTimers): CaptureProcessing {
  const processing = new CaptureProcessing({
    ...{ maker, timers, dataDirectory: "/data" },
    run: (id) => store.run(id),
    path: (id) => id,
    whenWritten: async () => {},
    hasRoom: () => store.hasRoom,
    record: (run, made) => store.record(run, made),
    endedDocumentBytes: () => store.endedDocumentBytes,
    onBehind: () => {},
    report: () => {},
    caughtUp: () => {},
  });
  store.processing = processing;
  processing.resume([...store.runs.keys()].flatMap((id) => store.run(id) ?? []));
  return processing;
}

const ERRORS: TaskErrorData[] = [
  { code: "capture_damaged", message: "d".repeat(1_000) },
  { code: "worker_stuck", message: "s" },
];

t.test("whatever comes when: all that is whole is made, each once, and nothing of what is removed", async (t) => {
  const counts = { rounds: 0, tasks: 0, records: 0, restarts: 0, removed: 0, failed: 0 };
  for (let round = 0; round < 60; round++) {
    const random = createRandom(seed + round);
    const store = new PlainStore();
    const timers = new ManualTimers();
    let maker = new HeldMaker();
    let processing = startProcessing(store, maker, timers);
    let ids = 100;
    const newId = () => idOf(ids++);

    for (let step = 0; step < 120; step++) {
      changeRuns(store, random, newId);
      const [first] = [...store.runs.values()].filter(({ status }) => isTerminal(status));
      if (first !== undefined && first.capturesRemovedAtUs === null && random.chance(0.1)) {
        store.put(withoutCaptures(first, store.timeUs++));
        counts.removed++;
      }
      await eventLoopTurn();
      store.fails = random.chance(0.1);
      const askedBefore = maker.total;
      store.hasRoom = random.chance(0.8);
      for (let answers = random.integer(0, 4); answers > 0 && maker.asked.length > 0; answers--) {
        const [task] = maker.asked.splice(random.integer(0, maker.asked.length - 1), 1) as [AskedTask];
        const error = random.chance(0.1) ? random.pick(ERRORS) : undefined;
        task.answer(error);
        await eventLoopTurn();
      }
      if (!store.hasRoom && maker.total !== askedBefore) return void t.fail(`round ${round}: asked without room`);
      if (random.chance(0.1)) timers.advance(1_000);
      if (random.chance(0.03)) {
        store.fails = random.chance(0.5);
        processing.stop();
        for (const task of maker.asked) task.answer();
        await eventLoopTurn();
        counts.tasks += maker.total;
        maker = new HeldMaker();
        processing = startProcessing(store, maker, timers);
        counts.restarts++;
      }
      if (maker.most > CONCURRENCY) return void t.fail(`round ${round}: ${maker.most} at a time`);
    }

    store.fails = false;
    store.hasRoom = true;
    processing.proceed();
    for (let turn = 0; turn < 5_000 && processing.open > 0; turn++) {
      for (const task of maker.asked.splice(0)) task.answer();
      await eventLoopTurn();
      timers.advance(1_000);
    }
    const twice = [...store.recorded].filter(([, times]) => times > 1);
    if (twice.length > 0) store.faults.push(`recorded again: ${JSON.stringify(twice)}`);
    counts.failed += judge(store);
    if (store.faults.length > 0) return void t.fail(`seed ${seed + round}`, { faults: store.faults.slice(0, 5) });
    counts.rounds++;
    counts.tasks += maker.total;
    counts.records += store.records;
  }
  t.comment(JSON.stringify(counts));
  t.ok(counts.removed > 10 && counts.restarts > 20 && counts.failed > 50, "all of it was there");
});

/** Something happens to one of the runs that go on, or another one begins. */
function changeRuns(store: PlainStore, random: Random, newId: () => string): void {
  const going = [...store.runs.values()].filter(({ status }) => !isTerminal(status));
  const run = going.length === 0 ? undefined : random.pick(going);
  const open = run?.frames.find(({ status }) => status === "open");
  if (run === undefined || (going.length < 4 && random.chance(0.1))) {
    const created = newRun(newId());
    store.runs.set(created.id, created);
  } else if (random.chance(0.3) && run.status === "running") {
    store.apply(beginFrame(run, newId(), random));
  } else if (open !== undefined && random.chance(0.8)) {
    if (random.chance(0.8)) store.apply({ kind: "frame_lines_stored", runId: run.id, frameId: open.id, batch });
    store.apply({ kind: "frame_ended", runId: run.id, frameId: open.id });
  } else if (run.series.length === 0 && random.chance(0.3)) {
    store.apply({ kind: "series_appended", runId: run.id, stepIndex: SERIES_STEP, channels: 1, append });
  } else if (random.chance(0.1) && run.status === "running") {
    store.apply({ kind: "run_finalizing", runId: run.id, summary: null, results: null });
  } else if (random.chance(0.15)) {
    const status = run.status === "finalizing" ? "completed" : "failed";
    store.put(endRun(run, { status, errorMessage: null, notes: [] }, store.timeUs++));
  }
}

/** Everything that is whole was made in the end. @returns how much of it failed */
function judge(store: PlainStore): number {
  let failed = 0;
  for (const run of store.runs.values()) {
    if (isProcessingOpen(run)) store.faults.push(`something of ${run.id}, ${run.status}, is not made`);
    for (const { artefacts = {}, lines } of run.frames) {
      for (const made of Object.values(artefacts)) if (made.kind === "failed") failed++;
      const { ply, png } = artefacts;
      const [points, maskBytes] = lines === 0 ? [0, 0] : [5, 1];
      if (ply?.kind === "cloud" && (ply.points !== points || ply.mask?.lengthBytes !== maskBytes))
        store.faults.push("a cloud");
      if (png?.kind === "picture" && png.file.lengthBytes !== 10) store.faults.push("a picture");
    }
  }
  return failed;
}

/** A run that has ended with so many whole frames. */
function endedWith(frames: number, id = RUN_ID): RunState {
  const run = newRun(id);
  for (let nth = 0; nth < frames; nth++) {
    const frameId = nth === 0 ? FRAME_ID : idOf(200 + nth);
    foldRun(run, beginFrame(run, frameId, createRandom(1)), 1);
    foldRun(run, { kind: "frame_lines_stored", runId: id, frameId, batch }, 1);
    foldRun(run, { kind: "frame_ended", runId: id, frameId }, 1);
  }
  return endRun(run, { status: "failed", errorMessage: null, notes: [] }, 2);
}

async function answerAll(maker: HeldMaker, processing: CaptureProcessing): Promise<void> {
  while (processing.open > 0) {
    for (const task of maker.asked.splice(0)) task.answer();
    await eventLoopTurn();
  }
}

t.test("an ended run is recorded once more for some artefacts together, the fewer the larger it is", async (t) => {
  for (const [documentBytes, records] of [
    [1_000, 20],
    [8 * 64 * 1024, 10],
    [16 * 1024 * 1024, 1],
  ] as const) {
    const store = new PlainStore();
    const maker = new HeldMaker();
    const run = { ...endedWith(20), documentBytes };
    const of = run.frames.reduce((sum, frame) => sum + (frame.planes.luminance === undefined ? 3 : 4), 0);
    store.runs.set(run.id, run);
    await answerAll(maker, startProcessing(store, maker, new ManualTimers()));
    t.equal(store.recorded.size, of);
    t.equal(store.records, Math.min(records, Math.ceil(of / 4)), `${documentBytes} bytes`);
  }
});

t.test("captures wait when ended runs gather, until half of them are processed", async (t) => {
  const store = new PlainStore();
  const maker = new HeldMaker();
  const runs = [1, 2, 3, 4].map((nth) => ({ ...endedWith(1, idOf(nth)), documentBytes: 1_000 }));
  const told: boolean[] = [];
  const processing: CaptureProcessing = new CaptureProcessing({
    ...{
      maker,
      timers: new ManualTimers(),
      dataDirectory: "/data",
      path: (id) => id,
      whenWritten: async () => {},
      hasRoom: () => true,
    },
    run: (id) => store.run(id),
    record: (run, made) => store.record(run, made),
    endedDocumentBytes: () => store.endedDocumentBytes,
    onBehind: () => told.push(processing.isBehind),
    report: () => {},
    caughtUp: () => {},
    behindBytes: 3_000,
  });
  store.processing = processing;
  processing.resume([]);
  for (const run of runs.slice(0, 3)) store.put(run);
  t.same(told, []);
  store.put(runs[3] as RunState);
  t.same(told, [true]);
  const open: number[] = [];
  while (processing.isBehind) {
    open.push(processing.open);
    maker.asked.shift()?.answer();
    await eventLoopTurn();
  }
  t.same(told, [true, false]);
  t.ok(store.endedDocumentBytes <= 1_500, `${store.endedDocumentBytes} bytes`);
  await answerAll(maker, processing);
  t.equal(store.endedDocumentBytes, 0);
});

t.test("captures that cannot be written are not asked for, and no failure", async (t) => {
  const store = new PlainStore();
  const maker = new HeldMaker();
  const reports: unknown[] = [];
  const run = endedWith(1);
  store.runs.set(run.id, run);
  const processing = new CaptureProcessing({
    ...{
      maker,
      timers: new ManualTimers(),
      dataDirectory: "/data",
      path: (id) => id,
      hasRoom: () => true,
      onBehind: () => {},
    },
    run: (id) => store.run(id),
    whenWritten: () => Promise.reject(new Error("a write failed")),
    record: (of, made) => store.record(of, made),
    endedDocumentBytes: () => 0,
    report: (error) => reports.push(error),
    caughtUp: () => {},
  });
  processing.resume([run]);
  await eventLoopTurn();
  t.equal(maker.total, 0);
  t.ok(reports.length > 0);
  processing.stop();
  t.equal(store.records, 0);
});

const SUBJECT: ArtefactSubject = { frameId: FRAME_ID, format: "png" };
t.test("what is gathered is recorded at a stop; what comes behind it is dropped", async (t) => {
  const store = new PlainStore();
  const maker = new HeldMaker();
  store.runs.set(RUN_ID, endedWith(1));
  const processing = startProcessing(store, maker, new ManualTimers());
  await eventLoopTurn();
  for (const made of ["heightMap", "preview"]) {
    maker.asked.find(({ name }) => name === made)?.answer();
    await eventLoopTurn();
  }
  t.equal(store.records, 0);
  processing.stop();
  t.same([...store.recorded.keys()], [`${RUN_ID} ${JSON.stringify(SUBJECT)}`]);
  for (const task of maker.asked) task.answer();
  await eventLoopTurn();
  t.equal(store.records, 1);
  t.equal(processing.stop(), undefined, "again");
});
