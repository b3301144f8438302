import { join } from "node:path";
import type { MadeFrame } from "../../test/helpers/made-frames.js";
import { storedFrame } from "../../test/helpers/stored-frame.js";
import { ArtefactPool } from "../../workers/artefacts/artefact-pool.js";
import { SplitFilter } from "../../workers/artefacts/split-filter.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../harness/benchmark.js";
import { median } from "../harness/statistics.js";
import { BENCH_FRAMES, type BenchFrame, openOn } from "../load/bench-frames.js";

const TASK_TIMEOUT_MS = 300_000;
/** A round is as many filters as begin within it: of one that takes some milliseconds a single figure is that of what else the machine did. */
const ROUND_MS = { smoke: 0, full: 500 };

async function open(context: BenchmarkContext, made: MadeFrame): Promise<OpenBenchmark> {
  const { source, frame } = storedFrame(join(context.directory, "run.cap"), made);
  const pools: ArtefactPool[] = [];
  const masks: Uint8Array[] = [];
  const measure = (threads: number): (() => Promise<RoundSample>) => {
    const pool = new ArtefactPool({
      threads,
      queueLimit: 1,
      taskTimeoutMs: () => TASK_TIMEOUT_MS,
      report: (message, fields) => {
        throw new Error(`${message}: ${JSON.stringify(fields)}`);
      },
    });
    pools.push(pool);
    const filter = new SplitFilter(pool);
    return async () => {
      const begunMs = performance.now();
      const taken: number[] = [];
      do {
        const start = performance.now();
        const { bits } = await filter.run(source, { priority: "background" });
        taken.push(performance.now() - start);
        const [first] = masks;
        if (first === undefined) masks.push(bits);
        else if (!Buffer.from(first).equals(bits)) throw new Error(`${frame.name}: the masks differ`);
      } while (performance.now() - begunMs < ROUND_MS[context.size]);
      return { value: median(taken), seconds: (performance.now() - begunMs) / 1000 };
    };
  };
  return {
    runners: { one: measure(1), two: measure(2) },
    notes: [`${frame.name}; the masks have the same bits, all of them compared`],
    async close() {
      for (const pool of pools) await pool.close();
    },
  };
}

const CONTESTANTS = [
  { name: "one", description: "a pool of one thread: one task" },
  { name: "two", description: "a pool of two: the lines in parts" },
];

function threadsBenchmark(frame: BenchFrame): Benchmark {
  return {
    name: `outlier-filter-threads-${frame.suffix}`,
    measures:
      `The outlier filter on ${frame.what} by the artefact pool with one thread and with two: from giving it the frame, which lies in a file in the page cache, to ` +
      "the mask. Reading and decoding are in both. One after the other for half a second: a round's figure is their median.",
    metric: { name: "time", unit: "ms", better: "lower" },
    contestants: CONTESTANTS,
    peer: "one",
    goals: [
      {
        kind: "ratio",
        contestant: "two",
        peer: "one",
        ratio: 1 / 1.6,
        direction: "at-most",
        source: "goal of the formats: two threads 1.6 times as fast as one",
      },
    ],
    rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 1, measured: 9 } },
    timeoutSeconds: { smoke: 120, full: 600 },
    open: openOn(frame, CONTESTANTS, open),
  };
}

const { surface500k, surface3m, surface10m, mouldedCover, chip, disc } = BENCH_FRAMES;

export const outlierFilterThreads: readonly Benchmark[] = [
  ...[surface500k, surface3m, surface10m],
  ...[mouldedCover, chip, disc],
].map(threadsBenchmark);
