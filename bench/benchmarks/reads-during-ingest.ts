import { setTimeout as sleep } from "node:timers/promises";
import { createRandom } from "../../core/random.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark } from "../harness/benchmark.js";
import { type CaptureHead, type HeadPace, startCaptureHead } from "../load/frames/capture-head.js";
import { alternatingSlices, READS_PER_SECOND, type ReadSlices } from "../load/http/read-slices.js";
import { startService } from "../load/http/service-process.js";
import { allCompleted, fetchTotal, fillRuns, putPrograms, waitUntil } from "../load/run-producer.js";

const RUNS = { smoke: 60, full: 2_000 };
/** Of one contestant before the next one has its turn, and how often each has its turn in a round. */
const SLICE_SECONDS = { smoke: 0.25, full: 0.75 };
const SLICES = { smoke: 1, full: 3 };
/** After the captures before are processed, until it is quiet. */
const SETTLE_MS = 100;
const DETAILS = 64;
const STEPS = 8;
const PACE_NAMES = ["quiet", "paced", "flat-out"] as const;
type Pace = (typeof PACE_NAMES)[number];
const PACES: Record<Pace, HeadPace | null> = { quiet: null, paced: "head", "flat-out": "flat-out" };
const GOAL = "cell-link.md: reads keep their latency beside captures; here p99 at most 3 times that without";

/** Formats of the captures before are made for seconds after their last line: what reads meet then is not quiet. */
function whenProcessed(url: string): Promise<void> {
  return waitUntil(
    "the formats of all captures",
    async () => (await fetchTotal(`${url}/runs?status=finalizing&limit=1`)) === 0,
  );
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
    const ids = await fillRuns(client, random, programs, RUNS[context.size], STEPS);
    const [program] = programs;
    if (program === undefined) throw new Error("no program was put");
    await client.close();
    service.assertNothingRefused();
    await allCompleted(service.url, ids.length);
    const detailIds = Array.from({ length: DETAILS }, () => random.pick(ids));
    const count = Math.round(SLICE_SECONDS[context.size] * READS_PER_SECOND);
    const capturing = await startCaptureHead({ socketPath: service.socketPath, program, seed: context.seed });
    head = capturing;
    const measureSlice = async (name: Pace, slices: ReadSlices): Promise<void> => {
      const pace = PACES[name];
      if (pace === null) {
        await whenProcessed(service.url);
        await sleep(SETTLE_MS);
      } else {
        await capturing.begin(pace);
      }
      await slices.read(service.url, detailIds, count);
      if (pace === null) return;
      const { megabytes, seconds } = await capturing.end();
      slices.addLoad("ingest MB/s", megabytes, seconds);
    };
    return {
      runners: alternatingSlices(PACE_NAMES, SLICES[context.size], measureSlice),
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
    `${SLICES.full} slices of ${SLICE_SECONDS.full} s that alternate with those of the others, so that whatever else the machine does meets all alike. Alone, once all captures before are processed, beside one capture at the pace of a real head (51 MB/s, durability full), and beside one as fast as the ` +
    `link takes it (16 batches in flight), where the formats of the captures before may still be made. Reader, producer and service share the machine's cores, with the same priority: with two cores, this measures the scheduler as well.`,
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
  rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 1, measured: 5 } },
  timeoutSeconds: { smoke: 90, full: 1200 },
  open,
};
