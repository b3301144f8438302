import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../../harness/benchmark.js";
import { LatencyHistogram } from "../../harness/latency-histogram.js";
import { runOpenLoop } from "../../harness/open-loop.js";
import {
  BATCH_BYTES,
  BATCH_LINES,
  beginCapture,
  HEAD_BATCHES_PER_SECOND,
  surfaceBatch,
} from "../../load/frames/capture-sender.js";
import { startService } from "../../load/http/service-process.js";
import { cpuSecondsOf } from "../../load/process-cpu.js";
import { putPrograms } from "../../load/run-producer.js";
import { openPlainCapture } from "../../peers/plain-capture.js";

const BATCHES = { smoke: 10, full: 300 };

/** The 99th percentile in milliseconds, with what shows whether the pace was kept. */
function toSample(
  latency: LatencyHistogram,
  count: number,
  outcome: { seconds: number; lateSends: number },
): RoundSample {
  return {
    value: latency.percentileNs(0.99) / 1e6,
    seconds: outcome.seconds,
    latency: latency.toData(),
    details: { "MB/s": (count * BATCH_BYTES) / 1e6 / outcome.seconds, "late sends": outcome.lateSends },
    ...(outcome.lateSends > count / 100 ? { warnings: ["the sender fell behind in over 1 % of its sends"] } : {}),
  };
}

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const service = await startService(context);
  try {
    const client = await service.connect("bench-head");
    const [program] = await putPrograms(client, 1, 1);
    if (program === undefined) throw new Error("no program was put");
    const batch = surfaceBatch(context.seed);
    const count = BATCHES[context.size];
    return {
      runners: {
        "cell-link": async () => {
          const capture = await beginCapture(client, program, batch, count);
          const latency = new LatencyHistogram();
          const cpuBefore = cpuSecondsOf(service.pid);
          const send = async (): Promise<void> => (await capture.sendBatch()).acknowledged;
          const outcome = await runOpenLoop({ ratePerSecond: HEAD_BATCHES_PER_SECOND, count, send, latency });
          const cpuSeconds = cpuSecondsOf(service.pid) - cpuBefore;
          await capture.end();
          service.assertNothingRefused();
          const sample = toSample(latency, count, outcome);
          return { ...sample, details: { ...sample.details, "service CPU %": (cpuSeconds / outcome.seconds) * 100 } };
        },
        plain: async () => {
          const capture = openPlainCapture(context.directory, batch);
          try {
            const latency = new LatencyHistogram();
            // One at a time, as two writers of one file must: who comes while a group is under way waits for it.
            let last: Promise<void> = Promise.resolve();
            const send = (): Promise<void> => {
              last = last.then(() => capture.writeGroup(1));
              return last;
            };
            const outcome = await runOpenLoop({ ratePerSecond: HEAD_BATCHES_PER_SECOND, count, send, latency });
            return toSample(latency, count, outcome);
          } finally {
            capture.remove();
          }
        },
      },
      notes: [],
      async close() {
        await client.close();
        await service.stop();
      },
    };
  } catch (error) {
    await service.stop().catch(() => {});
    throw error;
  }
}

export const capturePaced: Benchmark = {
  name: "capture-paced",
  measures:
    `One capture at the pace of a real head: 3,200 points, 4,000 lines a second, u16 height and u16 luminance, so ${HEAD_BATCHES_PER_SECOND} batches of ` +
    `${BATCH_LINES} lines a second (51 MB/s), durability full. Open loop: the clock of a batch starts when it was meant to be sent, ` +
    "however late it went out, and stops at its ack. A round's figure is its 99th percentile. The peer makes the same batches " +
    "durable at the same pace, each with two fdatasyncs (bytes, then the record that names them), without a link.",
  metric: { name: "p99 latency to durable", unit: "ms", better: "lower" },
  contestants: [
    { name: "cell-link", description: "producer, socket, recorder, capture file and log, default settings" },
    { name: "plain", description: "write and fdatasync, twice a batch, by Node's thread pool" },
  ],
  peer: "plain",
  goals: [],
  rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 1, measured: 9 } },
  timeoutSeconds: { smoke: 90, full: 600 },
  open,
};
