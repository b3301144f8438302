import { join } from "node:path";
import { createRandom } from "../../../core/random.js";
import { parseUtcTimeUs } from "../../../core/timestamps.js";
import type { Benchmark, BenchmarkContext, Goal, OpenBenchmark, RoundSample } from "../../harness/benchmark.js";
import { LIST_BASE_URL, type ListFront, openListFronts } from "../../load/http/list-front.js";
import { FILTERS, type Filter, type ListQuery, PAGE, randomQueries } from "../../load/http/list-queries.js";
import { warmPageCache } from "../../load/page-cache.js";
import { logPath, prepareRunStore } from "../../load/run-store.js";
import { loadSqlite, missingWithoutSqlite } from "../../peers/sqlite.js";
import { openSqliteLists, type SqliteLists, type SqliteRun } from "../../peers/sqlite-lists.js";

const RUNS = { smoke: 2_000, full: 1_000_000 };
const QUERIES = { smoke: 5, full: 40 };
const READ_TOGETHER = 1000;
const NO_CACHE_BYTES = 1;
const SQLITE_CONTESTANTS = FILTERS.map((filter) => `sqlite ${filter}`);

/** All runs in order of creation, as the service lists them. */
async function* listedRuns(front: ListFront): AsyncGenerator<SqliteRun> {
  for (let end = front.view.runCount; end > 0; end -= READ_TOGETHER) {
    // Newest first: the oldest stand at the end.
    const limit = Math.min(READ_TOGETHER, end);
    const { runs } = await front.view.listRuns({ offset: end - limit, limit }, LIST_BASE_URL);
    for (const entry of runs.toReversed()) {
      const fields = JSON.parse(Buffer.from(entry).toString()) as Record<string, string>;
      yield {
        programId: fields.program_id as string,
        status: fields.status as string,
        serialNumber: fields.serial_number as string,
        updatedAtUs: parseUtcTimeUs(fields.updated_at as string) as number,
        entry,
      };
    }
  }
}

async function measure(
  queries: readonly ListQuery[],
  list: (query: ListQuery) => Uint8Array | Promise<Uint8Array>,
): Promise<RoundSample> {
  const startMs = performance.now();
  for (const query of queries) await list(query);
  const seconds = (performance.now() - startMs) / 1000;
  return { value: queries.length / seconds, seconds, details: { "ms/page": (seconds * 1000) / queries.length } };
}

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const { size, seed } = context;
  const store = await prepareRunStore(context.storesDirectory, RUNS[size], seed, context.log);
  const [front, cold] = (await openListFronts(store, [undefined, NO_CACHE_BYTES])) as [ListFront, ListFront];
  const peer = loadSqlite();
  let lists: SqliteLists | undefined;
  const databasePath = join(context.directory, "lists.db");
  if ("sqlite" in peer) {
    const startMs = performance.now();
    lists = await openSqliteLists(peer.sqlite, databasePath, listedRuns(front));
    context.log(`the peer's database was made in ${((performance.now() - startMs) / 1000).toFixed(1)} s`);
  }
  const random = createRandom(seed + 2);
  const some = (filter: Filter) => randomQueries(front.view, store, filter, QUERIES[size], random);
  const runners: OpenBenchmark["runners"] = {};
  for (const filter of FILTERS) {
    const queries = await some(filter);
    runners[`cached ${filter}`] = async () => {
      for (const query of queries) await front.list(query);
      return measure(queries, (query) => front.list(query));
    };
    runners[`cold ${filter}`] = async () => {
      await warmPageCache(logPath(store));
      return measure(await some(filter), (query) => cold.list(query));
    };
    if (lists === undefined) continue;
    const { list } = lists;
    for (const query of queries) {
      if (!Buffer.from(await front.list(query)).equals(list(query))) {
        throw new Error(`/runs?${query.text}: the two answer with different bytes`);
      }
    }
    runners[`sqlite ${filter}`] = async () => {
      await warmPageCache(databasePath);
      return measure(await some(filter), list);
    };
  }
  return {
    runners,
    ...("why" in peer && { missing: missingWithoutSqlite(SQLITE_CONTESTANTS, peer.why) }),
    notes: [`${store.runs} runs; ${QUERIES[size]} queries of each filter were answered with equal bytes by both`],
    async close() {
      front.close();
      cold.close();
      lists?.close();
    },
  };
}

export const listSqlite1m: Benchmark = {
  name: "list-sqlite-1m",
  measures:
    `Pages of ${PAGE} with exact total at 1,000,000 runs, one after the other, each filter by itself, value and offset uniformly random, in the ` +
    "process of the benchmark. cached and cold: GET /runs from path and query to the response's bytes, as in list-1m. sqlite: better-sqlite3 in " +
    "the same process, SELECT COUNT(*) and LIMIT with OFFSET over an index for each filter, entries stored as the JSON that is answered. " +
    "Database and log are read once before their rounds, so that the system's page cache holds them. Before the clock both answer the same queries with equal bytes.",
  metric: { name: "pages", unit: "pages/s", better: "higher" },
  contestants: FILTERS.flatMap((filter) => [
    { name: `cached ${filter}`, description: `the service, filter: ${filter}, entries in the cache` },
    { name: `cold ${filter}`, description: `the service, filter: ${filter}, entries from the log` },
    { name: `sqlite ${filter}`, description: `better-sqlite3, filter: ${filter}` },
  ]),
  peer: null,
  goals: FILTERS.flatMap((filter) =>
    ["cached", "cold"].map(
      (kind): Goal => ({
        kind: "ratio",
        contestant: `${kind} ${filter}`,
        peer: `sqlite ${filter}`,
        ratio: 20,
        direction: "at-least",
        source: "at least 20 times better-sqlite3's COUNT + OFFSET giving the same bytes",
      }),
    ),
  ),
  rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 1, measured: 7 } },
  timeoutSeconds: { smoke: 90, full: 1200 },
  open,
};
