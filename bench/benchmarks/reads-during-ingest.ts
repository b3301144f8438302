import { Agent, get } from "node:http";
import { createRandom } from "../../core/random.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../harness/benchmark.js";
import { LatencyHistogram, mergeLatencies } from "../harness/latency-histogram.js";
import { runOpenLoop } from "../harness/open-loop.js";
import { type CaptureHead, type HeadPace, startCaptureHead } from "../load/capture-head.js";
import { fetchTotal, produceRun, putPrograms, waitUntil } from "../load/run-producer.js";
import { startService } from "../load/service-process.js";

const RUNS = { smoke: 60, full: 2_000 };
const SECONDS = { smoke: 0.5, full: 3 };
/** A screen that refreshes, and clients that follow: far from what the front can take, so that waiting is not of its own making. */
const READS_PER_SECOND = 200;
const DETAILS = 64;
const STEPS = 8;
const GOAL = "cell-link.md: reads keep their latency beside captures; here p99 at most 3 times that without";

/** Reads the whole answer; only 200 counts. */
function read(url: string, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    get(url, { agent }, (response) => {
      response.on("error", reject);
      response.on("end", () => {
        if (response.statusCode === 200) resolve();
        else reject(new Error(`GET ${url} answered ${response.statusCode}`));
      });
      response.resume();
    }).on("error", reject);
  });
}

/** Reads lists and details in turn at a fixed rate; a round's figure is the 99th percentile of all of them. */
async function readInOpenLoop(url: string, ids: readonly string[], count: number): Promise<RoundSample> {
  const agent = new Agent({ keepAlive: true });
  const lists = new LatencyHistogram();
  const details = new LatencyHistogram();
  try {
    const outcome = await runOpenLoop({
      ratePerSecond: READS_PER_SECOND,
      count,
      latency: new LatencyHistogram(),
      send: async (index, intendedMs) => {
        const isList = index % 2 === 0;
        await read(isList ? `${url}/runs?limit=50` : `${url}/runs/${ids[index % ids.length]}`, agent);
        (isList ? lists : details).record((performance.now() - intendedMs) * 1e6);
      },
    });
    const all = mergeLatencies([lists.toData(), details.toData()]);
    return {
      value: all.percentileNs(0.99) / 1e6,
      seconds: outcome.seconds,
      latency: all.toData(),
      details: {
        "list p50 ms": lists.percentileNs(0.5) / 1e6,
        "list p99 ms": lists.percentileNs(0.99) / 1e6,
        "detail p50 ms": details.percentileNs(0.5) / 1e6,
        "detail p99 ms": details.percentileNs(0.99) / 1e6,
        "late sends": outcome.lateSends,
      },
      ...(outcome.lateSends > count / 100 ? { warnings: ["the reader fell behind in over 1 % of its requests"] } : {}),
    };
  } finally {
    agent.destroy();
  }
}

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const service = await startService(context);
  let head: CaptureHead | undefined;
  const close = async (): Promise<void> => {
    await head?.close();
    await service.stop();
  };
  try {
    const random = createRandom(context.seed);
    const client = await service.connect("bench-fill");
    const programs = await putPrograms(client, 4, STEPS);
    const ids: string[] = [];
    for (let i = 0; i < RUNS[context.size]; i++) {
      const program = random.pick(programs);
      const serialNumber = `SN-${i}`;
      const outcome = "completed";
      ids.push(
        await produceRun(client, random, { program, serialNumber, outcome, steps: STEPS, events: 2, checks: 4 }),
      );
    }
    const [program] = programs;
    if (program === undefined) throw new Error("no program was put");
    await client.close();
    service.assertNothingRefused();
    await waitUntil(
      "the end of every run",
      async () => (await fetchTotal(`${service.url}/runs?status=completed&limit=1`)) === ids.length,
    );
    const detailIds = Array.from({ length: DETAILS }, () => random.pick(ids));
    const count = Math.round(SECONDS[context.size] * READS_PER_SECOND);

    const readAlone = async (): Promise<RoundSample> => readInOpenLoop(service.url, detailIds, count);
    const capturing = await startCaptureHead({ socketPath: service.socketPath, program, seed: context.seed });
    head = capturing;
    const readBeside = (pace: HeadPace) => async (): Promise<RoundSample> => {
      await capturing.begin(pace);
      const sample = await readInOpenLoop(service.url, detailIds, count);
      const { megabytes, seconds } = await capturing.end();
      return { ...sample, details: { ...sample.details, "ingest MB/s": megabytes / seconds } };
    };
    return {
      runners: { quiet: readAlone, paced: readBeside("head"), "flat-out": readBeside("flat-out") },
      notes: [
        `${ids.length} runs in the store, ${READS_PER_SECOND} reads a second; the producer is a thread of its own`,
      ],
      close,
    };
  } catch (error) {
    await close().catch(() => {});
    throw error;
  }
}

export const readsDuringIngest: Benchmark = {
  name: "reads-during-ingest",
  measures:
    `GET /runs?limit=50 and GET /runs/{run_id} (${DETAILS} different finished runs) in turn, ${READS_PER_SECOND} a second in an open loop: the clock of a read starts ` +
    "when it was meant to be sent and stops at the last byte of its answer. A round's figure is the 99th percentile of both " +
    "together. Alone, beside one capture at the pace of a real head (51 MB/s, durability full), and beside one as fast as the " +
    "link takes it (16 batches in flight). Reader, producer and service share the machine's cores: with two of them, this measures the scheduler as well.",
  metric: { name: "p99 latency of reads", unit: "ms", better: "lower" },
  contestants: [
    { name: "quiet", description: "nobody writes" },
    { name: "paced", description: "a head of 3,200 points, 4,000 lines a second, 4 bytes a point" },
    { name: "flat-out", description: "the same batches without a pace" },
  ],
  peer: "quiet",
  goals: [
    { kind: "ratio", contestant: "paced", peer: "quiet", ratio: 3, direction: "at-most", source: GOAL },
    { kind: "ratio", contestant: "flat-out", peer: "quiet", ratio: 3, direction: "at-most", source: GOAL },
  ],
  rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 1, measured: 7 } },
  timeoutSeconds: { smoke: 90, full: 600 },
  open,
};
