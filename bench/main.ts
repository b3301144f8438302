/** `npm run bench`: runs the benchmarks and reports. README.md beside this file explains method and reading. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { Command, InvalidArgumentError, Option } from "commander";
import { BENCHMARKS, findBenchmark } from "./benchmarks/registry.js";
import type { Benchmark, Size } from "./harness/benchmark.js";
import { runInProcess } from "./harness/child-runner.js";
import { compareReports } from "./harness/comparison.js";
import { describeMachine } from "./harness/machine.js";
import {
  type BenchmarkResult,
  type BenchReport,
  parseReport,
  RESULT_FORMAT,
  RESULT_VERSION,
} from "./harness/result.js";
import { failedBenchmark, summarizeBenchmark } from "./harness/summary.js";
import type { HttpClient } from "./load/http/http-client.js";
import { chooseHttpClient } from "./load/http/http-load.js";
import { htmlReport } from "./report/html-report.js";
import { benchmarkText, comparisonText, goalSummaryText, machineText } from "./report/text-report.js";

interface Options {
  list?: true;
  only?: string[];
  size: Size;
  rounds?: number;
  dir: string;
  stores?: string;
  seed: number;
  httpClient: HttpClient | "auto";
  json?: string;
  html?: string;
  save?: string;
  compare?: string;
  enforce?: true;
  cpuProf?: string;
  quiet?: true;
}

/** A day: a timer of Node takes no more than 24.8 of them, and fires at once when given more. */
const LONGEST_TIMEOUT_SECONDS = 86_400;
const SAVED_DIRECTORY = "bench-results";

function wholeNumber(minimum: number): (text: string) => number {
  return (text) => {
    if (!/^\d{1,9}$/.test(text) || Number(text) < minimum) {
      throw new InvalidArgumentError(`it must be a whole number from ${minimum}`);
    }
    return Number(text);
  };
}

function savedName(text: string): string {
  if (!/^[\w.-]{1,100}$/.test(text)) throw new InvalidArgumentError("it must be a plain name");
  return text;
}

const command = new Command("bench")
  .description("Runs the service's benchmarks, each in its own process, and reports medians with their spread.")
  .option("--list", "list the benchmarks with what they measure, and end")
  .option("--only <names...>", "run these benchmarks")
  .addOption(new Option("--size <size>", "smoke only shows that they run").choices(["smoke", "full"]).default("full"))
  .option("--rounds <n>", "measured rounds instead of each benchmark's own number", wholeNumber(1))
  .option("--dir <directory>", "where temporary data goes: chooses the disk", tmpdir())
  .option("--stores <directory>", "keep the stores of a million runs there, and take them from there")
  .option("--seed <n>", "of generated data", wholeNumber(0), 1)
  .addOption(
    new Option("--http-client <client>", "load generator").choices(["auto", "wrk", "autocannon"]).default("auto"),
  )
  .option("--json <file>", "write the result as JSON")
  .option("--html <file>", "write the report as one HTML page")
  .option("--save <name>", `keep the result as ${SAVED_DIRECTORY}/<name>.json`, savedName)
  .option("--compare <file>", "compare with a result: a file, or a name given to --save")
  .option("--enforce", "exit with 2 when a goal is missed")
  .option("--cpu-prof <directory>", "write CPU profiles of all Node processes there (distorts the figures)")
  .option("--quiet", "no progress lines")
  .parse();

function readSaved(name: string): BenchReport {
  const path = /^[\w-]+$/.test(name) ? join(SAVED_DIRECTORY, `${name}.json`) : name;
  return parseReport(readFileSync(path, "utf8"), path);
}

function writeOut(path: string, text: string): void {
  mkdirSync(dirname(resolve(path)), { recursive: true });
  writeFileSync(path, text);
  console.log(`written: ${path}`);
}

