import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { ArtefactPool } from "../../workers/artefacts/artefact-pool.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../harness/benchmark.js";
import { LatencyHistogram } from "../harness/latency-histogram.js";

const TASKS = { smoke: 20, full: 2_000 };
const TASK_TIMEOUT_MS = 60_000;

async function open({ size }: BenchmarkContext): Promise<OpenBenchmark> {
  const pool = new ArtefactPool({
    threads: 1,
    queueLimit: 1,
    taskTimeoutMs: () => TASK_TIMEOUT_MS,
    report: (message, fields) => {
      throw new Error(`${message}: ${JSON.stringify(fields)}`);
    },
    threadModule: new URL("../load/idle-task-thread.js", import.meta.url),
  });
  const echo = new Worker(new URL("../load/echo-thread.js", import.meta.url));
  const measure = (task: () => Promise<unknown>) => async (): Promise<RoundSample> => {
    const latency = new LatencyHistogram();
    const startMs = performance.now();
    for (let nth = 0; nth < TASKS[size]; nth++) {
      const taskMs = performance.now();
      await task();
      latency.record((performance.now() - taskMs) * 1e6);
    }
    const seconds = (performance.now() - startMs) / 1000;
    return { value: latency.percentileNs(0.5) / 1e6, seconds, latency: latency.toData() };
  };
  const input = { path: "", extents: [] };
  const warm = () => pool.run("verify", input, { priority: "client" });
  await warm();
  return {
    runners: {
      pool: measure(warm),
      message: measure(() => {
        const answered = once(echo, "message");
        echo.postMessage(null);
        return answered;
      }),
    },
    notes: [`a round is ${TASKS[size]} tasks, one after the other, without a pause`],
    async close() {
      await pool.close();
      await echo.terminate();
    },
  };
}

export const poolTask: Benchmark = {
  name: "pool-task",
  measures:
    "What a task of the artefact pool costs beside its work: from giving the pool a task that does nothing to its answer, with a thread that is there " +
    "already. A round's figure is the median of its tasks. The peer sends a message to a bare worker thread and waits for the answer.",
  metric: { name: "time per task", unit: "ms", better: "lower" },
  contestants: [
    { name: "pool", description: "the artefact pool, one thread" },
    { name: "message", description: "postMessage to a worker thread and back" },
  ],
  peer: "message",
  goals: [
    {
      kind: "value",
      contestant: "pool",
      value: 0.2,
      direction: "at-most",
      source: "goal of the formats: 0.2 ms of overhead per warm task",
    },
  ],
  rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 1, measured: 9 } },
  timeoutSeconds: { smoke: 60, full: 120 },
  open,
};
