import { createRandom, type Random } from "../../core/random.js";
import { formatTimeUs } from "../../core/timestamps.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../harness/benchmark.js";
import { atMost } from "../harness/goal.js";
import { LatencyHistogram } from "../harness/latency-histogram.js";
import { p99Sample } from "../harness/latency-sample.js";
import { HttpConnection } from "../load/http/http-connection.js";
import { getJson } from "../load/http/http-load.js";
import type { ServerProcess } from "../load/http/server-process.js";
import { startService } from "../load/http/service-process.js";
import { missingWithoutNats, startPlant } from "../load/plant/plant-store.js";
import { createdAtUs, prepareRunStore, type RunStore, serialNumberText } from "../load/run-store.js";

const PAGE = 50;
/** Requests for each filter in a round. */
const QUERIES = { smoke: 4, full: 1_000 };
const PLANT_QUERIES = { smoke: 4, full: 300 };

/** One filter at a time, with a uniformly random value. */
const FILTERS: Record<string, (store: RunStore, random: Random) => Record<string, string>> = {
  none: () => ({}),
  program: (store, random) => ({ program_id: random.pick(store.programIds) }),
  status: (_store, random) => ({ status: random.pick(["completed", "failed", "cancelled"]) }),
  serial: (store, random) => ({ serial_number: serialNumberText(random.integer(1, store.serialNumbers)) }),
  updated: (store, random) => ({ updated_since: formatTimeUs(createdAtUs(random.integer(0, store.runs - 1))) }),
};

const PLANT_FILTERS: typeof FILTERS = { ...FILTERS, cell: (store, random) => ({ cell: random.pick(store.cells) }) };

interface Listed {
  store: RunStore;
  service: ServerProcess;
  filters: typeof FILTERS;
  queries: typeof QUERIES;
}

async function open(context: BenchmarkContext, { store, service, filters, queries }: Listed): Promise<OpenBenchmark> {
  const { size, seed } = context;
  const connection = await HttpConnection.open(service.url);
  context.onClose(() => connection.close());
  const random = createRandom(seed + 1);
  const totalOf = async (filter: URLSearchParams): Promise<number> =>
    (await getJson<{ total: number }>(`${service.url}/runs?limit=1&${filter}`)).total;
  const everything = await totalOf(new URLSearchParams());
  if (everything !== store.runs) throw new Error(`the service lists ${everything} runs of ${store.runs}`);

  /** Pages with at least one run, all equally likely. Hardly any of them was asked for before. */
  const randomPaths = async (parametersOf: (typeof FILTERS)[string]): Promise<string[]> => {
    const paths: string[] = [];
    const totals = new Map<string, number>();
    while (paths.length < queries[size]) {
      const parameters = new URLSearchParams(parametersOf(store, random));
      const filter = parameters.toString();
      const total = totals.get(filter) ?? (await totalOf(parameters));
      totals.set(filter, total);
      if (total === 0) continue;
      parameters.set("limit", `${PAGE}`);
      parameters.set("offset", `${random.integer(0, total - 1)}`);
      paths.push(`/runs?${parameters}`);
    }
    return paths;
  };
  const measure = async (paths: readonly string[]): Promise<RoundSample> => {
    const latency = new LatencyHistogram();
    const startMs = performance.now();
    for (const path of paths) {
      const sentMs = performance.now();
      await connection.get(path);
      latency.record((performance.now() - sentMs) * 1e6);
    }
    return p99Sample(latency, startMs);
  };
  return {
    runners: Object.fromEntries(
      Object.entries(filters).map(([name, parametersOf]) => [
        name,
        async () => measure(await randomPaths(parametersOf)),
      ]),
    ),
    notes: [`${store.runs} runs; ${queries[size]} pages a round`],
  };
}

/** @param what which service has the runs, for `measures` */
function listBenchmark(
  { name, what, target, source }: { name: string; what: string; target: number; source: string },
  { filters, queries }: Pick<Listed, "filters" | "queries">,
  openListed: (context: BenchmarkContext) => Promise<OpenBenchmark>,
): Benchmark {
  const names = Object.keys(filters);
  return {
    name,
    measures:
      `GET /runs with limit ${PAGE} and exact total at 1,000,000 runs over HTTP, from ${what}, one page after the other over one connection: ` +
      "from sending a request to its whole answer. Each contestant is a filter by itself; its value and the offset are uniformly random, so that most pages are " +
      `made of entries that lie in the log. A round's figure is the 99th percentile of ${queries.full}.`,
    metric: { name: "p99 latency of a page", unit: "ms", better: "lower" },
    contestants: names.map((filter) => ({
      name: filter,
      description: filter === "none" ? "no filter" : `by ${filter}`,
    })),
    peer: null,
    goals: names.map((contestant) => atMost(contestant, target, source)),
    rounds: { warmup: 1, measured: 9 },
    timeoutSeconds: 900,
    open: openListed,
  };
}

const OF_CELL = { filters: FILTERS, queries: QUERIES };
const OF_PLANT = { filters: PLANT_FILTERS, queries: PLANT_QUERIES };

export const list1m = listBenchmark(
  {
    name: "list-1m",
    what: "the service as shipped",
    target: 3,
    source: "any single filter, uniformly random offsets, entries from the log: p99 under 3 ms",
  },
  OF_CELL,
  async (context) => {
    const store = await prepareRunStore(context);
    return open(context, { store, service: await startService(context, store.path), ...OF_CELL });
  },
);

export const listPlant = listBenchmark(
  {
    name: "list-plant",
    what: "a hub of 100 cells with 10,000 runs each",
    target: 5,
    source: "plant.md: p99 under 5 ms at any offset with exact total",
  },
  OF_PLANT,
  missingWithoutNats(Object.keys(PLANT_FILTERS), async (context) => {
    const { store, hub } = await startPlant(context);
    return open(context, { store, service: hub, ...OF_PLANT });
  }),
);
