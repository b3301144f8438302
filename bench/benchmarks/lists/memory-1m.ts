import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import { type CommittedBatch, forEachRecord } from "../../../storage/log/log-batch.js";
import { LogReader } from "../../../storage/log/log-reader.js";
import { View } from "../../../storage/view/view.js";
import { RecorderState } from "../../../workers/recorder/recorder-state.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../../harness/benchmark.js";
import { readStore } from "../../load/read-store.js";
import { prepareRunStore } from "../../load/run-store.js";

const RUNS = { smoke: 2_000, full: 1_000_000 };

/** A fold of a store's log that counts its own bytes. */
interface Fold {
  apply(batch: CommittedBatch): void;
  /** Called once, when all has been applied. */
  finish(): void;
  bytes(): number;
}

function foldView(path: string): Fold {
  const view = new View({ reader: new LogReader({ fileSystem: nodeFileSystem, directory: `${path}/meta` }) });
  return {
    apply: (batch) => view.applyBatch(batch),
    finish: () => view.finishOpening(),
    bytes: () => view.indexBytes,
  };
}

function foldRecorder(): Fold {
  const state = new RecorderState();
  return {
    apply: (batch) => forEachRecord(batch, (record, location) => state.replay(record, location)),
    finish: () => state.finishReplay(),
    bytes: () => state.tableBytes,
  };
}

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const store = await prepareRunStore(context.storesDirectory, RUNS[context.size], context.seed, context.log);
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc") as () => void;
  // Twice, with a turn in between: array buffers are given back beside the thread.
  const collectGarbage = async (): Promise<void> => {
    gc();
    await nextTurn();
    gc();
  };
  const measure = async (fold: Fold): Promise<RoundSample> => {
    await collectGarbage();
    const before = process.memoryUsage();
    const startMs = performance.now();
    await readStore(store.path, (batch) => fold.apply(batch));
    fold.finish();
    const seconds = (performance.now() - startMs) / 1000;
    await collectGarbage();
    const after = process.memoryUsage();
    return {
      // Asked last: until here the fold is held, whatever the collector does.
      value: fold.bytes() / store.runs,
      seconds,
      details: {
        "array buffers B/run": (after.arrayBuffers - before.arrayBuffers) / store.runs,
        "heap B/run": (after.heapUsed - before.heapUsed) / store.runs,
      },
    };
  };
  return {
    runners: { view: () => measure(foldView(store.path)), recorder: () => measure(foldRecorder()) },
    notes: [`${store.runs} runs; open-1m tells the resident memory of the whole service`],
    close: async () => {},
  };
}

export const memory1m: Benchmark = {
  name: "memory-1m",
  measures:
    "Bytes that 1,000,000 runs take in memory, a run: a serial number for each five runs, one frame each, 20 programs. view: the indexes that answer " +
    "all lists, ids and frames included, spare room of arrays too, as it counts them itself (what health and the bound go by). recorder: the tables with which it knows " +
    "every run, frame and serial number again. Beside each the growth of the process's array buffers and heap after a garbage collection, which no count can " +
    "flatter. Caches are bounded apart, and empty here.",
  metric: { name: "memory", unit: "B/run", better: "lower" },
  contestants: [
    { name: "view", description: "the front's view" },
    { name: "recorder", description: "the recorder's state" },
  ],
  peer: null,
  goals: [
    { kind: "value", contestant: "view", value: 200, direction: "at-most", source: "under 200 bytes of view per run" },
  ],
  rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 0, measured: 3 } },
  timeoutSeconds: { smoke: 90, full: 600 },
  open,
};
