import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import t from "tap";
import type { Benchmark, OpenBenchmark, RoundSample } from "../../bench/harness/benchmark.js";
import type { BenchmarkJob } from "../../bench/harness/benchmark-process.js";
import { runInProcess } from "../../bench/harness/child-runner.js";
import { compareReports } from "../../bench/harness/comparison.js";
import { LatencyHistogram } from "../../bench/harness/latency-histogram.js";
import { describeMachine, judgeFdatasync, type Machine } from "../../bench/harness/machine.js";
import { machineCpuSeconds, stolenShare } from "../../bench/harness/machine-cpu.js";
import { runOpenLoop } from "../../bench/harness/open-loop.js";
import { type BenchReport, type MeasuredBenchmark, parseReport } from "../../bench/harness/result.js";
import { disturbedNotes, runRounds } from "../../bench/harness/rounds.js";
import { failedBenchmark, judgeGoal, summarizeBenchmark } from "../../bench/harness/summary.js";
import { htmlReport } from "../../bench/report/html-report.js";
import { niceTicks } from "../../bench/report/svg-plots.js";
import { benchmarkText, comparisonText, goalSummaryText, machineText } from "../../bench/report/text-report.js";
import { listOf } from "../helpers/list-of.js";
import { untilGone } from "../helpers/process/until-gone.js";

const BENCHMARK: Benchmark = {
  name: "example",
  measures: "From <here> to there.",
  metric: { name: "throughput", unit: "req/s", better: "higher" },
  contestants: [
    { name: "ours", description: "the service" },
    { name: "peer", description: "a bare & simple server" },
  ],
  peer: "peer",
  goals: [
    { kind: "ratio", contestant: "ours", peer: "peer", ratio: 0.7, direction: "at-least", source: "the issue" },
    { kind: "value", contestant: "ours", value: 100, direction: "at-most", source: "made up" },
  ],
  rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 1, measured: 9 } },
  timeoutSeconds: { smoke: 10, full: 10 },
  open: () => Promise.reject(new Error("not opened here")),
};

const MACHINE: Machine = {
  cpuModel: "Example CPU",
  cpuCount: 2,
  memoryBytes: 2 ** 34,
  kernel: "Linux 6.1",
  nodeVersion: "v20.15.0",
  loadAverage: [0.5, 1, 1.5],
  directory: "/data",
  fileSystem: "ext2/3/4",
  fdatasync: { medianUs: 120, minimumUs: 90, maximumUs: 900, verdict: "plausible", plausible: true },
  gitRevision: "0123abc",
  gitDirty: true,
};

function measured(ours: number[], peer: number[]): MeasuredBenchmark {
  const samples = (values: number[]): RoundSample[] =>
    values.map((value) => {
      const latency = new LatencyHistogram();
      for (let i = 1; i <= 100; i++) latency.record(i * 10_000);
      return { value, seconds: 1, latency: latency.toData(), details: { "CPU %": value / 2 } };
    });
  return {
    name: "example",
    startedAt: "2026-01-01T00:00:00.000Z",
    seconds: 12,
    notes: ["a note with <b>markup</b>"],
    missing: [],
    contestants: [
      { name: "ours", warmup: samples([1]), rounds: samples(ours) },
      { name: "peer", warmup: samples([1]), rounds: samples(peer) },
    ],
  };
}

function report(ours: number[], peer: number[]): BenchReport {
  return {
    format: "inspection-bench",
    version: 1,
    startedAt: "2026-01-01T00:00:00.000Z",
    seconds: 12,
    size: "full",
    seed: 1,
    machine: MACHINE,
    benchmarks: [summarizeBenchmark(BENCHMARK, measured(ours, peer))],
  };
}

const OURS = [80, 82, 79, 81, 80.5, 78, 83, 79.5, 80.2];
const PEER = [100, 102, 98, 101, 99, 100.5, 103, 97, 100.1];

t.test("contestants alternate, each once a round, warm-up apart, and the first place rotates", async (t) => {
  const order: string[] = [];
  let value = 0;
  const runner = (name: string) => async () => {
    order.push(name);
    return { value: ++value, seconds: 1 };
  };
  const opened: OpenBenchmark = {
    runners: { ours: runner("A"), peer: runner("B") },
    notes: [],
    close: () => Promise.resolve(),
  };
  const rounds: number[] = [];
  const results = await runRounds(BENCHMARK, opened, { warmup: 2, measured: 3 }, (round) => rounds.push(round));
  t.equal(order.join(""), "ABBAABBAAB");
  t.strictSame(rounds, [-2, -2, -1, -1, 0, 0, 1, 1, 2, 2]);
  t.strictSame(
    results.map((result) => [result.warmup.length, result.rounds.map((sample) => sample.value)]),
    [
      [2, [5, 8, 9]],
      [2, [6, 7, 10]],
    ],
  );
});

