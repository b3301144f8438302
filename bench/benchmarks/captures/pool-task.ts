import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { ArtefactPool } from "../../../workers/artefacts/pool/artefact-pool.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../../harness/benchmark.js";
import { LatencyHistogram } from "../../harness/latency-histogram.js";
import type { IdleAnswer } from "../../load/frames/idle-task-thread.js";

const TASKS = { smoke: 20, full: 2_000 };
const LARGE_BYTES = 20_000_000;
const LARGE_TASKS = { smoke: 5, full: 300 };
const TASK_TIMEOUT_MS = 60_000;

async function open({ size }: BenchmarkContext): Promise<OpenBenchmark> {
  const pool = new ArtefactPool({
    threads: 1,
    queueLimit: 1,
    taskTimeoutMs: () => TASK_TIMEOUT_MS,
    report: (message, fields) => {
      throw new Error(`${message}: ${JSON.stringify(fields)}`);
    },
    threadModule: new URL("../../load/frames/idle-task-thread.js", import.meta.url),
  });
  const echo = new Worker(new URL("../../load/frames/echo-thread.js", import.meta.url));
  /** @param task may resolve with what of its time was the task's own */
  const measure =
    (task: () => Promise<unknown>, tasks = TASKS[size]) =>
    async (): Promise<RoundSample> => {
      const latency = new LatencyHistogram();
      const startMs = performance.now();
      for (let nth = 0; nth < tasks; nth++) {
        const taskMs = performance.now();
        const workMs = await task();
        const tookMs = performance.now() - taskMs;
        latency.record((tookMs - (typeof workMs === "number" ? workMs : 0)) * 1e6);
      }
      const seconds = (performance.now() - startMs) / 1000;
      return { value: latency.percentileNs(0.5) / 1e6, seconds, latency: latency.toData() };
    };
  /** Answers so many bytes, as tasks answer pictures. */
  const task = (lengthBytes: number) => async (): Promise<number> => {
    const input = { path: String(lengthBytes), extents: [] };
    const answer = await pool.run("verify", input, { priority: "client" });
    const { bytes, workMs } = answer as unknown as IdleAnswer;
    if (bytes.byteLength !== lengthBytes) throw new Error(`${bytes.byteLength} bytes instead of ${lengthBytes}`);
    return workMs;
  };
  await task(0)();
  return {
    runners: {
      pool: measure(task(0)),
      "pool-20mb": measure(task(LARGE_BYTES), LARGE_TASKS[size]),
      message: measure(() => {
        const answered = once(echo, "message");
        echo.postMessage(null);
        return answered;
      }),
    },
    notes: [`a round is ${TASKS[size]} tasks, ${LARGE_TASKS[size]} with 20 MB, one after the other, without a pause`],
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
    "already. Once it answers no bytes and once 20 MB, without the time in which it gets them from the system: to copy them would take milliseconds. " +
    "A round's figure is the median of its tasks. The peer sends a message to a bare worker thread and waits for the answer.",
  metric: { name: "time per task", unit: "ms", better: "lower" },
  contestants: [
    { name: "pool", description: "the artefact pool, one thread" },
    { name: "pool-20mb", description: "the same, each answer 20 MB" },
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
    {
      kind: "value",
      contestant: "pool-20mb",
      value: 0.2,
      direction: "at-most",
      source: "goal of the formats: 0.2 ms of overhead per warm task, no copies of captures between threads",
    },
  ],
  rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 1, measured: 9 } },
  timeoutSeconds: { smoke: 60, full: 120 },
  open,
};
