import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import {
  checkSavedRun,
  type GuardVerdict,
  guardBenchmark,
  guardExitCode,
  judgeChange,
  UseError,
} from "../../bench/harness/guard.js";
import type { BenchRun } from "../../bench/harness/result.js";
import { guardText } from "../../bench/harness/text-report.js";
import { listOf } from "../helpers/list-of.js";
import { BENCHMARK, exampleResult, exampleRun, MACHINE, OURS, PEER } from "./example-run.js";

const scaled = (values: readonly number[], factor: number): number[] => values.map((value) => value * factor);
const ALONE = { ...BENCHMARK, peer: null, contestants: BENCHMARK.contestants.slice(0, 1) };

t.test("a figure has surely changed when the intervals lie apart by more than the gap", (t) => {
  const saved = { low: 100, high: 110, confidence: 0.96 };
  const verdict = (low: number, high: number, better: "higher" | "lower"): GuardVerdict =>
    judgeChange(saved, { low, high, confidence: 0.96 }, better, 0.1);
  t.equal(verdict(122, 130, "lower"), "worse");
  t.equal(verdict(122, 130, "higher"), "better");
  t.equal(verdict(80, 90, "lower"), "better");
  t.equal(verdict(80, 90, "higher"), "worse");
  t.equal(verdict(120, 500, "lower"), "same", "apart, but by less than 10 %");
  t.equal(verdict(92, 95, "higher"), "same", "apart, but by less than 10 %");
  t.equal(verdict(105, 500, "lower"), "same", "they overlap");
  t.end();
});

t.test("beside a peer the ratio is judged: a machine that is slower as a whole is no regression", (t) => {
  const saved = exampleResult(OURS, PEER);
  const verdict = (ours: number, peer: number): GuardVerdict | undefined =>
    guardBenchmark(BENCHMARK, saved, exampleResult(scaled(OURS, ours), scaled(PEER, peer)))[0]?.verdict;
  t.equal(verdict(1, 1), "same");
  t.equal(verdict(0.5, 0.5), "same");
  t.equal(verdict(0.8, 1), "worse");
  t.equal(verdict(1.25, 1), "better");
  const rows = guardBenchmark(BENCHMARK, saved, exampleResult(scaled(OURS, 0.8), PEER));
  t.match(rows, listOf({ benchmark: "example", figure: "ours / peer", unit: "" }), "the peer itself is not judged");
  t.match(guardText(rows, "saved.json"), /\nREGRESSION: example, ours \/ peer: 0\.80\d+ became 0\.64\d+$/);
  t.equal(guardExitCode(rows), 1);
  t.end();
});

t.test("a figure that stands alone is judged by itself, with a wider gap", (t) => {
  const verdict = (saved: number[], now: number[]): GuardVerdict | undefined =>
    guardBenchmark(ALONE, exampleResult(saved, []), exampleResult(now, []))[0]?.verdict;
  t.equal(verdict(OURS, scaled(OURS, 0.85)), "same");
  t.equal(verdict(OURS, scaled(OURS, 0.7)), "worse");
  t.equal(verdict(OURS, scaled(OURS, 1.5)), "better");
  const wide = [40, 120, 60, 100, 80, 50, 110, 70, 90];
  t.equal(verdict(wide, scaled(wide, 0.7)), "same", "the rounds differ by more than the runs");
  const withoutPeer = guardBenchmark(BENCHMARK, exampleResult(OURS, PEER), exampleResult(scaled(OURS, 0.7), []));
  t.match(
    withoutPeer,
    listOf({ figure: "ours", unit: "req/s", verdict: "worse" }),
    "its peer is not installed any more",
  );
  t.end();
});

