import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createRandom } from "../../core/random.js";
import { parseUtcTimeUs } from "../../core/timestamps.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark } from "../harness/benchmark.js";
import { type FilledRun, fillRuns } from "../load/filled-runs.js";
import { getBody, loadEnd, measureHttpLoad } from "../load/http/http-load.js";
import { listQuery, PAGE } from "../load/http/list-queries.js";
import { startServer } from "../load/http/server-process.js";
import { startService } from "../load/http/service-process.js";
import { loadFastify } from "../peers/fastify.js";
import { loadSqlite, missingWithoutSqlite, openDurableDatabase, type Sqlite } from "../peers/sqlite.js";
import { type SqliteRun, writeRuns } from "../peers/sqlite-lists.js";

const FASTIFY_SERVER = fileURLToPath(new URL("../peers/fastify-server.js", import.meta.url));
const CONNECTIONS = 32;
const SECONDS = 3;
const RUNS = { smoke: 200, full: 5_000 };
/** Different ones, asked for in turn. */
const PATHS = 64;

/** Pages of any filter of the service, at random offsets that have runs. */
function listPaths(runs: readonly FilledRun[], seed: number): string[] {
  const random = createRandom(seed + 1);
  const offset = (of: readonly FilledRun[]): number => random.integer(0, Math.max(0, of.length - 1));
  return Array.from({ length: PATHS }, (_, nth) => {
    const { programId, serialNumber, status } = random.pick(runs);
    const filters = [{}, { programId }, { status }, { serialNumber }][nth % 4] as Partial<FilledRun>;
    const matching = runs.filter((run) =>
      Object.entries(filters).every(([key, of]) => run[key as keyof FilledRun] === of),
    );
    return `/runs?${listQuery(filters, offset(matching)).text}`;
  });
}

/** Every run's list entry and document, as the service at `url` answers them, in order of creation. */
async function writePeer(sqlite: Sqlite, path: string, url: string, runs: readonly FilledRun[]): Promise<void> {
  const database = openDurableDatabase(sqlite, path);
  await writeRuns(database, listedRuns(url, runs));
  database.exec("CREATE TABLE document (id TEXT PRIMARY KEY, json BLOB) WITHOUT ROWID");
  const insert = database.prepare("INSERT INTO document VALUES (?, ?)");
  const documents: [string, Buffer][] = [];
  for (const { id } of runs) documents.push([id, await getBody(`${url}/runs/${id}`)]);
  database.exec("BEGIN");
  for (const [id, json] of documents) insert.run(id, json);
  database.exec("COMMIT; ANALYZE");
  database.close();
}

async function* listedRuns(url: string, runs: readonly FilledRun[]): AsyncGenerator<SqliteRun> {
  for (let end = runs.length; end > 0; end -= PAGE) {
    const limit = Math.min(PAGE, end);
    const page = JSON.parse((await getBody(`${url}/runs?limit=${limit}&offset=${end - limit}`)).toString()) as {
      runs: Record<string, string>[];
    };
    for (const entry of page.runs.toReversed()) {
      yield {
        programId: entry.program_id as string,
        status: entry.status as string,
        serialNumber: entry.serial_number as string,
        updatedAtUs: parseUtcTimeUs(entry.updated_at as string) as number,
        entry: Buffer.from(JSON.stringify(entry)),
      };
    }
  }
}

async function open(
  context: BenchmarkContext,
  pathsOf: (runs: readonly FilledRun[]) => string[],
): Promise<OpenBenchmark> {
  const service = await startService(context);
  const closers = [() => service.stop()];
  const close = async (): Promise<void> => {
    for (const closer of closers) await closer();
  };
  try {
    const runs = await fillRuns(service, context, RUNS[context.size]);
    const paths = pathsOf(runs);
    const measure = (url: string, pid: number) => () =>
      measureHttpLoad(context.httpClient, pid, {
        url,
        paths,
        connections: CONNECTIONS,
        until: loadEnd(context.size, SECONDS),
        directory: context.directory,
      });
    const runners: OpenBenchmark["runners"] = { service: measure(service.url, service.pid) };
    const notes = [
      `load by ${context.httpClient}, ${CONNECTIONS} connections; ${runs.length} runs, ${paths.length} paths in turn`,
    ];
    const sqlite = loadSqlite();
    const web = loadFastify();
    const why = "why" in web ? web.why : "why" in sqlite ? sqlite.why : undefined;
    if (why !== undefined || "why" in sqlite) {
      return { runners, missing: missingWithoutSqlite(["fastify-sqlite"], why as string), notes, close };
    }
    const database = join(context.directory, "fastify.db");
    await writePeer(sqlite.sqlite, database, service.url, runs);
    const peer = await startServer("the Fastify service", [FASTIFY_SERVER, database], context.profileDirectory);
    closers.push(() => peer.stop());
    for (const path of paths) {
      const [own, other] = [await getBody(service.url + path), await getBody(peer.url + path)];
      if (!own.equals(other)) throw new Error(`${path}: the two services answer with different bytes`);
    }
    notes.push("every path was answered with equal bytes by both");
    runners["fastify-sqlite"] = measure(peer.url, peer.pid);
    return { runners, notes, close };
  } catch (error) {
    await close().catch(() => {});
    throw error;
  }
}

function besideFastify(
  name: string,
  what: string,
  pathsOf: (runs: readonly FilledRun[], seed: number) => string[],
): Benchmark {
  return {
    name,
    measures:
      `${what} at ${RUNS.full} runs, over ${CONNECTIONS} connections that each keep one request in flight (closed loop), by one thread of the load ` +
      "generator; from sending a request to its whole answer. The peer is what a team would write instead: Fastify over better-sqlite3, " +
      "with an index for every filter and every answer's JSON stored ready; no log on its side, the default on the service's.",
    metric: { name: "throughput", unit: "req/s", better: "higher" },
    contestants: [
      { name: "service", description: "the service as shipped, default settings" },
      { name: "fastify-sqlite", description: "Fastify with schemas, better-sqlite3, one process" },
    ],
    peer: "fastify-sqlite",
    goals: [
      {
        kind: "ratio",
        contestant: "service",
        peer: "fastify-sqlite",
        ratio: 5,
        direction: "at-least",
        source: "the front beside Fastify and better-sqlite3",
      },
    ],
    rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 1, measured: 9 } },
    timeoutSeconds: { smoke: 120, full: 600 },
    open: (context) => open(context, (runs) => pathsOf(runs, context.seed)),
  };
}

export const fastifyRunDetail = besideFastify(
  "fastify-run-detail",
  `GET /runs/{id} of ${PATHS} runs in turn`,
  (runs, seed) => {
    const random = createRandom(seed + 1);
    return Array.from({ length: PATHS }, () => `/runs/${random.pick(runs).id}`);
  },
);

export const fastifyListPage = besideFastify(
  "fastify-list-page",
  `GET /runs with limit ${PAGE}, ${PATHS} queries without a filter, by program, status or serial number, at random offsets in turn,`,
  listPaths,
);
