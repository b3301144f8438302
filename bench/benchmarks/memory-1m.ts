import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { nodeFileSystem } from "../../storage/disk/file-system.js";
import { LogReader } from "../../storage/log/log-reader.js";
import { walkLog } from "../../storage/recovery/log-walk.js";
import { RecoveryReportBuilder } from "../../storage/recovery/recovery-report.js";
import { View } from "../../storage/view/view.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../harness/benchmark.js";
import { atMost } from "../harness/goal.js";
import { preparePlant, whyNoPlant } from "../load/plant/plant-store.js";
import { prepareRunStore, type RunStore } from "../load/run-store.js";

/** A view of all records of a store that is not being served. */
async function openView(directory: string, isHub: boolean): Promise<View> {
  const view = new View({ reader: new LogReader({ fileSystem: nodeFileSystem, directory }), isHub });
  await walkLog({
    fileSystem: nodeFileSystem,
    directory,
    builder: new RecoveryReportBuilder(),
    quarantine: async () => null,
    deliversTail: true,
    onRecords: (batch) => view.fold.applyBatch(batch),
  });
  view.fold.finishOpening();
  return view;
}

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const [store, plant] = [await prepareRunStore(context), await preparePlant(context).catch(whyNoPlant)];
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc") as () => void;
  const usage = async (): Promise<NodeJS.MemoryUsage> => {
    // Collects twice, a turn of the event loop apart: array buffers are freed by another thread.
    gc();
    await nextTurn();
    gc();
    return process.memoryUsage();
  };
  const measure = async ({ path, runs, cells }: RunStore): Promise<RoundSample> => {
    const before = await usage();
    const startMs = performance.now();
    const view = await openView(`${path}/meta`, cells.length > 0);
    const seconds = (performance.now() - startMs) / 1000;
    const after = await usage();
    return {
      // The view is asked last, so that the collector cannot free it before.
      value: (after.arrayBuffers - before.arrayBuffers) / view.runs.size,
      seconds,
      details: { "heap B/run": (after.heapUsed - before.heapUsed) / runs },
    };
  };
  const runners = { view: () => measure(store), ...(typeof plant !== "string" && { hub: () => measure(plant.store) }) };
  const missing = typeof plant === "string" ? [{ name: "hub", why: plant }] : [];
  return { runners, missing, notes: [`${store.runs} runs`] };
}

export const memory1m: Benchmark = {
  name: "memory-1m",
  measures:
    "Bytes of the view that 1,000,000 runs take in memory, a run: the indexes that answer all lists, ids and frames included, spare room of arrays too, as the process's " +
    "array buffers have grown after a garbage collection. Beside it the growth of the heap. Caches are bounded apart, and empty here.",
  metric: { name: "memory", unit: "B/run", better: "lower" },
  contestants: [
    { name: "view", description: "the front's view" },
    { name: "hub", description: "the view of a hub over 100 cells with 10,000 runs each" },
  ],
  peer: null,
  goals: [
    atMost("view", 200, "under 200 bytes of view per run"),
    atMost("hub", 250, "plant.md: under 250 bytes a run"),
  ],
  rounds: { warmup: 0, measured: 6 },
  timeoutSeconds: 600,
  open,
};
