import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../harness/benchmark.js";
import { atMost } from "../harness/goal.js";
import { getJson } from "../load/http/http-load.js";
import { startService } from "../load/http/service-process.js";
import { cpuSecondsOf, residentBytesOf, untilIdle } from "../load/process-cpu.js";
import { prepareRunStore, type RunStore } from "../load/run-store.js";

/** Starts the service on the store and asks for the first page; the clock runs from the start of its process. */
async function startAndAsk(context: BenchmarkContext, store: RunStore): Promise<RoundSample> {
  const startMs = performance.now();
  const service = await startService(context, store.path);
  const { total } = await getJson<{ total: number }>(`${service.url}/runs?limit=50`);
  const seconds = (performance.now() - startMs) / 1000;
  const details = { "CPU s": cpuSecondsOf(service.pid), "resident MB": residentBytesOf(service.pid).now / 1e6 };
  await service.stop();
  if (total !== store.runs) throw new Error(`the service lists ${total} runs of ${store.runs}`);
  return { value: seconds, seconds, details };
}

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const store = await prepareRunStore(context);
  // The service runs once before, so that it has written what makes the next start faster.
  const service = await startService(context, store.path);
  await untilIdle(service.pid);
  await service.stop();
  return { runners: { service: () => startAndAsk(context, store) }, notes: [`${store.runs} runs`] };
}

export const open1m: Benchmark = {
  name: "open-1m",
  measures:
    "Opening a store of 1,000,000 runs: from the start of the service's process to the last byte of its first answer, GET /runs?limit=50. " +
    "The service as shipped, on a store that was served and stopped before. The system's page cache holds it.",
  metric: { name: "time to first answer", unit: "s", better: "lower" },
  contestants: [{ name: "service", description: "process start, recovery, HTTP" }],
  peer: null,
  goals: [atMost("service", 3, "opening a store of 1,000,000 runs within 3 s")],
  rounds: { warmup: 1, measured: 7 },
  timeoutSeconds: 900,
  open,
};