async function runOne(
  benchmark: Benchmark,
  options: Options,
  directory: string,
  signal: AbortSignal,
): Promise<BenchmarkResult> {
  const own = benchmark.rounds[options.size];
  const measured = options.rounds ?? own.measured;
  // Smoke figures mean nothing, whatever the host takes.
  const again = options.size === "full" ? measured : 0;
  const startedAt = new Date().toISOString();
  const startMs = performance.now();
  const data = mkdtempSync(join(directory, `${benchmark.name}-`));
  const socketDirectory = mkdtempSync(join(tmpdir(), "bench-cell-"));
  try {
    const figures = await runInProcess(
      {
        name: benchmark.name,
        size: options.size,
        directory: data,
        storesDirectory: resolve(options.stores ?? join(directory, "stores")),
        socketDirectory,
        seed: options.seed,
        httpClient: options.httpClient === "auto" ? chooseHttpClient(options.size) : options.httpClient,
        profileDirectory: options.cpuProf === undefined ? null : resolve(options.cpuProf),
        rounds: { warmup: own.warmup, measured, again },
      },
      {
        timeoutSeconds: Math.min(
          LONGEST_TIMEOUT_SECONDS,
          benchmark.timeoutSeconds[options.size] * Math.max(1, (measured + again) / own.measured),
        ),
        onLog: (line) => {
          if (options.quiet === undefined) console.error(`[${benchmark.name}] ${line}`);
        },
        signal,
      },
    );
    return summarizeBenchmark(benchmark, figures);
  } catch (error) {
    signal.throwIfAborted();
    return failedBenchmark(benchmark, startedAt, (performance.now() - startMs) / 1000, (error as Error).message);
  } finally {
    for (const path of [data, socketDirectory]) rmSync(path, { recursive: true, force: true });
  }
}

async function run(options: Options): Promise<void> {
  const chosen = options.only === undefined ? BENCHMARKS : options.only.map(findBenchmark);
  if (options.list !== undefined) {
    for (const { name, measures, contestants } of chosen) {
      console.log(`${name}\n    ${measures}\n    contestants: ${contestants.map((c) => c.name).join(", ")}\n`);
    }
    return;
  }
  // Before hours of measuring: a comparison that cannot be read must not cost them.
  const saved = options.compare === undefined ? null : readSaved(options.compare);
  const interruption = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => interruption.abort(new Error(`ended by ${signal}`)));
  }
  const startMs = performance.now();
  const directory = mkdtempSync(join(resolve(options.dir), "inspection-bench-"));
  try {
    const report: BenchReport = {
      format: RESULT_FORMAT,
      version: RESULT_VERSION,
      startedAt: new Date().toISOString(),
      seconds: 0,
      size: options.size,
      seed: options.seed,
      machine: describeMachine(directory),
      benchmarks: [],
    };
    console.log(machineText(report.machine));
    if (options.size === "smoke")
      console.log("\nsmoke size: it shows that the benchmarks run; its figures mean nothing");
    for (const benchmark of chosen) {
      const result = await runOne(benchmark, options, directory, interruption.signal);
      report.benchmarks.push(result);
      console.log(`\n${benchmarkText(result)}`);
    }
    report.seconds = (performance.now() - startMs) / 1000;
    const comparison = saved === null ? null : compareReports(report, saved, options.compare as string);
    if (comparison !== null) console.log(`\n${comparisonText(comparison)}`);
    console.log(`\n${goalSummaryText(report)}\n`);
    const json = `${JSON.stringify(report)}\n`;
    if (options.json !== undefined) writeOut(options.json, json);
    if (options.save !== undefined) writeOut(join(SAVED_DIRECTORY, `${options.save}.json`), json);
    if (options.html !== undefined) writeOut(options.html, htmlReport(report, comparison));
    if (report.benchmarks.some(({ error }) => error !== null)) process.exitCode = 1;
    else if (options.enforce !== undefined && report.benchmarks.some(({ goals }) => goals.some(({ met }) => !met))) {
      process.exitCode = 2;
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

try {
  await run(command.opts<Options>());
} catch (error) {
  console.error(`bench: ${(error as Error).message}`);
  process.exitCode = 1;
}
