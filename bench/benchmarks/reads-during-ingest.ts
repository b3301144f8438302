import { setTimeout as sleep } from "node:timers/promises";
import type { Benchmark, BenchmarkContext, OpenBenchmark } from "../harness/benchmark.js";
import { type HeadPace, startCaptureHead } from "../load/frames/capture-head.js";
import { alternatingSlices, READS, READS_PER_SECOND, type ReadSlices, readsBeside } from "../load/http/read-slices.js";
import { startService } from "../load/http/service-process.js";
import { fetchTotal, fillService, waitUntil } from "../load/run-producer.js";

const RUNS = { smoke: 10, full: 2_000 };
const SLICE_SECONDS = { smoke: 0.1, full: 0.75 };
const SLICES = { smoke: 1, full: 3 };
/** Pause after the earlier captures are processed, until the service is quiet. */
const SETTLE_MS = 100;
const STEPS = 8;
const PACES: Record<"quiet" | "paced" | "flat-out", HeadPace | null> = {
  quiet: null,
  paced: "head",
  "flat-out": "flat-out",
};

/** Formats of the earlier captures are made for seconds after their last line. Reads in that time would not be quiet reads. */
function whenProcessed(url: string): Promise<void> {
  return waitUntil("the formats of all captures", async () => (await fetchTotal(url, "finalizing")) === 0);
}

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const service = await startService(context);
  const { program, ids } = await fillService(service, context.seed, { steps: STEPS, count: RUNS[context.size] });
  const count = Math.round(SLICE_SECONDS[context.size] * READS_PER_SECOND);
  const head = await startCaptureHead({ socketPath: service.socketPath, program, seed: context.seed });
  context.onClose(() => head.close());
  const measureSlice = async (name: keyof typeof PACES, slices: ReadSlices): Promise<void> => {
    const pace = PACES[name];
    if (pace === null) {
      await whenProcessed(service.url);
      await sleep(SETTLE_MS);
      return slices.read(service.url, ids, count);
    }
    await head.begin(pace);
    await slices.read(service.url, ids, count);
    const { megabytes, seconds } = await head.end();
    slices.addLoad("ingest MB/s", megabytes, seconds);
  };
  return {
    runners: alternatingSlices(Object.keys(PACES) as (keyof typeof PACES)[], SLICES[context.size], measureSlice),
    notes: [`${ids.length} runs in the store; the producer of captures is a thread of its own`],
  };
}

export const readsDuringIngest: Benchmark = readsBeside({
  name: "reads-during-ingest",
  measures:
    `${READS} Alone, once all captures before are processed; beside one capture at the pace of a real head (51 MB/s, durability full); and beside one as ` +
    "fast as the link takes it (16 batches in flight), where the formats of the captures before may still be made. " +
    `A slice takes ${SLICE_SECONDS.full} s; a round has ${SLICES.full} of each.`,
  contestants: [
    { name: "quiet", description: "nobody writes" },
    { name: "paced", description: "a head of 3,200 points, 4,000 lines a second, 4 bytes a point" },
    { name: "flat-out", description: "the same batches without a pace" },
  ],
  goal: { target: 3, source: "reads keep their latency beside captures; here p99 at most 3 times that without" },
  timeoutSeconds: 1200,
  open,
});
