import { createWriteStream } from "node:fs";
import { get, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { createRandom } from "../../../core/random.js";
import type {
  Benchmark,
  BenchmarkContext,
  MissingContestant,
  OpenBenchmark,
  RoundSample,
} from "../../harness/benchmark.js";
import { atMost } from "../../harness/goal.js";
import { CHECKED_PROGRAM, CHECKS, startCheckedService, startColdService } from "../../load/check-store.js";
import { getJson } from "../../load/http/http-load.js";
import { cpuSecondsOf, forgetMostResidentBytes, residentBytesOf } from "../../load/process-cpu.js";
import { fetchTotal, produceRun, waitUntil } from "../../load/run-producer.js";
import { loadPeer } from "../../peers/peer-package.js";
import { startPython } from "../../peers/python-peer.js";

/** Reads the file and computes the same figures of each check; prints the time in ms, the CPU seconds, and what `FIGURES` name, by check. */
const PANDAS = `
import sys, time, json, numpy, pandas
print("ready", flush=True)
for line in sys.stdin:
    begin, cpu = time.perf_counter(), time.process_time()
    table = pandas.read_csv(line.strip(), usecols=["name", "status", "value", "nominal", "threshold"])
    found = {}
    for name, rows in table.groupby("name"):
        v = rows.value.to_numpy()
        short = numpy.abs(numpy.diff(v)).mean() / 1.128
        q1, median, q3 = numpy.percentile(v, [25, 50, 75])
        width = 2 * (q3 - q1) / len(v) ** (1 / 3)
        bins = int(min(50, max(5, numpy.ceil((v.max() - v.min()) / width)))) if width > 0 else 5
        numpy.histogram(v, bins=bins)
        [(p.mean(), p.min(), p.max()) for p in numpy.array_split(v, min(200, len(v)))]
        rows.status.value_counts()
        found[name] = [len(v), v.mean(), v.std(ddof=1), v.min(), v.max(), median, short]
    print((time.perf_counter() - begin) * 1000, time.process_time() - cpu, json.dumps(found, default=float), flush=True)
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
  select name, count(*), avg(value), stddev_samp(value), min(value), max(value), median(value), avg(range) / 1.128, quantile_cont(value, [0.25, 0.75])
  from (select name, value, abs(value - lag(value) over (partition by name order by completed_at)) as range
        from read_csv('${file}', header = true))
  group by name order by name`;

/** By check: what all contestants must find alike. */
type Figures = Record<string, number[]>;
const FIGURES = ["count", "mean", "standard deviation", "minimum", "maximum", "median", "spread from part to part"];
const MOST_DIFFERENCE = 1e-9;

interface ProgramStatisticsResponse {
  checks: ({ name: string } & Record<
    "values" | "mean" | "standard_deviation" | "minimum" | "maximum" | "median" | "lower_limit" | "upper_limit" | "cp",
    number
  >)[];
}

function figuresOf({ checks }: ProgramStatisticsResponse): Figures {
  return Object.fromEntries(
    checks.map(({ name, values, mean, standard_deviation, minimum, maximum, median, lower_limit, upper_limit, cp }) => [
      name,
      [values, mean, standard_deviation, minimum, maximum, median, (upper_limit - lower_limit) / (6 * cp)],
    ]),
  );
}

function assertSame(who: string, found: Figures, own: Figures): void {
  for (const [name, figures] of Object.entries(own)) {
    for (const [at, figure] of figures.entries()) {
      const other = found[name]?.[at] ?? Number.NaN;
      if (Math.abs(other - figure) <= MOST_DIFFERENCE * Math.abs(figure)) continue;
      throw new Error(`${name}: ${who} finds ${other} as ${FIGURES[at]}, and the service ${figure}`);
    }
  }
}

/** The answer, once there is one: the service says when to ask again. */
async function answerTo(url: string): Promise<IncomingMessage> {
  for (;;) {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => get(url, resolve).on("error", reject));
    if (answer.statusCode === 200) return answer;
    answer.resume();
    if (answer.statusCode !== 503) throw new Error(`${url} answered ${answer.statusCode}`);
    await sleep(1_000 * Number(answer.headers["retry-after"] ?? 1));
  }
}

/** Reads an answer to its end, or until nobody wants it, and gives its length. */
export async function bytesOf(url: string, isOver = (): boolean => false): Promise<number> {
  let bytes = 0;
  for await (const chunk of await answerTo(url)) {
    bytes += (chunk as Buffer).length;
    if (isOver()) break;
  }
  return bytes;
}

/** @param work of the service, until the answer is there @returns the time, and memory of the process before and at most meanwhile */
async function timedWork(pid: number, work: () => Promise<number>): Promise<RoundSample> {
  forgetMostResidentBytes(pid);
  const before = residentBytesOf(pid).now;
  const [startMs, startCpu] = [performance.now(), cpuSecondsOf(pid)];
  const bytes = await work();
  const ms = performance.now() - startMs;
  const details = {
    "MB/s": bytes / 1e3 / ms,
    "MB before": before / 1e6,
    "at most MB": residentBytesOf(pid).most / 1e6,
    "CPU s": cpuSecondsOf(pid) - startCpu,
  };
  return { value: ms, seconds: ms / 1000, details };
}

