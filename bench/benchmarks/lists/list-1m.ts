import { createRandom } from "../../../core/random.js";
import type {
  Benchmark,
  BenchmarkContext,
  Contestant,
  Goal,
  OpenBenchmark,
  RoundSample,
} from "../../harness/benchmark.js";
import { LatencyHistogram } from "../../harness/latency-histogram.js";
import { type ListFront, openListFronts } from "../../load/http/list-front.js";
import { FILTERS, type ListQuery, PAGE, randomQueries } from "../../load/http/list-queries.js";
import { warmPageCache } from "../../load/page-cache.js";
import { logPath, prepareRunStore } from "../../load/run-store.js";

const RUNS = { smoke: 2_000, full: 1_000_000 };
/** Queries of one filter; their entries, of all filters together, have room in the cache as shipped. */
const QUERIES = { smoke: 10, full: 150 };
/** How often each is asked for in a round. */
const REPEATS = { smoke: 2, full: 8 };
const GOAL = "any single filter, uniformly random offsets, query to response bytes: p99";
/** No entry fits: every page comes from the log. */
const NO_CACHE_BYTES = 1;

/** Asks for all of them, some times over, one after the other; the round's figure is the 99th percentile. */
async function measure(front: ListFront, queries: readonly ListQuery[], repeats: number): Promise<RoundSample> {
  const latency = new LatencyHistogram();
  const startMs = performance.now();
  for (let repeat = 0; repeat < repeats; repeat++) {
    for (const query of queries) {
      const queryMs = performance.now();
      await front.list(query);
      latency.record((performance.now() - queryMs) * 1e6);
    }
  }
  return {
    value: latency.percentileNs(0.99) / 1e6,
    seconds: (performance.now() - startMs) / 1000,
    latency: latency.toData(),
  };
}

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const { size, seed } = context;
  const store = await prepareRunStore(context.storesDirectory, RUNS[size], seed, context.log);
  const [cached, cold] = (await openListFronts(store, [undefined, NO_CACHE_BYTES])) as [ListFront, ListFront];
  const random = createRandom(seed + 1);
  const runners: OpenBenchmark["runners"] = {};
  for (const filter of FILTERS) {
    const queries = await randomQueries(cached.view, store, filter, QUERIES[size], random);
    runners[`cached ${filter}`] = async () => {
      // Whatever went out of the cache meanwhile is read again before the clock.
      for (const query of queries) await cached.list(query);
      return measure(cached, queries, REPEATS[size]);
    };
    runners[`cold ${filter}`] = async () => {
      await warmPageCache(logPath(store));
      const fresh = await randomQueries(cold.view, store, filter, QUERIES[size] * REPEATS[size], random);
      return measure(cold, fresh, 1);
    };
  }
  return {
    runners,
    notes: [
      `${store.runs} runs; cold: no entry is cached; the log is read once before each of these rounds, so that the page cache of the system holds it`,
    ],
    close: async () => {
      cached.close();
      cold.close();
    },
  };
}

const KINDS = [
  ["cached", 1, "entries in the cache"],
  ["cold", 3, "entries from the log"],
] as const;

export const list1m: Benchmark = {
  name: "list-1m",
  measures:
    `GET /runs with limit ${PAGE} and exact total at 1,000,000 runs, in the process of the benchmark: from the request's path and query to the response's ` +
    "bytes, through routing, parameters, view and JSON; without a server. Each contestant is a filter by itself, its value " +
    "and the offset uniformly random. Queries come one after the other; a round's figure is the 99th percentile of " +
    `${QUERIES.full * REPEATS.full}. cached: ${QUERIES.full} queries, asked for before. cold: new queries, by a view that caches no entries, so that each page is read from the log; ` +
    "the system's page cache holds the log.",
  metric: { name: "p99 latency of a page", unit: "ms", better: "lower" },
  contestants: KINDS.flatMap(([kind, , description]) =>
    FILTERS.map(
      (filter): Contestant => ({ name: `${kind} ${filter}`, description: `${filterText(filter)}, ${description}` }),
    ),
  ),
  peer: null,
  goals: KINDS.flatMap(([kind, value]) =>
    FILTERS.map(
      (filter): Goal => ({
        kind: "value",
        contestant: `${kind} ${filter}`,
        value,
        direction: "at-most",
        source: `${GOAL} under ${value} ms ${kind}`,
      }),
    ),
  ),
  rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 1, measured: 9 } },
  timeoutSeconds: { smoke: 90, full: 900 },
  open,
};

function filterText(filter: string): string {
  return filter === "none" ? "no filter" : `by ${filter}`;
}
