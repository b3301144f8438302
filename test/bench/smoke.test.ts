import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { LEAST_ROUNDS } from "../../bench/harness/guard.js";
import { parseRun } from "../../bench/harness/result.js";
import { BENCHMARKS } from "../../bench/registry.js";
import { HAS_UWS } from "../helpers/http/fronts-here.js";
import { listOf } from "../helpers/list-of.js";
import { isFullSize, longOnly } from "../helpers/test-size.js";

/**
 * A commit runs one benchmark of each kind of load, and one without a service; other tests run series-csv. Nearly all
 * of the time goes into starting processes: three seconds of CPU each. The other benchmarks start in the same way.
 */
const OF_EACH_KIND = [
  ...["reads-during-ingest", "webhook-deliveries", "run-detail-hot", "list-1m", "outlier-filter-surface-10m"],
];
const CHOSEN = BENCHMARKS.filter(({ name }) => isFullSize || OF_EACH_KIND.includes(name));

/** Contestants from outside the project, which may be missing. */
const MAY_BE_MISSING = HAS_UWS ? ["open3d", "sharp", "polars"] : ["open3d", "sharp", "polars", "bare-uws"];

interface BenchRun {
  code: number | null;
  stdout: string;
  stderr: string;
}

function runBench(...args: string[]): Promise<BenchRun> {
  return runBenchWith({}, ...args);
}

