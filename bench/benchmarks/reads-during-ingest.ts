import { Agent, get } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { createRandom } from "../../core/random.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../harness/benchmark.js";
import { LatencyHistogram } from "../harness/latency-histogram.js";
import { runOpenLoop } from "../harness/open-loop.js";
import { type CapturedAmount, type CaptureHead, type HeadPace, startCaptureHead } from "../load/capture-head.js";
import { machineCpuSeconds } from "../load/process-cpu.js";
import { fetchTotal, produceRun, putPrograms, waitUntil } from "../load/run-producer.js";
import { startService } from "../load/service-process.js";

const RUNS = { smoke: 60, full: 2_000 };
/** Of one contestant before the next one has its turn, and how often each has its turn in a round. */
const SLICE_SECONDS = { smoke: 0.25, full: 0.75 };
const SLICES = { smoke: 2, full: 8 };
/** A screen that refreshes, and clients that follow: far from what the front can take, so that waiting is not of its own making. */
const READS_PER_SECOND = 200;
/** A capture that begins or ends does more than stream: what it does then is not measured. */
const SETTLE_MS = 100;
/** Above it a read waits for a core, whatever the service does. */
const SATURATED = 0.95;
const DETAILS = 64;
const STEPS = 8;
const PACES: readonly [name: string, pace: HeadPace | null][] = [
  ["quiet", null],
  ["paced", "head"],
  ["flat-out", "flat-out"],
];
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

/** What the slices of one contestant in one round gave, together. */
class Slices {
  readonly #all = new LatencyHistogram();
  readonly #lists = new LatencyHistogram();
  readonly #details = new LatencyHistogram();
  #count = 0;
  #seconds = 0;
  #lateSends = 0;
  #busySeconds = 0;
  #cpuSeconds = 0;
  #megabytes = 0;
  #ingestSeconds = 0;

  /** Reads lists and details in turn at a fixed rate. */
  async read(url: string, ids: readonly string[], count: number): Promise<void> {
    const agent = new Agent({ keepAlive: true });
    const before = machineCpuSeconds();
    try {
      const { seconds, lateSends } = await runOpenLoop({
        ratePerSecond: READS_PER_SECOND,
        count,
        latency: this.#all,
        send: async (index, intendedMs) => {
          const isList = index % 2 === 0;
          await read(isList ? `${url}/runs?limit=50` : `${url}/runs/${ids[index % ids.length]}`, agent);
          (isList ? this.#lists : this.#details).record((performance.now() - intendedMs) * 1e6);
        },
      });
      this.#count += count;
      this.#seconds += seconds;
      this.#lateSends += lateSends;
    } finally {
      agent.destroy();
    }
    const after = machineCpuSeconds();
    this.#busySeconds += after.busy - before.busy;
    this.#cpuSeconds += after.all - before.all;
  }

  addIngest({ megabytes, seconds }: CapturedAmount): void {
    this.#megabytes += megabytes;
    this.#ingestSeconds += seconds;
  }

  sample(): RoundSample {
    const p99Ms = (latency: LatencyHistogram): number => latency.percentileNs(0.99) / 1e6;
    const busy = this.#busySeconds / this.#cpuSeconds;
    const warnings: string[] = [];
    if (this.#lateSends > this.#count / 100) warnings.push("the reader fell behind in over 1 % of its requests");
    if (busy > SATURATED) warnings.push("all cores were busy: reads waited for a core, not for the service");
    return {
      value: p99Ms(this.#all),
      seconds: this.#seconds,
      latency: this.#all.toData(),
      details: {
        "list p50 ms": this.#lists.percentileNs(0.5) / 1e6,
        "list p99 ms": p99Ms(this.#lists),
        "detail p50 ms": this.#details.percentileNs(0.5) / 1e6,
        "detail p99 ms": p99Ms(this.#details),
        "late sends": this.#lateSends,
        "cores busy %": busy * 100,
        ...(this.#ingestSeconds > 0 && { "ingest MB/s": this.#megabytes / this.#ingestSeconds }),
      },
      ...(warnings.length > 0 && { warnings }),
    };
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
    const count = Math.round(SLICE_SECONDS[context.size] * READS_PER_SECOND);
    const capturing = await startCaptureHead({ socketPath: service.socketPath, program, seed: context.seed });
    head = capturing;
    const measureSlice = async (pace: HeadPace | null, slices: Slices): Promise<void> => {
      if (pace !== null) await capturing.begin(pace);
      await sleep(SETTLE_MS);
      await slices.read(service.url, detailIds, count);
      if (pace !== null) slices.addIngest(await capturing.end());
    };
    /** All contestants of one round, in slices that alternate: who is asked first has them all measured. */
    let round = new Map<string, RoundSample>();
    const measureRound = async (): Promise<void> => {
      const slices = PACES.map(([name, pace]) => ({ name, pace, slices: new Slices() }));
      for (let turn = 0; turn < SLICES[context.size]; turn++) {
        for (let at = 0; at < slices.length; at++) {
          const one = slices[(turn + at) % slices.length] as (typeof slices)[number];
          await measureSlice(one.pace, one.slices);
        }
      }
      round = new Map(slices.map((one) => [one.name, one.slices.sample()]));
    };
    return {
      runners: Object.fromEntries(
        PACES.map(([name]) => [
          name,
          async () => {
            if (!round.has(name)) await measureRound();
            const sample = round.get(name) as RoundSample;
            round.delete(name);
            return sample;
          },
        ]),
      ),
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
    "when it was meant to be sent and stops at the last byte of its answer. A round's figure is the 99th percentile of both together, of " +
    `${SLICES.full} slices of ${SLICE_SECONDS.full} s that alternate with those of the others, so that whatever else the machine does meets all alike. Alone, beside one capture at the pace of a real head (51 MB/s, durability full), and beside one as fast as the ` +
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
