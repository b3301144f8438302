import { readdirSync } from "node:fs";
import t from "tap";
import { describeMachine, judgeFdatasync } from "../../bench/harness/machine.js";
import { parseRun } from "../../bench/harness/result.js";
import { figure, judgeGoal, pairsOf } from "../../bench/harness/summary.js";
import { benchmarkText, goalSummaryText, machineText } from "../../bench/harness/text-report.js";
import { BENCHMARK, exampleResult, exampleRun, MACHINE, OURS, PEER } from "./example-run.js";

const [RATIO_GOAL, VALUE_GOAL] = BENCHMARK.goals as [(typeof BENCHMARK.goals)[0], (typeof BENCHMARK.goals)[0]];

t.test("ratios are taken round by round, and goals judged by how far their median is off", (t) => {
  const result = exampleResult([80, 90, 50], [100, 100, 100]);
  t.strictSame(pairsOf(BENCHMARK), [["ours", "peer"]]);
  t.strictSame(figure(result, "ours", "peer")?.values, [0.8, 0.9, 0.5]);
  t.strictSame(figure(result, "ours")?.values, [80, 90, 50]);
  const ratio = judgeGoal(RATIO_GOAL, result);
  t.match(ratio, { met: true, isClear: false });
  t.ok(Math.abs((ratio?.margin ?? 0) - 1 / 7) < 1e-12, "0.8 is a seventh beyond 0.7");
  const value = judgeGoal(VALUE_GOAL, result);
  t.match(value, { met: true });
  t.ok(Math.abs((value?.margin ?? 0) - 0.2) < 1e-12, "80 is a fifth below 100");
  t.end();
});

t.test("a missed goal says so, and a verdict is clear only when the interval is on one side", (t) => {
  const judge = (ratios: readonly number[]) =>
    judgeGoal(
      RATIO_GOAL,
      exampleResult(
        ratios,
        ratios.map(() => 1),
      ),
    );
  const missed = judge([0.5, 0.51, 0.52, 0.49, 0.5, 0.53]);
  t.match(missed, { met: false, isClear: true });
  t.ok((missed?.margin ?? 0) < -0.27 && (missed?.margin ?? 0) > -0.29);
  t.match(judge([0.71, 0.72, 0.69, 0.75, 0.73, 0.68, 0.74]), { met: true, isClear: false });
  t.match(judge([0.9, 0.9, 0.9]), { met: true, isClear: false }, "three rounds are too few to be sure");
  t.end();
});

t.test("a peer that is not installed is named, and goals that need it are not judged", (t) => {
  const result = exampleResult(OURS, []);
  t.equal(judgeGoal(RATIO_GOAL, result), undefined);
  t.match(judgeGoal(VALUE_GOAL, result), { met: true });
  const text = benchmarkText(BENCHMARK, result);
  t.match(text, /missing: peer: not installed/);
  t.match(text, /goal: ours \/ peer at least 0.70 \(the issue\)\n +not judged: a contestant is missing/);
  t.match(goalSummaryText([[BENCHMARK, result]]), /ours \/ peer at least 0.70 +not judged/);
  t.end();
});

t.test("the report tells the machine, figures, verdicts, notes, warnings and failures", (t) => {
  const result = exampleResult(OURS, PEER);
  for (const sample of result.contestants[0]?.rounds ?? []) sample.warnings = ["the sender fell behind"];
  const failed = { ...exampleResult([], []), error: "it broke" };
  const text = [
    machineText(MACHINE),
    benchmarkText(BENCHMARK, result),
    benchmarkText(BENCHMARK, failed),
    goalSummaryText([
      [BENCHMARK, result],
      [BENCHMARK, failed],
    ]),
  ].join("\n");
  t.match(text, /0123abc with changes/);
  t.match(text, /met, 14\.\d % beyond: median 0\.80/);
  t.match(text, /p99\.9/);
  t.match(text, /CPU %\n/);
  t.match(text, /note: a note/);
  t.match(text, /warning: ours, in 9 rounds: the sender fell behind/);
  t.match(text, /FAILED: it broke/);
  t.match(text, /example +did not run +FAILED/);
  t.notMatch(text, /NaN|undefined|Infinity/);
  t.end();
});

t.test("a run survives its JSON, and another file is refused by name and field", (t) => {
  const original = exampleRun(OURS, PEER);
  t.strictSame(parseRun(JSON.stringify(original), "a.json"), original);
  t.throws(() => parseRun("{", "a.json"), /a\.json is not JSON/);
  t.throws(
    () => parseRun(JSON.stringify({ ...original, version: 1 }), "a.json"),
    /a\.json is no saved run of version 2: \/version/,
  );
  const broken = JSON.stringify(original).replace('"value":', '"figure":');
  t.throws(() => parseRun(broken, "a.json"), /\/benchmarks\/0\/.*value/);
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