async function runBenchWith(environment: Record<string, string>, ...args: string[]): Promise<BenchRun> {
  const child = spawn(process.execPath, ["dist/bench/main.js", ...args], {
    env: { ...process.env, ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const [code] = (await once(child, "close")) as [number | null];
  return { code, stdout, stderr };
}

t.test("declarations are consistent: names, peers and goals refer to contestants", (t) => {
  t.equal(new Set(BENCHMARKS.map(({ name }) => name)).size, BENCHMARKS.length, "names are unique");
  for (const { name, measures, contestants, peer, goals, rounds } of BENCHMARKS) {
    const names = contestants.map((contestant) => contestant.name);
    t.match(name, /^[a-z0-9-]+$/);
    t.ok(measures.length > 100, `${name} says what it measures`);
    t.equal(new Set(names).size, names.length, `${name}: contestants are unique`);
    t.ok(peer === null || names.includes(peer), `${name}: its peer takes part`);
    t.ok(rounds.measured >= LEAST_ROUNDS, `${name} has rounds enough to guard it`);
    for (const goal of goals) {
      t.ok(names.includes(goal.contestant), `${name}: a goal's contestant takes part`);
      t.ok(goal.peer === undefined || names.includes(goal.peer), `${name}: a goal's peer takes part`);
      t.ok(goal.source.length > 0, `${name}: a goal has a source`);
    }
  }
  t.end();
});

t.test("every benchmark completes at smoke size, and leaves a valid result and no data", async (t) => {
  const directory = t.testdir();
  const data = join(directory, "data");
  mkdirSync(data);
  const json = join(directory, "result.json");
  const { code, stdout, stderr } = await runBench(
    ...["--only", ...CHOSEN.map(({ name }) => name)],
    ...["--size", "smoke", "--dir", data, "--save", json],
  );
  const report = parseRun(readFileSync(json, "utf8"), json);
  t.ok(
    OF_EACH_KIND.every((name) => CHOSEN.some((benchmark) => benchmark.name === name)),
    "names of benchmarks",
  );
  t.comment(`${CHOSEN.length} of ${BENCHMARKS.length} benchmarks`);
  for (const benchmark of CHOSEN) {
    const result = report.benchmarks.find(({ name }) => name === benchmark.name);
    // In the name, so that whoever reads only which tests failed knows why.
    t.equal(result?.error, null, result?.error ? `${benchmark.name} failed: ${result.error}` : `${benchmark.name} ran`);
    const missing = result?.missing ?? [];
    for (const { name, why } of missing) {
      t.ok(MAY_BE_MISSING.includes(name), `${benchmark.name}: ${name} may be missing`);
      t.ok(
        stdout.replaceAll(/\s+/g, " ").includes(`missing: ${name}: ${why}`),
        `${benchmark.name} says that ${name} is missing`,
      );
    }
    t.strictSame(
      result?.contestants.map((contestant) => [contestant.name, contestant.rounds.length]),
      benchmark.contestants
        .filter(({ name }) => !missing.some((absent) => absent.name === name))
        .map((contestant) => [contestant.name, 1]),
      `${benchmark.name}: every contestant has its rounds`,
    );
    t.ok(stdout.includes(`== ${benchmark.name}`), `${benchmark.name} is on the terminal`);
    if (missing.length < benchmark.contestants.length)
      t.match(stderr, new RegExp(`\\[${benchmark.name}\\] round 1/`), `${benchmark.name} tells its progress`);
  }
  t.equal(code, 0, "missed goals do not fail a run");
  t.strictSame(readdirSync(data), [], "temporary data is removed");
});

t.test(
  "where no build of uWebSockets.js loads, what needs one is missing and the rest is measured",
  longOnly,
  async (t) => {
    const json = join(t.testdir(), "result.json");
    const args = ["--size", "smoke", "--save", json, "--only", "run-detail-hot"];
    const { code, stdout } = await runBenchWith({ UWS_PACKAGE: "none" }, ...args);
    t.equal(code, 0);
    t.match(stdout, /service serves on node:http/);
    const { benchmarks } = parseRun(readFileSync(json, "utf8"), json);
    t.match(
      benchmarks,
      listOf({ error: null, contestants: listOf({ name: "service" }), missing: listOf({ name: "bare-uws" }) }),
    );
  },
);

t.test("wrong arguments end at once with 2 and a message, without measuring", async (t) => {
  const unknown = await runBench("--only", "no-such-thing");
  t.match(unknown, { code: 2, stderr: /no benchmark is called no-such-thing; there are: .*durable-appends/ });
  t.match(await runBench("--rounds", "0"), { code: 2, stderr: /a whole number from 1/ });
});

t.test("--list tells what each benchmark measures", async (t) => {
  const { code, stdout } = await runBench("--list");
  t.equal(code, 0);
  for (const { name, measures } of BENCHMARKS) t.ok(stdout.includes(name) && stdout.includes(measures), name);
});

t.test("bench/README.md: its commands are understood, and its table has each benchmark", async (t) => {
  const text = readFileSync("bench/README.md", "utf8");
  const commands = [...text.matchAll(/^ {4}npm run bench(?: -- (.*?))?(?: {2,}|$)/gm)].map(([, args = ""]) => args);
  t.ok(commands.includes("--save") && commands.length >= 8, `${commands.length} commands`);
  // All in one, and none is carried out: --list ends before.
  const options = commands.join(" ").split(" ").filter(Boolean);
  t.match(await runBench("--list", ...options), { code: 0, stderr: "" });
  // "reads-during-ingest, -deliveries" and "outlier-filter-…" stand for several names.
  const rows = [...text.matchAll(/^\| ([a-z0-9…, -]+) \|/gm)].flatMap(([, cell = ""]) => cell.split(", "));
  const isNamed = (name: string) =>
    rows.some((row) => (row.startsWith("-") ? name.endsWith(row) : name.startsWith(row.replace("…", ""))));
  t.strictSame(
    BENCHMARKS.map(({ name }) => name).filter((name) => !isNamed(name)),
    [],
  );
});

t.test("an interrupted run ends its processes and removes its data", async (t) => {
  const data = t.testdir();
  const own = ["--only", "series-csv", "--size", "smoke", "--rounds", "100000", "--dir", data];
  const args = ["dist/bench/main.js", ...own];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "ignore", "pipe"] });
  let stderr = "";
  let interrupted = false;
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
    if (interrupted || !stderr.includes("round 1/")) return;
    interrupted = true;
    child.kill("SIGTERM");
  });
  const [code] = (await once(child, "close")) as [number | null];
  t.ok(interrupted, "it was measuring");
  t.equal(code, 1);
  t.match(stderr, /bench: ended by SIGTERM/);
  t.strictSame(readdirSync(data), []);
});