t.test(
  "a round that the machine's host has disturbed is measured again, of all contestants and not without end",
  async (t) => {
    /** What the host takes of each turn's second, in order: the benchmark's own word for one of them goes before. */
    const stolen = [0.03, 0, 0.5, 0.01, 0.015, 0.015, 0.021, 0.021, 0, 0.4];
    const cpu = { busy: 0, stolen: 0, all: 0 };
    let turn = 0;
    const runner = async () => {
      cpu.all++;
      cpu.stolen += stolen[turn] ?? 0;
      turn++;
      return { value: turn, seconds: 1, ...(turn === 10 && { stolenShare: 0 }) };
    };
    const opened: OpenBenchmark = {
      runners: { ours: runner, peer: runner },
      notes: [],
      close: () => Promise.resolve(),
    };
    const repeated: number[] = [];
    const rounds: number[] = [];
    const plan = { warmup: 1, measured: 3, again: 1 };
    const results = await runRounds(
      BENCHMARK,
      opened,
      plan,
      (round, _, __, isAgain) => {
        if (isAgain) repeated.push(rounds.length);
        rounds.push(round);
      },
      () => ({ ...cpu }),
    );
    t.strictSame(rounds, [-1, -1, 0, 0, 0, 0, 1, 1, 2, 2]);
    const warning = "the host took over 2 % of the cores' time";
    t.match(
      results,
      listOf(
        {
          warmup: listOf({ value: 2 }),
          disturbed: listOf({ value: 3, stolenShare: 0.5 }),
          rounds: listOf({ value: 5 }, { value: 8, warnings: listOf(warning) }, { value: 9 }),
        },
        {
          warmup: listOf({ value: 1, stolenShare: 0.03 }),
          disturbed: listOf({ value: 4 }),
          rounds: listOf({ value: 6 }, { value: 7, warnings: listOf(warning) }, { value: 10, stolenShare: 0 }),
        },
      ),
    );
    t.strictSame(
      results.flatMap((result) => result.rounds.map((sample) => sample.warnings?.length ?? 0)),
      [0, 1, 0, 0, 1, 0],
    );
    t.strictSame(disturbedNotes(results, "peer"), [
      "rounds measured again, since the host took over 2 % of the cores' time from a contestant: 1; " +
        "medians with these rounds among the others: ours / peer 0.867",
    ]);
    t.match(disturbedNotes(results, null), listOf(/: ours 6.5, peer 6.5$/));
    t.strictSame(disturbedNotes([{ name: "ours", warmup: [], rounds: [] }], null), []);
    t.strictSame(repeated, [4, 5]);
    const all = report(OURS, PEER);
    const told = {
      ...all,
      benchmarks: [summarizeBenchmark(BENCHMARK, { ...measured(OURS, PEER), contestants: results })],
    };
    t.strictSame(parseReport(JSON.stringify(told), "r.json").benchmarks[0]?.contestants[0]?.disturbed?.length, 1);
    t.match(benchmarkText(told.benchmarks[0]!), /warning: ours, in 1 rounds: the host took over 2 %/);
  },
);

t.test("what the host has taken is a share of all cores' time, and nothing where the system does not tell", (t) => {
  const before = { busy: 10, stolen: 1, all: 20 };
  t.equal(stolenShare(before, { busy: 12, stolen: 1.5, all: 30 }), 0.05);
  t.equal(stolenShare({ busy: 0, stolen: 0, all: 0 }, { busy: 0, stolen: 0, all: 0 }), 0);
  const { busy, stolen, all } = machineCpuSeconds();
  t.ok(stolen <= busy && busy <= all, "this machine's own");
  t.end();
});

t.test("a round that measured nothing, or a contestant without a runner, is an error", async (t) => {
  const opened = (value: number): OpenBenchmark => ({
    runners: { ours: async () => ({ value, seconds: 1 }) },
    notes: [],
    close: () => Promise.resolve(),
  });
  const plan = { warmup: 0, measured: 1 };
  await t.rejects(
    runRounds(BENCHMARK, opened(Number.NaN), plan, () => {}),
    /measured NaN/,
  );
  await t.rejects(
    runRounds(BENCHMARK, opened(0), plan, () => {}),
    /measured 0/,
  );
  await t.rejects(
    runRounds(BENCHMARK, opened(1), plan, () => {}),
    /no runner for its contestant peer/,
  );
});

