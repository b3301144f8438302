import { createRandom } from "../../../core/random.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../../harness/benchmark.js";
import { BATCH_LINES, captureWholeFrame, type OpenCapture, wholeFrame } from "../../load/frames/capture-sender.js";
import { formatsMadeMs, whenFormats } from "../../load/frames/frame-formats.js";
import { alternatingSlices, READS_PER_SECOND, type ReadSlices } from "../../load/http/read-slices.js";
import { type ServiceProcess, startService } from "../../load/http/service-process.js";
import { cpuSecondsOf } from "../../load/process-cpu.js";
import { allCompleted, fillRuns, putPrograms } from "../../load/run-producer.js";

/** npy, raw.ply, ply, png, luminance.png */
const FORMATS = 5;
const RUNS = { smoke: 20, full: 1_000 };
const STEPS = 8;
const DETAILS = 64;
/** Shorter than a frame takes on two cores, so that it is processed for all of the slice. */
const SLICE_SECONDS = 0.25;
const SLICES = { smoke: 1, full: 16 };
/** Of the slices' time; with less the figure is one of quiet reads in part. */
const LEAST_PROCESSING_PERCENT = 90;
const PACE_NAMES = ["quiet", "processing"] as const;
const SMOKE_LINES = BATCH_LINES;

interface Cell {
  service: ServiceProcess;
  /** Ids of finished runs. */
  ids: string[];
  /** A frame all of whose lines are stored. */
  capture(): Promise<OpenCapture>;
  close(): Promise<void>;
}

async function openCell(context: BenchmarkContext): Promise<Cell> {
  const service = await startService(context);
  try {
    const client = await service.connect("bench-cell");
    const programs = await putPrograms(client, 1, STEPS);
    const [program] = programs;
    if (program === undefined) throw new Error("no program was put");
    const ids = await fillRuns(client, createRandom(context.seed), programs, RUNS[context.size], STEPS);
    await allCompleted(service.url, ids.length);
    const frame = wholeFrame(context.seed, context.size === "smoke" ? SMOKE_LINES : undefined);
    const capture = () => captureWholeFrame(client, program, frame);
    // The first task of each kind meets threads that are yet to start.
    const first = await capture();
    await first.end();
    await whenFormats(service.url, first.frameId, FORMATS);
    return {
      service,
      ids,
      capture,
      async close() {
        await client.close();
        service.assertNothingRefused();
        await service.stop();
      },
    };
  } catch (error) {
    await service.stop().catch(() => {});
    throw error;
  }
}

async function openReady(context: BenchmarkContext): Promise<OpenBenchmark> {
  const { service, capture, close } = await openCell(context);
  const measure = async (): Promise<RoundSample> => {
    const frame = await capture();
    const cpuBefore = cpuSecondsOf(service.pid);
    const startMs = performance.now();
    await frame.end();
    await whenFormats(service.url, frame.frameId, FORMATS);
    const seconds = (performance.now() - startMs) / 1000;
    return { value: seconds, seconds, details: { "service CPU s": cpuSecondsOf(service.pid) - cpuBefore } };
  };
  return { runners: { service: measure }, notes: ["threads of the pool by its rule: cores less one"], close };
}

async function openReads(context: BenchmarkContext): Promise<OpenBenchmark> {
  const { service, ids, capture, close } = await openCell(context);
  const detailIds = ids.slice(-DETAILS);
  const count = Math.round(SLICE_SECONDS * READS_PER_SECOND);
  const measureSlice = async (name: (typeof PACE_NAMES)[number], slices: ReadSlices): Promise<void> => {
    const frame = await capture();
    if (name === "quiet") {
      await slices.read(service.url, detailIds, count);
      await frame.end();
      await whenFormats(service.url, frame.frameId, FORMATS);
    } else {
      const startMs = Date.now();
      // Its answer comes when all of the run is committed: processing has begun before.
      const ended = frame.end();
      await slices.read(service.url, detailIds, count);
      const endMs = Date.now();
      await ended;
      await whenFormats(service.url, frame.frameId, FORMATS);
      const madeMs = Math.min(await formatsMadeMs(service.url, frame.runId), endMs);
      const seconds = Math.max(0, madeMs - startMs) / 1000;
      slices.addShare("processing %", seconds, (endMs - startMs) / 1000, LEAST_PROCESSING_PERCENT);
    }
  };
  return {
    runners: alternatingSlices(PACE_NAMES, SLICES[context.size], measureSlice),
    notes: [`${ids.length} runs in the store, ${READS_PER_SECOND} reads a second`],
    close,
  };
}

export const frameFormats: Benchmark = {
  name: "frame-formats",
  measures:
    "When a frame of 3,200 x 1,024 points, u16 height and u16 luminance, is available in all of its formats: from sending frame.end, whose lines are all " +
    "stored, until /sensor/frames/{id}/files lists npy, raw.ply, ply, png and luminance.png. One frame at a time, default settings.",
  metric: { name: "time from frame.end", unit: "s", better: "lower" },
  contestants: [{ name: "service", description: "the service as shipped, default settings" }],
  peer: null,
  goals: [
    {
      kind: "value",
      contestant: "service",
      value: 1,
      direction: "at-most",
      source: "goal of the formats: all of them within 1 s of frame.end on two cores",
    },
  ],
  rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 1, measured: 9 } },
  timeoutSeconds: { smoke: 90, full: 300 },
  open: openReady,
};

export const readsDuringProcessing: Benchmark = {
  name: "reads-during-processing",
  measures:
    `GET /runs?limit=50 and GET /runs/{run_id} (${DETAILS} different finished runs) in turn, ${READS_PER_SECOND} a second in an open loop, while a frame of 3,200 x 1,024 ` +
    `points is made into its formats: a slice of ${SLICE_SECONDS} s begins with its frame.end. The quiet slices, which alternate, read while the lines of such a ` +
    `frame lie stored and it has not ended. A round's figure is the 99th percentile of all its slices. Reader and service share the machine's cores, with the same priority.`,
  metric: { name: "p99 latency of reads", unit: "ms", better: "lower" },
  contestants: [
    { name: "quiet", description: "nothing is processed" },
    { name: "processing", description: "a frame is processed" },
  ],
  peer: "quiet",
  goals: [
    {
      kind: "ratio",
      contestant: "processing",
      peer: "quiet",
      ratio: 2,
      direction: "at-most",
      source: "goal of the formats: p99 of run reads while a frame is processed at most 2 times the quiet one",
    },
  ],
  rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 1, measured: 7 } },
  timeoutSeconds: { smoke: 90, full: 600 },
  open: openReads,
};