let questions = 0;
/** A question that nobody has asked: a time bound that leaves out nothing. */
export const newQuestion = (program: string): string =>
  `${program}/statistics?completed_since=2020-01-01T00:00:00.${String(++questions).padStart(6, "0")}Z`;

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const service = await startCheckedService(context);
  const { runs, program, url, connect } = service;
  const timed = (work: () => Promise<number>) => timedWork(service.pid, work);
  const file = join(context.directory, "checks.csv");
  await pipeline(await answerTo(`${program}/checks.csv`), createWriteStream(file));
  const own = figuresOf(await getJson<ProgramStatisticsResponse>(`${program}/statistics`));
  const client = await connect();
  const random = createRandom(context.seed);
  const plan = { program: { id: CHECKED_PROGRAM, name: "Housing" }, serialNumber: "SN", steps: 0, events: 0 };
  const runners: OpenBenchmark["runners"] = {
    first: () => timed(() => bytesOf(newQuestion(program))),
    kept: async () => {
      await bytesOf(`${program}/statistics`);
      return timed(() => bytesOf(`${program}/statistics`));
    },
    later: async () => {
      const before = await fetchTotal(url, "completed");
      await produceRun(client, random, { ...plan, checks: CHECKS });
      await waitUntil("the end of the run", async () => (await fetchTotal(url, "completed")) > before);
      return timed(() => bytesOf(`${program}/statistics`));
    },
    csv: () => timed(() => bytesOf(`${program}/checks.csv`)),
    cold: async () => {
      const { pid, program: ofCold, stop } = await startColdService(context);
      const sample = await timedWork(pid, () => bytesOf(`${ofCold}/statistics`));
      await stop();
      return sample;
    },
  };
  const missing: MissingContestant[] = [];
  const pandas = await startPython(context, ["numpy", "pandas"], PANDAS);
  if ("why" in pandas) missing.push({ name: "pandas", why: pandas.why });
  else {
    runners.pandas = async () => {
      const [ms = "", cpu = "", ...found] = (await pandas.ask(file)).split(" ");
      assertSame("pandas", JSON.parse(found.join(" ")) as Figures, own);
      return { value: Number(ms), seconds: Number(ms) / 1000, details: { "CPU s": Number(cpu) } };
    };
  }
  const duck = loadPeer<DuckDb>("@duckdb/node-api");
  if ("why" in duck) missing.push({ name: "duckdb", why: duck.why });
  else {
    const connection = await (await duck.loaded.DuckDBInstance.create(":memory:")).connect();
    runners.duckdb = async () => {
      const startMs = performance.now();
      const rows = (await connection.runAndReadAll(duckSql(file))).getRows();
      const ms = performance.now() - startMs;
      const found = rows.map(([name, ...figures]) => [name, figures.slice(0, FIGURES.length).map(Number)] as const);
      assertSame("DuckDB", Object.fromEntries(found) as Figures, own);
      return { value: ms, seconds: ms / 1000 };
    };
  }
  return { runners, missing, notes: [`${runs} runs with ${CHECKS} checks each`] };
}

export const programStatistics: Benchmark = {
  name: "program-statistics",
  measures:
    "Statistics of a program with 1,000,000 runs of 10 checks, over HTTP from the service as shipped: a question that nobody asked before, one that is kept, and " +
    "one after another run has ended. The first question to a service that has just started, without columns: it makes them from the log, and says 503 until it has " +
    "an answer; the file cache of the system is warm. The same program's checks.csv, read to its end. pandas and DuckDB read that file, and compute the same figures " +
    `of each check: they must be equal to ${MOST_DIFFERENCE}. Memory is the resident memory of the service's process, before and at most meanwhile.`,
  metric: { name: "time to the whole answer", unit: "ms", better: "lower" },
  contestants: [
    { name: "first", description: "a new question; the columns are there" },
    { name: "cold", description: "the first question after a start, without columns" },
    { name: "kept", description: "the same question again" },
    { name: "later", description: "the same question after another run has ended" },
    { name: "csv", description: "checks.csv" },
    { name: "pandas", description: "pandas and numpy read the file" },
    { name: "duckdb", description: "DuckDB reads the file" },
  ],
  peer: "pandas",
  goals: [
    atMost("first", 3_000, "a program's first statistics in 3 s"),
    atMost("kept", 100, "later ones in 100 ms"),
    atMost("later", 100, "later ones in 100 ms"),
    atMost("csv", 14_100, "100 MB/s of text; the file has 1,411 MB"),
  ],
  rounds: { warmup: 0, measured: 6 },
  timeoutSeconds: 1_800,
  open,
};