t.test("ratios are taken round by round, and goals judged by how far their median is off", (t) => {
  const result = summarizeBenchmark(BENCHMARK, measured([80, 90, 50], [100, 100, 100]));
  t.strictSame(result.pairs[0]?.ratios, [0.8, 0.9, 0.5]);
  t.equal(result.contestants[0]?.details["CPU %"], 40);
  t.equal(result.contestants[0]?.latency?.count, 300);
  const [ratio, value] = result.goals;
  t.match(ratio, { met: true, clear: false, values: listOf(0.8, 0.9, 0.5) });
  t.ok(Math.abs((ratio?.margin ?? 0) - 1 / 7) < 1e-12, "0.8 is a seventh beyond 0.7");
  t.match(value, { met: true });
  t.ok(Math.abs((value?.margin ?? 0) - 0.2) < 1e-12, "80 is a fifth below 100");
  t.end();
});

t.test("a peer that is not installed is left out and named, and its goals are not judged", async (t) => {
  const why = "not installed <here>";
  const missing = [{ name: "peer", why }];
  const opened: OpenBenchmark = {
    runners: { ours: async () => ({ value: 80, seconds: 1 }) },
    missing,
    notes: [],
    close: () => Promise.resolve(),
  };
  const contestants = await runRounds(BENCHMARK, opened, { warmup: 0, measured: 2 }, () => {});
  t.strictSame(
    contestants.map(({ name }) => name),
    ["ours"],
  );
  const result = summarizeBenchmark(BENCHMARK, { ...measured(OURS, PEER), contestants, missing });
  t.strictSame(result.pairs, []);
  t.match(result.goals, listOf({ goal: { kind: "value" }, met: true }));
  t.match(result.unjudged, listOf({ kind: "ratio", peer: "peer" }));
  const all = { ...report(OURS, PEER), benchmarks: [result] };
  t.strictSame(parseReport(JSON.stringify(all), "r.json"), JSON.parse(JSON.stringify(all)), "it is read back");
  const text = benchmarkText(result);
  t.match(text, /missing: peer: not installed <here>/);
  t.match(text, /goal not judged: ours \/ peer at least 0.7/);
  t.match(goalSummaryText(all), /ours \/ peer at least 0.70? +not judged: a contestant is missing/);
  t.match(htmlReport(all, null), /peer is missing: not installed &#60;here&#62;/);
});

t.test("a missed goal says so, and a verdict is clear only when the interval is on one side", (t) => {
  const goal = BENCHMARK.goals[0] as (typeof BENCHMARK.goals)[0];
  const missed = judgeGoal(goal, [0.5, 0.51, 0.52, 0.49, 0.5, 0.53]);
  t.match(missed, { met: false, clear: true });
  t.ok(missed.margin < -0.27 && missed.margin > -0.29);
  t.match(judgeGoal(goal, [0.71, 0.72, 0.69, 0.75, 0.73, 0.68, 0.74]), { met: true, clear: false });
  t.match(judgeGoal(goal, [0.9, 0.9, 0.9]), { met: true, clear: false }, "three rounds are too few to be sure");
  t.end();
});

t.test("a comparison flags a real difference, in the right direction, and nothing else", (t) => {
  const verdicts = (now: BenchReport, saved: BenchReport): string[] =>
    compareReports(now, saved, "saved.json").rows.map((row) => `${row.contestant} ${row.figure}: ${row.verdict}`);
  const base = report(OURS, PEER);
  const scaled = (values: number[], factor: number): number[] => values.map((value) => value * factor);
  t.strictSame(verdicts(report(OURS.toReversed(), PEER), base), [
    "ours throughput: within noise",
    "peer throughput: within noise",
    "ours / peer: within noise",
  ]);
  t.strictSame(verdicts(report(scaled(OURS, 1.3), PEER), base), [
    "ours throughput: better",
    "peer throughput: within noise",
    "ours / peer: better",
  ]);
  t.strictSame(verdicts(report(scaled(OURS, 0.7), scaled(PEER, 0.7)), base), [
    "ours throughput: worse",
    "peer throughput: worse",
    "ours / peer: within noise",
  ]);
  t.strictSame(verdicts(report([200, 201, 202], [100, 100, 100]), report([80, 81, 82], [100, 100, 100])), [
    "ours throughput: too few rounds",
    "peer throughput: too few rounds",
    "ours / peer: too few rounds",
  ]);
  const slower = {
    ...base,
    benchmarks: base.benchmarks.map((b) => ({ ...b, metric: { ...b.metric, better: "lower" as const } })),
  };
  const twice = report(scaled(OURS, 2), PEER);
  const lower = {
    ...twice,
    benchmarks: twice.benchmarks.map((b) => ({ ...b, metric: { ...b.metric, better: "lower" as const } })),
  };
  t.equal(verdicts(lower, slower)[0], "ours throughput: worse", "where lower is better");
  t.end();
});

t.test("a comparison warns of another machine and of what ran only once", (t) => {
  const now = report(OURS, PEER);
  const saved = { ...report(OURS, PEER), machine: { ...MACHINE, cpuModel: "Other CPU" }, benchmarks: [] };
  const { warnings, rows } = compareReports(now, saved, "saved.json");
  t.equal(rows.length, 0);
  t.strictSame(warnings, ["CPU differs: Example CPU now, Other CPU in the saved run", "example did not run in both"]);
  const told = report(OURS, PEER);
  for (const round of told.benchmarks[0]?.contestants[0]?.rounds ?? []) round.stolenShare = 0;
  t.match(
    compareReports(told, report(OURS, PEER), "saved.json").warnings,
    listOf(/^example: only one of the two has measured/),
  );
  t.strictSame(compareReports(told, told, "saved.json").warnings, []);
  t.end();
});

t.test("a report survives its JSON, and another file is refused by name and field", (t) => {
  const original = report(OURS, PEER);
  t.strictSame(parseReport(JSON.stringify(original), "a.json"), original);
  t.throws(() => parseReport("{", "a.json"), /a\.json is not JSON/);
  t.throws(
    () => parseReport(JSON.stringify({ ...original, version: 2 }), "a.json"),
    /a\.json is no .*version 1: \/version/,
  );
  const broken = JSON.stringify(original).replace('"median":', '"middle":');
  t.throws(() => parseReport(broken, "a.json"), /\/benchmarks\/0\/.*median/);
  t.end();
});

t.test("text and page tell figures, verdicts, notes and failures, and let no markup through", (t) => {
  const now = report(OURS, PEER);
  now.benchmarks.push(failedBenchmark({ ...BENCHMARK, name: "broken" }, now.startedAt, 1, "it <broke>"));
  const comparison = compareReports(now, report(OURS, PEER), "saved.json");
  const text = [
    machineText(MACHINE),
    ...now.benchmarks.map(benchmarkText),
    goalSummaryText(now),
    comparisonText(comparison),
  ].join("\n");
  t.match(text, /ours \/ peer at least 0\.70 \(the issue\)/);
  t.match(text, /met, 14\.\d % beyond the goal: median 0\.80/);
  t.match(text, /FAILED: it <broke>/);
  t.match(text, /0123abc with changes/);
  t.match(text, /p99\.9/);
  const html = htmlReport(now, comparison);
  for (const wanted of [
    "example",
    "broken",
    "Example CPU",
    "goal 0.70",
    "within noise",
    "&#60;b&#62;markup",
    "it &#60;broke&#62;",
  ]) {
    t.ok(html.includes(wanted), `the page has: ${wanted}`);
  }
  t.equal(html.match(/<svg /g)?.length, 3, "values, ratios and latencies are drawn");
  t.notMatch(html, /<b>markup|<broke>|NaN|undefined|Infinity|https?:\/\//);
  t.end();
});

t.test("ticks are round numbers that span the axis", (t) => {
  t.strictSame(niceTicks(0, 10), [0, 2, 4, 6, 8, 10]);
  t.strictSame(niceTicks(0, 130_000), [0, 50_000, 100_000]);
  t.equal(niceTicks(0, 0.9).length, 5);
  t.end();
});

t.test("the machine is described, and a disk without a real flush is called one", (t) => {
  const directory = t.testdir();
  const machine = describeMachine(directory);
  t.ok(machine.cpuModel.length > 0 && machine.cpuCount > 0 && machine.fdatasync.medianUs > 0);
  t.match(machine.gitRevision, /^[0-9a-f]{40}$/);
  t.strictSame(readdirSync(directory), [], "the probe's file is removed");
  t.match(judgeFdatasync("tmpfs", 300), { plausible: false, verdict: /memory/ });
  t.match(judgeFdatasync("ext2/3/4", 2), { plausible: false, verdict: /too fast/ });
  t.match(judgeFdatasync("ext2/3/4", 150), { plausible: true });
  t.end();
});

t.test("the open loop times from the intended instant, so that one stall delays all that follow it", async (t) => {
  const latency = new LatencyHistogram();
  const { seconds } = await runOpenLoop({
    ratePerSecond: 1000,
    count: 60,
    latency,
    send: async (index) => {
      const stallUntilMs = performance.now() + 40;
      while (index === 10 && performance.now() < stallUntilMs);
    },
  });
  t.equal(latency.summarize().count, 60);
  t.ok(seconds >= 0.059, "60 sends at 1,000 a second take 59 ms or more");
  t.ok(latency.percentileNs(0.75) > 10e6, "a closed loop would have seen one slow answer in 60, not a quarter of them");
});

t.test("the open loop sends nothing before its time, at a rate that is no whole number of milliseconds", async (t) => {
  const latency = new LatencyHistogram();
  const sentMs: number[] = [];
  const startMs = performance.now();
  const send = async (): Promise<void> => {
    sentMs.push(performance.now());
  };
  await runOpenLoop({ ratePerSecond: 62.5 * 7, count: 50, send, latency });
  const early = sentMs.filter((ms, index) => ms < startMs + (index * 1000) / (62.5 * 7));
  t.equal(early.length, 0);
});

t.test("the open loop sleeps until the next instant, and takes no core from what it measures", async (t) => {
  const before = process.cpuUsage();
  const { seconds } = await runOpenLoop({
    ratePerSecond: 200,
    count: 100,
    latency: new LatencyHistogram(),
    send: async () => {},
  });
  const { user, system } = process.cpuUsage(before);
  // Spinning through the last millisecond of each, as Node's timers alone would have it, takes 23 % of a core and more.
  const share = (user + system) / 1e6 / seconds;
  t.ok(share < 0.15, `${(share * 100).toFixed(1)} % of a core`);
});

function job(name: string): BenchmarkJob {
  return {
    name,
    size: "smoke",
    directory: tmpdir(),
    socketDirectory: tmpdir(),
    storesDirectory: tmpdir(),
    seed: 1,
    httpClient: "autocannon",
    profileDirectory: null,
    rounds: { warmup: 0, measured: 1 },
  };
}

t.test("the process of a benchmark: its result, its failure, its time limit, its interruption", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "bench-harness-test-"));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const program = (name: string, source: string): string => {
    const path = join(directory, `${name}.mjs`);
    writeFileSync(path, source);
    return path;
  };
  const run = (
    source: string,
    timeoutSeconds = 30,
    signal = new AbortController().signal,
    onLog = (_line: string) => {},
  ) => runInProcess(job("x"), { timeoutSeconds, onLog, signal, program: program(`p${Math.random()}`, source) });
  const result = JSON.stringify({ type: "measured", measured: measured(OURS, PEER) });

  const lines: string[] = [];
  const log = `process.send({ type: "log", line: JSON.parse(process.argv[2]).name });`;
  const good = await run(`${log} process.send(${result}, () => process.disconnect());`, 30, undefined, (line) =>
    lines.push(line),
  );
  t.strictSame(good, measured(OURS, PEER));
  t.strictSame(lines, ["x"]);

  // As large as the histograms of many rounds: longer than a pipe holds, so that it is under way when the process ends.
  const channel = pathToFileURL(resolve("dist/bench/harness/runner-channel.js"));
  const large = await run(`import { sendToRunner } from "${channel}";
    const message = ${result};
    message.measured.notes = Array.from({ length: 400_000 }, (_, i) => "note " + i);
    await sendToRunner(message);
    process.disconnect();`);
  t.equal(large.notes.length, 400_000);
  t.equal(large.notes.at(-1), "note 399999");

  await t.rejects(run(`throw new Error("no disk");`), /x ended with exit code 1; its last words:[\s\S]*no disk/);
  await t.rejects(run("process.disconnect();"), /x ended without a result/);

  // The grandchild's pid comes by the log; it must be gone with its parent.
  const hang = `import { spawn } from "node:child_process";
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
    process.send({ type: "log", line: String(child.pid) });
    setInterval(() => {}, 1000);`;
  let grandchild = 0;
  await t.rejects(
    run(hang, 2, undefined, (line) => {
      grandchild = Number(line);
    }),
    /took more than 2 s/,
  );
  if (grandchild > 0) await untilGone(grandchild);

  const interruption = new AbortController();
  await t.rejects(
    run(hang, 30, interruption.signal, (line) => {
      grandchild = Number(line);
      interruption.abort();
    }),
    /was interrupted/,
  );
  await untilGone(grandchild);
  t.pass("nothing is left of the process group");
});
