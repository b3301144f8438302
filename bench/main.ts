/** `npm run bench`: runs the benchmarks and reports. README.md beside this file explains the method, and how to read the report. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { Command, InvalidArgumentError, Option } from "commander";
import type { Benchmark, Size } from "./harness/benchmark.js";
import { runInProcess } from "./harness/child-runner.js";
import { checkSavedRun, guardBenchmark, guardExitCode, UseError } from "./harness/guard.js";
import { describeMachine } from "./harness/machine.js";
import { type BenchmarkResult, type BenchRun, parseRun, RESULT_FORMAT, RESULT_VERSION } from "./harness/result.js";
import { benchmarkText, goalSummaryText, guardText, machineText } from "./harness/text-report.js";
import { BENCHMARKS, findBenchmark } from "./registry.js";

interface Options {
  list?: true;
  only?: string[];
  size: Size;
  rounds?: number;
  dir: string;
  stores?: string;
  save?: string;
  guard?: string;
}

const SAVED = "bench-results/saved.json";
const SEED = 1;
const SMOKE_TIMEOUT_SECONDS = 120;
/** A day. A timer of Node takes at most 24.8 days, and fires at once when given more. */
const LONGEST_TIMEOUT_SECONDS = 86_400;

function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError("it must be a whole number from 1");
  return Number(text);
}

function parseOptions(): Options {
  return new Command("bench")
    .description("Runs the service's benchmarks, each in its own process, and reports medians with their spread.")
    .option("--list", "list the benchmarks with what they measure, and end")
    .option("--only <names...>", "run these benchmarks")
    .addOption(new Option("--size <size>", "smoke only shows that they run").choices(["smoke", "full"]).default("full"))
    .option("--rounds <n>", "measured rounds instead of each benchmark's own number", wholeNumber)
    .option("--dir <directory>", "where temporary data goes: chooses the disk", tmpdir())
    .option("--stores <directory>", "keep the stores of a million runs there, and take them from there")
    .addOption(new Option("--save [file]", "save every round as JSON").preset(SAVED))
    .addOption(new Option("--guard [file]", "compare with a saved run; exit with 1 on a regression").preset(SAVED))
    .addHelpText("after", "\nExit codes: 0 all ran; 1 a benchmark failed, or --guard found a regression; 2 wrong use.")
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
    .parse()
    .opts<Options>();
}

function chooseBenchmarks(names: readonly string[] | undefined): readonly Benchmark[] {
  try {
    return names === undefined ? BENCHMARKS : names.map(findBenchmark);
  } catch (error) {
    throw new UseError((error as Error).message);
  }
}

function readSaved(path: string): BenchRun {
  if (!existsSync(path)) throw new UseError(`there is no saved run at ${path}: make one with --save ${path}`);
  try {
    return parseRun(readFileSync(path, "utf8"), path);
  } catch (error) {
    throw new UseError((error as Error).message);
  }
}

/** Runs one benchmark with fresh directories; one that fails has a result that says so. */
async function runOne(
  benchmark: Benchmark,
  options: Options,
  directory: string,
  signal: AbortSignal,
): Promise<BenchmarkResult> {
  const { name, metric } = benchmark;
  const isSmoke = options.size === "smoke";
  const own = isSmoke ? { warmup: 0, measured: 1 } : benchmark.rounds;
  const measured = options.rounds ?? own.measured;
  // Figures of the smoke size mean nothing, so it does not matter what the host takes.
  const again = isSmoke ? 0 : measured;
  const timeoutSeconds = isSmoke ? SMOKE_TIMEOUT_SECONDS : benchmark.timeoutSeconds;
  const startMs = performance.now();
  const seconds = (): number => (performance.now() - startMs) / 1000;
  const data = mkdtempSync(join(directory, `${name}-`));
  const socketDirectory = mkdtempSync(join(tmpdir(), "bench-cell-"));
  const storesDirectory = resolve(options.stores ?? join(directory, "stores"));
  const places = { directory: data, storesDirectory, socketDirectory };
  try {
    const result = await runInProcess(
      { name, size: options.size, ...places, seed: SEED, rounds: { warmup: own.warmup, measured, again } },
      {
        timeoutSeconds: Math.min(
          LONGEST_TIMEOUT_SECONDS,
          timeoutSeconds * Math.max(1, (measured + again) / own.measured),
        ),
        onLog: (line) => console.error(`[${name}] ${line}`),
        signal,
      },
    );
    return { name, metric, seconds: seconds(), error: null, ...result };
  } catch (error) {
    signal.throwIfAborted();
    const { message } = error as Error;
    return { name, metric, seconds: seconds(), error: message, notes: [], missing: [], contestants: [] };
  } finally {
    for (const path of [data, socketDirectory]) rmSync(path, { recursive: true, force: true });
  }
}

/** Runs what was chosen, prints the report, and gives the exit code. */
async function run(options: Options): Promise<number> {
  const chosen = chooseBenchmarks(options.only);
  if (options.list !== undefined) {
    for (const { name, measures, contestants } of chosen) {
      console.log(`${name}\n    ${measures}\n    contestants: ${contestants.map((c) => c.name).join(", ")}\n`);
    }
    return 0;
  }
  const interruption = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => interruption.abort(new Error(`ended by ${signal}`)));
  }
  const startMs = performance.now();
  const directory = mkdtempSync(join(resolve(options.dir), "inspection-bench-"));
  try {
    const report: BenchRun = {
      format: RESULT_FORMAT,
      version: RESULT_VERSION,
      startedAt: new Date().toISOString(),
      seconds: 0,
      size: options.size,
      machine: describeMachine(directory),
      benchmarks: [],
    };
    // Checked first, so that hours of measuring are not wasted if the saved run is of no use.
    const saved = options.guard === undefined ? null : readSaved(options.guard);
    if (saved !== null) checkSavedRun(saved, report, chosen);
    console.log(machineText(report.machine));
    if (options.size === "smoke")
      console.log("\nsmoke size: it shows that the benchmarks run; its figures mean nothing");
    for (const benchmark of chosen) {
      const result = await runOne(benchmark, options, directory, interruption.signal);
      report.benchmarks.push(result);
      console.log(`\n${benchmarkText(benchmark, result)}`);
    }
    report.seconds = (performance.now() - startMs) / 1000;
    const pairs = chosen.map((benchmark, nth) => [benchmark, report.benchmarks[nth] as BenchmarkResult] as const);
    console.log(`\n${goalSummaryText(pairs)}\n`);
    if (options.save !== undefined) {
      mkdirSync(dirname(resolve(options.save)), { recursive: true });
      writeFileSync(options.save, `${JSON.stringify(report)}\n`);
      console.log(`saved: ${options.save}`);
    }
    const failed = report.benchmarks.some(({ error }) => error !== null) ? 1 : 0;
    if (saved === null) return failed;
    const rows = pairs.flatMap(([benchmark, result]) => {
      const former = saved.benchmarks.find(({ name }) => name === benchmark.name);
      return guardBenchmark(benchmark, former as BenchmarkResult, result);
    });
    console.log(guardText(rows, options.guard as string));
    return guardExitCode(rows);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

try {
  process.exitCode = await run(parseOptions());
} catch (error) {
  console.error(`bench: ${(error as Error).message}`);
  process.exitCode = error instanceof UseError ? 2 : 1;
}
