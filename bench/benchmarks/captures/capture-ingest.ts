import type { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../../harness/benchmark.js";
import { LatencyHistogram } from "../../harness/latency-histogram.js";
import { BATCH_BYTES, BATCH_LINES, beginCapture, surfaceBatch } from "../../load/frames/capture-sender.js";
import { startService } from "../../load/http/service-process.js";
import { cpuSecondsOf } from "../../load/process-cpu.js";
import { type ProducedProgram, putPrograms } from "../../load/run-producer.js";
import { openPlainCapture } from "../../peers/plain-capture.js";

const BATCHES = { smoke: 6, full: 256 };
const IN_FLIGHT = 16;

/** How many batches became durable together, in order: what one read from the socket acknowledged. */
type Groups = number[];

async function sendCapture(
  client: ProducerClient,
  program: ProducedProgram,
  servicePid: number,
  batch: Uint8Array,
  batches: number,
): Promise<{ sample: RoundSample; groups: Groups }> {
  const capture = await beginCapture(client, program, batch, batches);
  const latency = new LatencyHistogram();
  const groups: Groups = [];
  let groupClosed = true;
  const onDurable = (sentMs: number): void => {
    latency.record((performance.now() - sentMs) * 1e6);
    if (groupClosed) {
      groups.push(0);
      groupClosed = false;
      // All that one chunk from the socket acknowledges resolves before the event loop's next turn.
      setImmediate(() => {
        groupClosed = true;
      });
    }
    groups[groups.length - 1] = (groups.at(-1) as number) + 1;
  };
  const serviceCpuBefore = cpuSecondsOf(servicePid);
  const cpuBefore = process.cpuUsage();
  let sent = 0;
  const startMs = performance.now();
  const slot = async (): Promise<void> => {
    while (sent < batches) {
      sent++;
      const sentMs = performance.now();
      const { acknowledged } = await capture.sendBatch();
      await acknowledged;
      onDurable(sentMs);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, slot));
  const seconds = (performance.now() - startMs) / 1000;
  const cpu = process.cpuUsage(cpuBefore);
  const serviceCpuSeconds = cpuSecondsOf(servicePid) - serviceCpuBefore;
  await capture.end();
  const megabytes = (batches * BATCH_BYTES) / 1e6;
  return {
    groups,
    sample: {
      value: megabytes / seconds,
      seconds,
      latency: latency.toData(),
      details: {
        "batches/commit": batches / groups.length,
        "client CPU %": (cpu.user + cpu.system) / 1e4 / seconds,
        "service CPU ms/MB": (serviceCpuSeconds * 1000) / megabytes,
      },
    },
  };
}

/** The same bytes in the same groups. */
async function writePlainly(directory: string, batch: Uint8Array, groups: Groups): Promise<RoundSample> {
  const capture = openPlainCapture(directory, batch);
  try {
    const latency = new LatencyHistogram();
    const startMs = performance.now();
    for (const count of groups) {
      const groupMs = performance.now();
      await capture.writeGroup(count);
      latency.record((performance.now() - groupMs) * 1e6, count);
    }
    const seconds = (performance.now() - startMs) / 1000;
    const batches = groups.reduce((sum, count) => sum + count, 0);
    return {
      value: (batches * BATCH_BYTES) / 1e6 / seconds,
      seconds,
      latency: latency.toData(),
      details: { "batches/commit": batches / groups.length },
    };
  } finally {
    capture.remove();
  }
}

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const service = await startService(context);
  try {
    const client = await service.connect("bench-head");
    const [program] = await putPrograms(client, 1, 1);
    if (program === undefined) throw new Error("no program was put");
    const batch = surfaceBatch(context.seed);
    const ingest = async (batches: number): Promise<{ sample: RoundSample; groups: Groups }> => {
      const result = await sendCapture(client, program, service.pid, batch, batches);
      service.assertNothingRefused();
      return result;
    };
    const batches = BATCHES[context.size];
    // The peer repeats the groups of the last capture; its first round needs one too.
    let { groups } = await ingest(batches);
    return {
      runners: {
        "cell-link": async () => {
          const result = await ingest(batches);
          groups = result.groups;
          return result.sample;
        },
        plain: () => writePlainly(context.directory, batch, groups),
      },
      notes: [`a round is ${batches} batches of ${BATCH_BYTES} bytes, ${IN_FLIGHT} in flight`],
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

export const captureIngest: Benchmark = {
  name: "capture-ingest",
  measures:
    `One capture over the cell link: frame.lines of ${BATCH_LINES} lines, 3,200 points, u16 height and u16 luminance, ${IN_FLIGHT} batches in flight, ` +
    "durability full. Clock from the first batch's send to the last one's ack; run.create to frame.begin, and what follows " +
    "frame.end, are outside. Latency is send to ack of a batch, in a closed loop. The peer is one process without a link: it writes the " +
    "same bytes to a file in the groups in which the service last acknowledged them, fdatasync after each group, then a small record " +
    "for each batch to a second file, fdatasync: what durable-before-named costs on this disk. Its latency is that of a group.",
  metric: { name: "durable captures", unit: "MB/s", better: "higher" },
  contestants: [
    { name: "cell-link", description: "producer, socket, recorder, capture file and log, default settings" },
    { name: "plain", description: "write and fdatasync in the same groups, by Node's thread pool" },
  ],
  peer: "plain",
  goals: [
    {
      kind: "value",
      contestant: "cell-link",
      value: 102.4,
      direction: "at-least",
      source: "cell-link.md: twice a head of 3,200 points, 4,000 lines a second, 4 bytes a point",
    },
    {
      kind: "ratio",
      contestant: "cell-link",
      peer: "plain",
      ratio: 0.6,
      direction: "at-least",
      source: "where the disk is too slow for the former: of plain writes with the same fdatasync",
    },
  ],
  rounds: { smoke: { warmup: 0, measured: 2 }, full: { warmup: 2, measured: 11 } },
  timeoutSeconds: { smoke: 90, full: 600 },
  open,
};
