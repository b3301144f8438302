import type { Benchmark, BenchmarkContext, OpenBenchmark } from "../harness/benchmark.js";
import { BATCH_LINES, captureWholeFrame, wholeFrame } from "../load/frames/capture-sender.js";
import { formatsMadeMs, whenFormats } from "../load/frames/frame-formats.js";
import { alternatingSlices, READS, READS_PER_SECOND, type ReadSlices, readsBeside } from "../load/http/read-slices.js";
import { startService } from "../load/http/service-process.js";
import { fillService } from "../load/run-producer.js";

const RUNS = { smoke: 10, full: 1_000 };
const STEPS = 8;
/** A frame takes longer than this on two cores, so it is processed during the whole slice. */
const SLICE_SECONDS = 0.25;
const SLICES = { smoke: 1, full: 16 };
/** Share of the slices in which frames are processed. With less, the figure is partly one of quiet reads. */
const LEAST_PROCESSING_PERCENT = 90;
const LOADS = ["quiet", "processing"] as const;

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const service = await startService(context);
  const { url } = service;
  const { client, program, ids } = await fillService(service, context.seed, {
    steps: STEPS,
    count: RUNS[context.size],
  });
  const whole = wholeFrame(context.seed, context.size === "smoke" ? BATCH_LINES : undefined);
  // The threads start with the first task of each kind. So one frame is processed before anything is measured.
  const first = await captureWholeFrame(client, program, whole);
  await first.end();
  await whenFormats(url, first.frameId);
  const count = Math.round(SLICE_SECONDS * READS_PER_SECOND);
  const measureSlice = async (load: (typeof LOADS)[number], slices: ReadSlices): Promise<void> => {
    const frame = await captureWholeFrame(client, program, whole);
    if (load === "quiet") {
      await slices.read(url, ids, count);
      await frame.end();
      return whenFormats(url, frame.frameId);
    }
    const startMs = Date.now();
    // Its answer comes when the whole run is committed. Processing has begun before.
    const ended = frame.end();
    await slices.read(url, ids, count);
    const endMs = Date.now();
    await ended;
    await whenFormats(url, frame.frameId);
    const madeMs = await formatsMadeMs(url, frame.runId);
    const seconds = Math.max(0, Math.min(madeMs, endMs) - startMs) / 1000;
    slices.addShare("processing %", seconds, (endMs - startMs) / 1000, LEAST_PROCESSING_PERCENT);
    slices.addLoad("frames 1/s", 1, (madeMs - startMs) / 1000);
  };
  return {
    runners: alternatingSlices(LOADS, SLICES[context.size], measureSlice),
    notes: [`${ids.length} runs in the store; frames 1/s: from frame.end until all of a frame's formats are made`],
  };
}

export const readsDuringProcessing: Benchmark = readsBeside({
  name: "reads-during-processing",
  measures:
    `${READS} Alone, while the lines of a frame of 3,200 x 1,024 points lie stored and it has not ended; and while such a frame is made into its formats: ` +
    `a slice begins with its frame.end. A slice takes ${SLICE_SECONDS} s; a round has ${SLICES.full} of each.`,
  contestants: [
    { name: "quiet", description: "nothing is processed" },
    { name: "processing", description: "a frame is processed" },
  ],
  goal: {
    target: 2,
    source: "goal of the formats: p99 of run reads while a frame is processed at most 2 times the quiet one",
  },
  timeoutSeconds: 600,
  open,
});
