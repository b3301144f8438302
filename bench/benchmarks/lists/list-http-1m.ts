import { createRandom } from "../../../core/random.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark } from "../../harness/benchmark.js";
import { getBody, loadEnd, measureHttpLoad } from "../../load/http/http-load.js";
import { type ListFront, openListFronts } from "../../load/http/list-front.js";
import { FILTERS, PAGE, randomQueries } from "../../load/http/list-queries.js";
import { serveStore } from "../../load/http/service-process.js";
import { warmPageCache } from "../../load/page-cache.js";
import { logPath, prepareRunStore } from "../../load/run-store.js";

const RUNS = { smoke: 2_000, full: 1_000_000 };
const QUERIES = { smoke: 10, full: 2_000 };
const SECONDS = 3;
const CONNECTIONS = 4;

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const { size, seed } = context;
  const store = await prepareRunStore(context.storesDirectory, RUNS[size], seed, context.log);
  const random = createRandom(seed + 3);
  // What there is to ask for is found by a view of this process, which is dropped again.
  const [front] = (await openListFronts(store, [undefined])) as [ListFront];
  const paths = new Map<string, string[]>();
  for (const filter of FILTERS) {
    const queries = await randomQueries(front.view, store, filter, QUERIES[size], random);
    paths.set(
      filter,
      queries.map(({ text }) => `/runs?${text}`),
    );
  }
  front.close();
  const service = await serveStore(context, store.path);
  try {
    const { total } = JSON.parse((await getBody(`${service.url}/runs?limit=1`)).toString()) as { total: number };
    if (total !== store.runs) throw new Error(`the service lists ${total} runs of ${store.runs}`);
    return {
      runners: Object.fromEntries(
        FILTERS.map((filter) => [
          filter,
          async () => {
            await warmPageCache(logPath(store));
            return measureHttpLoad(context.httpClient, service.pid, {
              url: service.url,
              paths: paths.get(filter) as string[],
              connections: CONNECTIONS,
              until: loadEnd(size, SECONDS),
              directory: context.directory,
            });
          },
        ]),
      ),
      notes: [
        `load by ${context.httpClient}, ${CONNECTIONS} connections; ${QUERIES[size]} queries of each filter in turn`,
      ],
      close: () => service.stop(),
    };
  } catch (error) {
    await service.stop().catch(() => {});
    throw error;
  }
}

export const listHttp1m: Benchmark = {
  name: "list-http-1m",
  measures:
    `GET /runs with limit ${PAGE} at 1,000,000 runs over HTTP, from the service as shipped, by ${CONNECTIONS} connections that each keep one request in flight ` +
    "(closed loop), from sending a request to its whole answer. Each contestant is a filter by itself; its value and the offset are uniformly random, " +
    `${QUERIES.full} different queries in turn: most entries come from the log, in the system's page cache. Nothing stands beside them; list-1m judges the same without the server.`,
  metric: { name: "throughput", unit: "req/s", better: "higher" },
  contestants: FILTERS.map((name) => ({ name, description: name === "none" ? "no filter" : `filter by ${name}` })),
  peer: null,
  goals: [],
  rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 1, measured: 7 } },
  timeoutSeconds: { smoke: 90, full: 600 },
  open,
};
