import type { Benchmark, BenchmarkContext, OpenBenchmark } from "../../harness/benchmark.js";
import {
  alternatingSlices,
  READS,
  READS_PER_SECOND,
  type ReadSlices,
  readsBeside,
} from "../../load/http/read-slices.js";
import { startService } from "../../load/http/service-process.js";
import { StreamClients } from "../../load/live/stream-clients.js";
import { beginChanges, fillService, paced } from "../../load/run-producer.js";

const STREAMS = { smoke: 4, full: 200 };
const RUNS = { smoke: 10, full: 2_000 };
const SLICE_SECONDS = { smoke: 0.1, full: 0.75 };
const SLICES = { smoke: 1, full: 8 };
const STEPS = 4;
/** A busy cell: a run has some ten changes in half a minute. */
const CHANGES_PER_SECOND = 5;
const LOADS = ["without", "streams"] as const;

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const { size } = context;
  const service = await startService(context);
  const { client, program, ids } = await fillService(service, context.seed, { steps: STEPS, count: RUNS[size] });
  const change = await beginChanges(client, program);
  const streams = StreamClients.start(context, service.url);
  const count = Math.round(SLICE_SECONDS[size] * READS_PER_SECOND);
  const measureSlice = async (load: (typeof LOADS)[number], slices: ReadSlices): Promise<void> => {
    if (load === "streams") await streams.open(STREAMS[size]);
    const startMs = performance.now();
    const stop = new AbortController();
    const pacing = paced(CHANGES_PER_SECOND, stop.signal, change);
    await slices.read(service.url, ids, count);
    stop.abort();
    const changes = await pacing;
    if (load === "streams") {
      await streams.eventAtAll(1);
      slices.addLoad("events 1/s", changes * STREAMS[size], (performance.now() - startMs) / 1000);
      await streams.close();
    }
    service.assertNothingRefused();
  };
  return {
    runners: alternatingSlices(LOADS, SLICES[size], measureSlice),
    notes: [`${ids.length} runs in the store, ${STREAMS[size]} streams, ${CHANGES_PER_SECOND} changes a second`],
  };
}

export const readsDuringStreams: Benchmark = readsBeside({
  name: "reads-during-streams",
  measures: `${READS} Beside ${CHANGES_PER_SECOND} changes of a run a second, which nobody follows, or which ${STREAMS.full} streams tell.`,
  contestants: [
    { name: "without", description: "no streams" },
    { name: "streams", description: `${STREAMS.full} streams of GET /runs/changes` },
  ],
  goal: { target: 1.5, source: "p99 of reads with 200 streams at most 1.5 times that without" },
  timeoutSeconds: 900,
  open,
});
