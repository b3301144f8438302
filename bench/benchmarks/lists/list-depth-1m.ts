import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../../harness/benchmark.js";
import { LatencyHistogram } from "../../harness/latency-histogram.js";
import { type ListFront, openListFronts } from "../../load/http/list-front.js";
import { type ListQuery, listQuery, PAGE } from "../../load/http/list-queries.js";
import { prepareRunStore } from "../../load/run-store.js";

const RUNS = { smoke: 2_000, full: 1_000_000 };
const REPEATS = { smoke: 20, full: 1_000 };
const NO_CACHE_BYTES = 1;
const SOURCE = "offset 999,000 within 1.5 times offset 0";

async function measure(front: ListFront, query: ListQuery, repeats: number): Promise<RoundSample> {
  const latency = new LatencyHistogram();
  await front.list(query);
  const startMs = performance.now();
  for (let repeat = 0; repeat < repeats; repeat++) {
    const queryMs = performance.now();
    await front.list(query);
    latency.record((performance.now() - queryMs) * 1e6);
  }
  return {
    value: latency.percentileNs(0.5) / 1000,
    seconds: (performance.now() - startMs) / 1000,
    latency: latency.toData(),
  };
}

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const runs = RUNS[context.size];
  const store = await prepareRunStore(context.storesDirectory, runs, context.seed, context.log);
  const [cached, cold] = (await openListFronts(store, [undefined, NO_CACHE_BYTES])) as [ListFront, ListFront];
  // Both ends hold ended runs: the newest, which have not, are in memory.
  const { total } = await cached.view.listRuns({ status: "completed", offset: 0, limit: 0 }, "");
  const first = listQuery({ status: "completed" }, 0);
  const last = listQuery({ status: "completed" }, total - PAGE);
  const newest = listQuery({}, 0);
  const oldest = listQuery({}, runs - Math.max(PAGE, runs / 1000));
  const repeats = REPEATS[context.size];
  return {
    runners: {
      first: () => measure(cached, newest, repeats),
      last: () => measure(cached, oldest, repeats),
      "first completed": () => measure(cached, first, repeats),
      "last completed": () => measure(cached, last, repeats),
      "first completed cold": () => measure(cold, first, repeats),
      "last completed cold": () => measure(cold, last, repeats),
    },
    notes: [`first: offset 0; last: offset ${oldest.offset} of ${runs}, with the filter ${last.offset} of ${total}`],
    close: async () => {
      cached.close();
      cold.close();
    },
  };
}

export const listDepth1m: Benchmark = {
  name: "list-depth-1m",
  measures:
    `What an offset costs: GET /runs with limit ${PAGE} at 1,000,000 runs, in the process of the benchmark, from path and query to the response's bytes. ` +
    "The same page again and again; a round's figure is the median. first is the newest page, last the one at offset 999,000; with status=completed " +
    "the first and the last page of these, also by a view that caches no list entries (cold: the entries come from the log, out of the system's page cache). " +
    "Some of the newest page's runs have not ended: their entries are made anew each time.",
  metric: { name: "median latency of a page", unit: "us", better: "lower" },
  contestants: [
    { name: "first", description: "offset 0" },
    { name: "last", description: "offset 999,000" },
    { name: "first completed", description: "status=completed, offset 0" },
    { name: "last completed", description: "status=completed, last page" },
    { name: "first completed cold", description: "the same from the log" },
    { name: "last completed cold", description: "the same from the log" },
  ],
  peer: null,
  goals: [
    { kind: "ratio", contestant: "last", peer: "first", ratio: 1.5, direction: "at-most", source: SOURCE },
    {
      kind: "ratio",
      contestant: "last completed",
      peer: "first completed",
      ratio: 1.5,
      direction: "at-most",
      source: SOURCE,
    },
    {
      kind: "ratio",
      contestant: "last completed cold",
      peer: "first completed cold",
      ratio: 1.5,
      direction: "at-most",
      source: SOURCE,
    },
  ],
  rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 1, measured: 11 } },
  timeoutSeconds: { smoke: 90, full: 600 },
  open,
};
