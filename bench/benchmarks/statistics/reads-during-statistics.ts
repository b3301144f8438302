import type { Benchmark, BenchmarkContext, OpenBenchmark } from "../../harness/benchmark.js";
import { startCheckedService } from "../../load/check-store.js";
import { getJson } from "../../load/http/http-load.js";
import {
  alternatingSlices,
  READS,
  READS_PER_SECOND,
  type ReadSlices,
  readsBeside,
} from "../../load/http/read-slices.js";
import { bytesOf, newQuestion } from "./program-statistics.js";

const SLICE_SECONDS = { smoke: 0.1, full: 1.5 };
const SLICES = { smoke: 1, full: 3 };
const LOADS = ["quiet", "statistics", "csv"] as const;

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const { url, runs, program } = await startCheckedService(context);
  const ids = (await getJson<{ runs: { id: string }[] }>(`${url}/runs?limit=64`)).runs.map(({ id }) => id);
  const count = Math.round(SLICE_SECONDS[context.size] * READS_PER_SECOND);
  await bytesOf(newQuestion(program));
  const measureSlice = async (load: (typeof LOADS)[number], slices: ReadSlices): Promise<void> => {
    if (load === "quiet") return slices.read(url, ids, count);
    const startMs = performance.now();
    let [isOver, bytes] = [false, 0];
    const working = (async () => {
      while (!isOver)
        bytes += await bytesOf(load === "csv" ? `${program}/checks.csv` : newQuestion(program), () => isOver);
    })();
    await slices.read(url, ids, count);
    isOver = true;
    await working;
    slices.addLoad("MB/s", bytes / 1e6, (performance.now() - startMs) / 1000);
  };
  return {
    runners: alternatingSlices(LOADS, SLICES[context.size], measureSlice),
    notes: [`${runs} runs with ten checks each`],
  };
}

export const readsDuringStatistics: Benchmark = readsBeside({
  name: "reads-during-statistics",
  measures:
    `${READS} Alone; while a client asks for a program's statistics, with a new question each time; and while one reads its checks.csv as fast as it comes. ` +
    `A slice takes ${SLICE_SECONDS.full} s; a round has ${SLICES.full} of each.`,
  contestants: [
    { name: "quiet", description: "nobody asks for statistics" },
    { name: "statistics", description: "one new question after the other" },
    { name: "csv", description: "one download of checks.csv" },
  ],
  goal: { target: 1.5, source: "p99 of run reads meanwhile at most 1.5 times the quiet one" },
  timeoutSeconds: 900,
  open,
});
