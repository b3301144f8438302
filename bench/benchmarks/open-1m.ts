import { readFileSync } from "node:fs";
import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../harness/benchmark.js";
import { getBody } from "../load/http-load.js";
import { cpuSecondsOf } from "../load/process-cpu.js";
import { prepareRunStore } from "../load/run-store.js";
import { serveStore } from "../load/service-process.js";

const RUNS = { smoke: 2_000, full: 1_000_000 };

/** Resident memory of a process, in bytes: proc(5), VmRSS. */
function residentBytes(pid: number): number {
  const match = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return Number(match?.[1]) * 1024;
}

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const store = await prepareRunStore(context.storesDirectory, RUNS[context.size], context.seed, context.log);
  const start = async (): Promise<RoundSample> => {
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
  };
  // Once before all rounds: whatever a clean stop leaves for the next start is there then.
  await start();
  return { runners: { service: start }, notes: [`${store.runs} runs`], close: async () => {} };
}

export const open1m: Benchmark = {
  name: "open-1m",
  measures:
    "Opening a store of 1,000,000 runs: from the start of the service's process to the last byte of its first answer, GET /runs?limit=50. " +
    "The service as shipped; the store was served before and stopped cleanly, and the system's page cache holds it.",
  metric: { name: "time to first answer", unit: "s", better: "lower" },
  contestants: [{ name: "service", description: "process start, recovery, view, HTTP" }],
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
