import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../../harness/benchmark.js";
import { getBody } from "../../load/http/http-load.js";
import { serveStore } from "../../load/http/service-process.js";
import { cpuSecondsOf } from "../../load/process-cpu.js";
import { waitUntil } from "../../load/run-producer.js";
import { prepareRunStore, type RunStore } from "../../load/run-store.js";

const RUNS = { smoke: 2_000, full: 1_000_000 };
const SNAPSHOT_TIMEOUT_MS = 300_000;

/** Resident memory of a process, in bytes: proc(5), VmRSS. */
function residentBytes(pid: number): number {
  const match = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return Number(match?.[1]) * 1024;
}

/** Starts the service on the store and asks for the first page; the clock runs from the start of its process. */
async function startAndAsk(context: BenchmarkContext, store: RunStore): Promise<RoundSample> {
  const startMs = performance.now();
  const service = await serveStore(context, store.path);
  try {
    const page = await getBody(`${service.url}/runs?limit=50`);
    const seconds = (performance.now() - startMs) / 1000;
    const cpuSeconds = cpuSecondsOf(service.pid);
    const { total } = JSON.parse(page.toString()) as { total: number };
    if (total !== store.runs) throw new Error(`the service lists ${total} runs of ${store.runs}`);
    return {
      value: seconds,
      seconds,
      details: { "CPU s": cpuSeconds, "resident MB": residentBytes(service.pid) / 1e6 },
    };
  } finally {
    await service.stop();
  }
}

function snapshotNames(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory).filter((name) => name.endsWith(".snap")) : [];
}

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const store = await prepareRunStore(context.storesDirectory, RUNS[context.size], context.seed, context.log);
  const snapshots = join(store.path, "snapshot");
  const service = await serveStore(context, store.path);
  // A large log without one has it made at once; for a small one it is made at the stop.
  if (context.size === "full") {
    const isThere = async (): Promise<boolean> => {
      await sleep(100);
      return snapshotNames(snapshots).length > 0;
    };
    await waitUntil("a snapshot", isThere, SNAPSHOT_TIMEOUT_MS);
  }
  await service.stop();
  const [name] = snapshotNames(snapshots);
  if (name === undefined) throw new Error("the service left no snapshot");
  const kept = join(context.directory, name);
  copyFileSync(join(snapshots, name), kept);
  const reset = (): void => {
    rmSync(snapshots, { recursive: true, force: true });
    mkdirSync(snapshots);
  };
  return {
    runners: {
      service: () => {
        reset();
        copyFileSync(kept, join(snapshots, name));
        return startAndAsk(context, store);
      },
      "without snapshot": () => {
        reset();
        return startAndAsk(context, store);
      },
    },
    notes: [`${store.runs} runs; the snapshot has ${(statSync(kept).size / 1e6).toFixed(1)} MB`],
    close: async () => {},
  };
}

export const open1m: Benchmark = {
  name: "open-1m",
  measures:
    "Opening a store of 1,000,000 runs: from the start of the service's process to the last byte of its first answer, GET /runs?limit=50. " +
    "The service as shipped, on a store that was served before and has its snapshot; and on the same store without one, of which the whole log is " +
    "read. The system's page cache holds both.",
  metric: { name: "time to first answer", unit: "s", better: "lower" },
  contestants: [
    { name: "service", description: "process start, snapshot, recovery, HTTP" },
    { name: "without snapshot", description: "the snapshot was deleted" },
  ],
  peer: null,
  goals: [
    {
      kind: "value",
      contestant: "service",
      value: 2,
      direction: "at-most",
      source: "opening a store of 1,000,000 runs",
    },
  ],
  rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 1, measured: 7 } },
  timeoutSeconds: { smoke: 90, full: 900 },
  open,
};
