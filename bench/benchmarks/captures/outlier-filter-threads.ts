import { join } from "node:path";
import type { MadeFrame } from "../../../test/helpers/captures/made-frames.js";
import { storedFrame } from "../../../test/helpers/captures/stored-frame.js";
import { SplitFilter } from "../../../workers/artefacts/filter/split-filter.js";
import { ArtefactPool } from "../../../workers/artefacts/pool/artefact-pool.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../../harness/benchmark.js";
import { median } from "../../harness/statistics.js";
import { BENCH_FRAMES, type BenchFrame, openOn } from "../../load/frames/bench-frames.js";
import { startGridFilter, type Timed } from "../../load/frames/grid-filter.js";

const TASK_TIMEOUT_MS = 300_000;
/** A round is as many filters as begin within it: of one that takes some milliseconds a single figure is that of what else the machine did. */
const ROUND_MS = { smoke: 0, full: 150 };

async function open(context: BenchmarkContext, made: MadeFrame): Promise<OpenBenchmark> {
  const { source, frame } = storedFrame(join(context.directory, "run.cap"), made);
  const pools: ArtefactPool[] = [];
  const masks: Uint8Array[] = [];
  const measure = (filter: () => Timed | Promise<Timed>) => async (): Promise<RoundSample> => {
    const begunMs = performance.now();
    const takenMs: number[] = [];
    do {
      const { bits, ms } = await filter();
      takenMs.push(ms);
      const [first] = masks;
      if (first === undefined) masks.push(bits);
      else if (!Buffer.from(first).equals(bits)) throw new Error(`${frame.name}: the masks differ`);
    } while (performance.now() - begunMs < ROUND_MS[context.size]);
    return { value: median(takenMs), seconds: takenMs.reduce((sum, ms) => sum + ms, 0) / 1000 };
  };
  const byPool = (threads: number): (() => Promise<RoundSample>) => {
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
    return measure(async () => {
      const start = performance.now();
      const { bits } = await filter.run(source, { priority: "background" });
      return { bits, ms: performance.now() - start };
    });
  };
  const grid = await startGridFilter(made);
  return {
    runners: {
      one: byPool(1),
      two: byPool(2),
      "alone-one": measure(grid.one),
      "alone-two": measure(grid.two),
      "alone-apart": measure(grid.apart),
    },
    notes: [`${frame.name}; the masks have the same bits, all of them compared`],
    async close() {
      await grid.close();
      for (const pool of pools) await pool.close();
    },
  };
}

const CONTESTANTS = [
  { name: "one", description: "a pool of one thread: one task" },
  { name: "two", description: "a pool of two: the lines in parts" },
  { name: "alone-one", description: "the filter alone, by one thread" },
  { name: "alone-two", description: "the filter alone, by two: the lines in parts" },
  { name: "alone-apart", description: "what two get that each filter the whole at the same time, for one whole" },
];

const PAIRS = [
  { one: "one", two: "two" },
  { one: "alone-one", two: "alone-two" },
];

function threadsBenchmark(frame: BenchFrame): Benchmark {
  return {
    name: `outlier-filter-threads-${frame.suffix}`,
    measures:
      `The outlier filter on ${frame.what} by one thread and by two. By the artefact pool with one thread and with two: from giving it the frame, which lies in ` +
      "a file in the page cache, to the mask, with messages, reading, verifying and decoding. Alone: from z in memory, with the tables of the grid, to the mask " +
      "and the points of every line; the second thread is told by a message, within the clock. Beside it two threads that have nothing to do with each other, " +
      "each with the whole frame, and of the times that they take the time in which they would get one done between them: cores that share caches, memory and " +
      "a host are not twice as fast as one. A round's figure is the median of as many as begin in 0.15 s.",
    metric: { name: "time", unit: "ms", better: "lower" },
    contestants: CONTESTANTS,
    peer: "one",
    goals: PAIRS.map(({ one, two }) => ({
      kind: "ratio",
      contestant: two,
      peer: one,
      ratio: 1 / 1.6,
      direction: "at-most",
      source: "goal of the formats: two threads 1.6 times as fast as one",
    })),
    rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 1, measured: 31 } },
    timeoutSeconds: { smoke: 120, full: 600 },
    open: openOn(frame, CONTESTANTS, open),
  };
}

const { surface500k, surface3m, surface10m, mouldedCover, chip, disc } = BENCH_FRAMES;

export const outlierFilterThreads: readonly Benchmark[] = [
  ...[surface500k, surface3m, surface10m],
  ...[mouldedCover, chip, disc],
].map(threadsBenchmark);
