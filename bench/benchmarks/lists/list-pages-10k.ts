import { createRandom } from "../../../core/random.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark } from "../../harness/benchmark.js";
import { type FilledRun, fillRuns, OUTCOMES } from "../../load/filled-runs.js";
import { getBody, loadEnd, measureHttpLoad } from "../../load/http/http-load.js";
import { type ServiceProcess, startService } from "../../load/http/service-process.js";

const CONNECTIONS = 16;
const SECONDS = 3;
const RUNS = { smoke: 200, full: 10_000 };
const PAGE = 50;
/** Different offsets, serial numbers and so on of one kind of query, asked for in turn. */
const VARIANTS = 64;

interface Query {
  path: string;
  matches(run: FilledRun): boolean;
  offset: number;
}

function queriesOf(runs: readonly FilledRun[], seed: number): Record<string, Query[]> {
  const random = createRandom(seed + 1);
  const query = (filters: Partial<Omit<FilledRun, "id">>, offset = 0): Query => {
    const parameters = new URLSearchParams({ limit: `${PAGE}` });
    if (filters.programId !== undefined) parameters.set("program_id", filters.programId);
    if (filters.status !== undefined) parameters.set("status", filters.status);
    if (filters.serialNumber !== undefined) parameters.set("serial_number", filters.serialNumber);
    if (offset > 0) parameters.set("offset", `${offset}`);
    const wanted = Object.entries(filters) as [keyof FilledRun, string][];
    return {
      path: `/runs?${parameters}`,
      offset,
      matches: (run) => wanted.every(([key, value]) => run[key] === value),
    };
  };
  const variants = (make: () => Query): Query[] => Array.from({ length: VARIANTS }, make);
  return {
    first: [query({})],
    deep: variants(() => query({}, random.integer(Math.floor(runs.length * 0.8), runs.length - PAGE))),
    status: OUTCOMES.map((status) => query({ status })),
    program: variants(() => query({ programId: random.pick(runs).programId }, random.integer(0, runs.length / 20))),
    serial: variants(() => query({ serialNumber: random.pick(runs).serialNumber })),
    combined: variants(() => {
      const { programId, status } = random.pick(runs);
      return query({ programId, status });
    }),
  };
}

/** The page's total and ids are what the filled runs say: a fast wrong answer is no result. */
async function verify(service: ServiceProcess, query: Query, newestFirst: readonly FilledRun[]): Promise<void> {
  const page = JSON.parse((await getBody(service.url + query.path)).toString()) as {
    total: number;
    runs: { id: string }[];
  };
  const expected = newestFirst.filter(query.matches);
  const ids = expected.slice(query.offset, query.offset + PAGE).map(({ id }) => id);
  if (page.total !== expected.length || JSON.stringify(page.runs.map(({ id }) => id)) !== JSON.stringify(ids)) {
    throw new Error(
      `${query.path} answered ${page.runs.length} of ${page.total} runs, expected ${ids.length} of ${expected.length}`,
    );
  }
}

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const service = await startService(context);
  try {
    const runs = await fillRuns(service, context, RUNS[context.size]);
    const newestFirst = runs.toReversed();
    const queries = queriesOf(runs, context.seed);
    const runners: OpenBenchmark["runners"] = {};
    for (const [name, variants] of Object.entries(queries)) {
      for (const query of variants) await verify(service, query, newestFirst);
      runners[name] = () =>
        measureHttpLoad(context.httpClient, service.pid, {
          url: service.url,
          paths: variants.map(({ path }) => path),
          connections: CONNECTIONS,
          until: loadEnd(context.size, SECONDS),
          directory: context.directory,
        });
    }
    return {
      runners,
      notes: [
        `load by ${context.httpClient}, ${CONNECTIONS} connections; ${runs.length} runs, all totals and ids of every query were checked first`,
      ],
      close: () => service.stop(),
    };
  } catch (error) {
    await service.stop().catch(() => {});
    throw error;
  }
}

export const listPages10k: Benchmark = {
  name: "list-pages-10k",
  measures:
    `GET /runs with limit ${PAGE} at 10,000 runs (filled over the cell link), over ${CONNECTIONS} connections that each keep one request in ` +
    "flight (closed loop), by one thread of the load generator; from sending a request to its whole answer. Each contestant " +
    `is one kind of query; those with a filter or an offset take up to ${VARIANTS} different values in turn, so that no answer ` +
    "is simply the last one again. Nothing stands beside them: `first` is what the others are divided by.",
  metric: { name: "throughput", unit: "req/s", better: "higher" },
  contestants: [
    { name: "first", description: "the newest page, no filter" },
    { name: "deep", description: "offsets in the oldest fifth" },
    { name: "status", description: "status completed, failed or cancelled" },
    { name: "program", description: "one of ten programs, offsets up to half of its runs" },
    { name: "serial", description: "one serial number, about five runs" },
    { name: "combined", description: "program and status together" },
  ],
  peer: "first",
  goals: [],
  rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 1, measured: 9 } },
  timeoutSeconds: { smoke: 120, full: 900 },
  open,
};
