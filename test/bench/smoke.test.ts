import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { BENCHMARKS } from "../../bench/benchmarks/registry.js";
import { parseReport } from "../../bench/harness/result.js";
import { allUws } from "../../http/server/uws-binary.js";
import { isFullSize } from "../helpers/test-size.js";

/**
 * In a commit's size those that guard what users feel, and of those that differ in their data alone the first: each starts processes of its
 * own, and its peers'.
 */
const GUARDING: ReadonlySet<string> = new Set([
  ...["durable-appends", "capture-ingest", "reads-during-ingest", "webhook-deliveries", "reads-during-deliveries"],
  ...["reads-during-processing", "run-detail-hot", "list-page-hot", "list-1m", "open-1m", "download-20mb"],
  ...["outlier-filter-surface-500k", "height-map-png-surface-500k", "ply-build-surface-500k"],
  ...["series-csv", "npy-download"],
]);
const CHOSEN = BENCHMARKS.filter(({ name }) => isFullSize || GUARDING.has(name));

/** Contestants that may be missing: what is not the project's, and what needs more builds of uWebSockets.js than load here. */
const MAY_BE_MISSING = [
  /sqlite|^open3d$|^libpng-|^sharp-1$|^nginx$|^papaparse$|^polars$/,
  ...(allUws().length < 2 ? [/-build-2023$/] : []),
  ...(allUws().length < 1 ? [/^bare-uws|^bare$|^guarded$/] : []),
];

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
  t.ok(isFullSize || CHOSEN.length === GUARDING.size, "those of a commit's size are all there");
  for (const { name, measures, contestants, peer, goals } of BENCHMARKS) {
    const names = contestants.map((contestant) => contestant.name);
    t.match(name, /^[a-z0-9-]+$/);
    t.ok(measures.length > 100, `${name} says what it measures`);
    t.equal(new Set(names).size, names.length, `${name}: contestants are unique`);
    t.ok(peer === null || names.includes(peer), `${name}: its peer takes part`);
    for (const goal of goals) {
      t.ok(names.includes(goal.contestant), `${name}: a goal's contestant takes part`);
      t.ok(goal.kind === "value" || names.includes(goal.peer), `${name}: a goal's peer takes part`);
      t.ok(goal.source.length > 0, `${name}: a goal has a source`);
    }
  }
  t.end();
});

t.test("every benchmark completes at smoke size, and leaves a valid result, a page and no data", async (t) => {
  const directory = t.testdir();
  const data = join(directory, "data");
  mkdirSync(data);
  const json = join(directory, "result.json");
  const html = join(directory, "report.html");
  const { code, stdout, stderr } = await runBench(
    ...["--only", ...CHOSEN.map(({ name }) => name)],
    ...["--size", "smoke", "--dir", data, "--json", json, "--html", html],
  );
  const report = parseReport(readFileSync(json, "utf8"), json);
  t.comment(`${CHOSEN.length} of ${BENCHMARKS.length} benchmarks`);
  for (const benchmark of CHOSEN) {
    const result = report.benchmarks.find(({ name }) => name === benchmark.name);
    // In the name, so that whoever reads only which tests failed knows why.
    t.equal(result?.error, null, result?.error ? `${benchmark.name} failed: ${result.error}` : `${benchmark.name} ran`);
    const missing = result?.missing ?? [];
    for (const { name, why } of missing) {
      t.ok(
        MAY_BE_MISSING.some((names) => names.test(name)),
        `${benchmark.name}: ${name} may be missing`,
      );
      t.ok(
        stdout.replaceAll(/\s+/g, " ").includes(`missing: ${name}: ${why}`),
        `${benchmark.name} says that ${name} is missing`,
      );
    }
    t.strictSame(
      result?.contestants.map((contestant) => [contestant.name, contestant.rounds.length]),
      benchmark.contestants
        .filter(({ name }) => !missing.some((absent) => absent.name === name))
        .map((contestant) => [contestant.name, benchmark.rounds.smoke.measured]),
      `${benchmark.name}: every contestant has its rounds`,
    );
    const goals = [...(result?.goals ?? []).map(({ goal }) => goal), ...(result?.unjudged ?? [])];
    t.same(new Set(goals), new Set(benchmark.goals), `${benchmark.name}: every goal is judged, or told as not judged`);
    if (missing.length === 0) t.equal(result?.unjudged, undefined);
    t.ok(stdout.includes(`== ${benchmark.name}`), `${benchmark.name} is on the terminal`);
    if (missing.length < benchmark.contestants.length)
      t.match(stderr, new RegExp(`\\[${benchmark.name}\\] round 1/`), `${benchmark.name} tells its progress`);
  }
  t.equal(code, 0, "missed goals do not fail a run that does not enforce them");
  t.strictSame(readdirSync(data), [], "temporary data is removed");
  const page = readFileSync(html, "utf8");
  t.match(page, /^<!doctype html>[\s\S]*<\/html>\n$/);
  t.notMatch(page, /NaN|undefined|Infinity|<script|<link|src=/);
  for (const { name } of CHOSEN) t.ok(page.includes(`<h2 id="${name}">`), `${name} is on the page`);
});

t.test("where no build of uWebSockets.js loads, what needs one is missing and the rest is measured", async (t) => {
  const json = join(t.testdir(), "result.json");
  const names = ["run-detail-hot", "framing-guard"];
  const args = ["--size", "smoke", "--json", json, "--only", ...names];
  const { code, stdout } = await runBenchWith({ UWS_PACKAGE: "none" }, ...args);
  t.equal(code, 0);
  t.match(stdout, /service serves on node:http/);
  const { benchmarks } = parseReport(readFileSync(json, "utf8"), json);
  t.strictSame(
    benchmarks.map(({ name, error, contestants }) => [name, error, contestants.map((contestant) => contestant.name)]),
    [
      ["run-detail-hot", null, ["service"]],
      ["framing-guard", null, []],
    ],
  );
});

t.test("wrong arguments end at once with a message and without measuring", async (t) => {
  const unknown = await runBench("--only", "no-such-thing");
  t.equal(unknown.code, 1);
  t.match(unknown.stderr, /no benchmark is called no-such-thing; there are: .*durable-appends/);
  const rounds = await runBench("--rounds", "0");
  t.equal(rounds.code, 1);
  t.match(rounds.stderr, /a whole number from 1/);
  const missing = await runBench("--compare", "never-saved");
  t.equal(missing.code, 1);
  t.match(missing.stderr, /never-saved\.json/);
});

t.test("--list tells what each benchmark measures", async (t) => {
  const { code, stdout } = await runBench("--list");
  t.equal(code, 0);
  for (const { name, measures } of BENCHMARKS) t.ok(stdout.includes(name) && stdout.includes(measures), name);
});

t.test("an interrupted run ends its processes and removes its data", async (t) => {
  const data = t.testdir();
  const args = [
    "dist/bench/main.js",
    "--only",
    "durable-appends",
    "--size",
    "smoke",
    "--rounds",
    "100000",
    "--dir",
    data,
  ];
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