t.test("what could not be judged is said, and is no success", (t) => {
  const few = guardBenchmark(ALONE, exampleResult(OURS, []), exampleResult([1, 1, 1, 1, 1], []));
  t.match(few, listOf({ verdict: "unknown", why: "fewer than 6 rounds" }));
  t.equal(guardExitCode(few), 2);
  t.match(guardText(few, "saved.json"), /\nnot judged: example, ours: fewer than 6 rounds$/);
  const missing = { ...exampleResult(OURS, []), contestants: [] };
  t.match(guardBenchmark(ALONE, exampleResult(OURS, []), missing), listOf({ why: "not measured now" }));
  t.match(guardBenchmark(ALONE, missing, exampleResult(OURS, [])), listOf({ why: "not measured in the saved run" }));
  t.strictSame(guardBenchmark(ALONE, missing, missing), [], "in neither run: the report says why");
  const failed = guardBenchmark(ALONE, exampleResult(OURS, []), { ...missing, error: "no disk\nat x" });
  t.equal(guardExitCode(failed), 1);
  t.match(guardText(failed, "saved.json"), /\nREGRESSION: example, throughput: it did not run: no disk$/);
  const same = guardBenchmark(ALONE, exampleResult(OURS, []), exampleResult(OURS, []));
  t.equal(guardExitCode(same), 0);
  t.match(guardText(same, "saved.json"), /\nno regression$/);
  t.end();
});

t.test("a saved run of another machine, size or benchmark is refused before anything is measured", (t) => {
  const saved = exampleRun(OURS, PEER);
  const check = (change: Partial<BenchRun>, machine = MACHINE) =>
    checkSavedRun({ ...saved, ...change }, { ...saved, machine }, [BENCHMARK]);
  t.doesNotThrow(() => check({}));
  t.doesNotThrow(() => check({}, { ...MACHINE, loadAverage: [9, 9, 9], gitRevision: "fedcba0", directory: "/other" }));
  const refusal = (change: Partial<BenchRun>, machine = MACHINE): string => {
    try {
      check(change, machine);
    } catch (error) {
      if (error instanceof UseError) return error.message;
    }
    return "";
  };
  t.equal(
    refusal({}, { ...MACHINE, cpuModel: "Other CPU" }),
    "the saved run is of another machine: cpuModel was Example CPU and is Other CPU",
  );
  t.match(refusal({}, { ...MACHINE, nodeVersion: "v22.0.0" }), /nodeVersion was v20\.15\.0 and is v22\.0\.0/);
  t.equal(refusal({ size: "smoke" }), "the saved run has size smoke, this one full");
  t.equal(refusal({ benchmarks: [] }), "the saved run has no example: save a run that has it");
  const failed = { ...exampleResult([], []), error: "no disk" };
  t.equal(refusal({ benchmarks: [failed] }), "example did not run in the saved run: no disk");
  const other = { ...exampleResult(OURS, PEER), metric: { ...BENCHMARK.metric, unit: "MB/s" } };
  t.equal(refusal({ benchmarks: [other] }), "example was throughput in MB/s: save a run of today's");
  t.end();
});

t.test("the command: 0 without a regression, 1 with one, 2 on wrong use", (t) => {
  const directory = t.testdir();
  const path = join(directory, "saved.json");
  const bench = (...args: string[]) =>
    spawnSync(process.execPath, ["dist/bench/main.js", "--size", "smoke", "--dir", directory, ...args], {
      encoding: "utf8",
    });
  const measure = (...args: string[]) => bench("--only", "series-csv", "--rounds", "6", ...args);

  const none = measure("--guard", path);
  t.match(none, { status: 2, stderr: `bench: there is no saved run at ${path}: make one with --save ${path}\n` });
  t.equal(measure("--save", path).status, 0);
  t.ok(existsSync(path));
  const run = JSON.parse(readFileSync(path, "utf8")) as BenchRun;
  /** As the saved run, with all figures of the service so many times. */
  const write = (factor: number, change: Partial<BenchRun> = {}): void => {
    const benchmarks = structuredClone(run.benchmarks);
    for (const { contestants } of benchmarks) {
      for (const { name, rounds } of contestants) {
        for (const sample of rounds) if (name !== "polars") sample.value *= factor;
      }
    }
    writeFileSync(path, JSON.stringify({ ...run, benchmarks, ...change }));
  };
  write(1e-3);
  const better = measure("--guard", path);
  t.match(better, { status: 0, stdout: /\nno regression\n$/ });
  write(1e3);
  const worse = measure("--guard", path);
  t.match(worse, {
    status: 1,
    stdout: /\nREGRESSION: series-csv, decimals[^\n]*\nREGRESSION: series-csv, singles[^\n]*\n$/,
  });
  write(1, { machine: { ...run.machine, cpuCount: 1000 } });
  const elsewhere = measure("--guard", path);
  t.match(elsewhere, {
    status: 2,
    stderr: /^bench: the saved run is of another machine: cpuCount was 1000 and is \d+\n$/,
  });
  t.end();
});
