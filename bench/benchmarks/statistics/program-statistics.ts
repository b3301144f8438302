import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import type {
  Benchmark,
  BenchmarkContext,
  MissingContestant,
  OpenBenchmark,
  RoundSample,
} from "../../harness/benchmark.js";
import { CHECKED_PROGRAM, prepareCheckStore } from "../../load/check-store.js";
import { startService } from "../../load/http/service-process.js";
import { loadPeer } from "../../peers/peer-package.js";
import { startPython } from "../../peers/python-peer.js";

/** Reads the file and computes the same figures of each check; prints how long it took, in ms, and the mean of the first check's values. */
const PANDAS = `
import sys, time, numpy, pandas
print("ready", flush=True)
for line in sys.stdin:
    begin = time.perf_counter()
    table = pandas.read_csv(line.strip(), usecols=["name", "status", "value", "nominal", "threshold"])
    first = None
    for name, rows in table.groupby("name"):
        v = rows.value.to_numpy()
        m, s = v.mean(), v.std(ddof=1)
        short = numpy.abs(numpy.diff(v)).mean() / 1.128
        q1, median, q3 = numpy.percentile(v, [25, 50, 75])
        width = 2 * (q3 - q1) / len(v) ** (1 / 3)
        bins = int(min(50, max(5, numpy.ceil((v.max() - v.min()) / width)))) if width > 0 else 5
        numpy.histogram(v, bins=bins)
        [(p.mean(), p.min(), p.max()) for p in numpy.array_split(v, min(200, len(v)))]
        rows.status.value_counts()
        first = m if first is None else first
    print((time.perf_counter() - begin) * 1000, first, flush=True)
`;

/** The part of @duckdb/node-api that is used here. */
interface DuckDb {
  DuckDBInstance: {
    create(path: string): Promise<{
      connect(): Promise<{ runAndReadAll(sql: string): Promise<{ getRows(): unknown[][] }> }>;
    }>;
  };
}

const duckSql = (file: string) => `
  select name, count(*), avg(value), stddev_samp(value), min(value), max(value), quantile_cont(value, [0.25, 0.5, 0.75]),
    avg(range) / 1.128
  from (select name, value, abs(value - lag(value) over (partition by name order by completed_at)) as range
        from read_csv('${file}', header = true))
  group by name order by name`;

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const store = await prepareCheckStore(context);
  const service = await startService(context, store.path);
  const program = `${service.url}/programs/${CHECKED_PROGRAM}`;
  const timed = async (work: () => Promise<number>): Promise<RoundSample> => {
    const startMs = performance.now();
    const bytes = await work();
    const ms = performance.now() - startMs;
    return { value: ms, seconds: ms / 1000, details: { "MB/s": bytes / 1e3 / ms } };
  };
  const read = async (url: string): Promise<number> => {
    const response = await fetch(url, { headers: { "Accept-Encoding": "identity" } });
    if (response.status !== 200) throw new Error(`${url}: ${response.status} ${await response.text()}`);
    let bytes = 0;
    for await (const chunk of response.body as ReadableStream<Uint8Array>) bytes += chunk.length;
    return bytes;
  };
  // Its first answer may have to make what is derived; that is not what a round measures.
  await read(`${program}/statistics`);
  const file = join(context.directory, "checks.csv");
  const response = await fetch(`${program}/checks.csv`, { headers: { "Accept-Encoding": "identity" } });
  await pipeline(Readable.fromWeb(response.body as ReadableStream<Uint8Array>), createWriteStream(file));
  let round = 0;
  const runners: OpenBenchmark["runners"] = {
    // A time bound that no round had before, and that leaves out nothing.
    first: () =>
      timed(() =>
        read(`${program}/statistics?completed_since=2020-01-01T00:00:00.${String(++round).padStart(6, "0")}Z`),
      ),
    kept: () => timed(() => read(`${program}/statistics`)),
    csv: () => timed(() => read(`${program}/checks.csv`)),
  };
  const missing: MissingContestant[] = [];
  const pandas = await startPython(context, ["numpy", "pandas"], PANDAS);
  if ("why" in pandas) missing.push({ name: "pandas", why: pandas.why });
  else {
    runners.pandas = async () => {
      const ms = Number((await pandas.ask(file)).split(" ")[0]);
      return { value: ms, seconds: ms / 1000 };
    };
  }
  const duck = loadPeer<DuckDb>("@duckdb/node-api");
  if ("why" in duck) missing.push({ name: "duckdb", why: duck.why });
  else {
    const connection = await (await duck.loaded.DuckDBInstance.create(":memory:")).connect();
    runners.duckdb = () => timed(async () => (await connection.runAndReadAll(duckSql(file))).getRows().length);
  }
  return { runners, missing, notes: [`${store.runs} runs, ${store.checks} checks`] };
}

export const programStatistics: Benchmark = {
  name: "program-statistics",
  measures:
    "Statistics of a program with 1,000,000 runs of 10 checks, over HTTP from the service as shipped: a question that nobody asked before, and one that is kept. " +
    "The same program's checks.csv, read to its end. pandas and DuckDB read that file, and compute the same figures of each check.",
  metric: { name: "time to the whole answer", unit: "ms", better: "lower" },
  contestants: [
    { name: "first", description: "a new question" },
    { name: "kept", description: "the same question again" },
    { name: "csv", description: "checks.csv" },
    { name: "pandas", description: "pandas and numpy read the file" },
    { name: "duckdb", description: "DuckDB reads the file" },
  ],
  peer: "pandas",
  goals: [
    { contestant: "first", direction: "at-most", target: 3_000, source: "a program's first statistics in 3 s" },
    { contestant: "kept", direction: "at-most", target: 100, source: "later ones in 100 ms" },
  ],
  rounds: { warmup: 0, measured: 6 },
  timeoutSeconds: 1_800,
  open,
};
