import t from "tap";
import type { OpenBenchmark } from "../../bench/harness/benchmark.js";
import { machineCpuSeconds, stolenShare } from "../../bench/harness/machine-cpu.js";
import { disturbedNotes, runRounds } from "../../bench/harness/rounds.js";
import { listOf } from "../helpers/list-of.js";
import { BENCHMARK } from "./example-run.js";

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
  };
  const rounds: number[] = [];
  const results = await runRounds(BENCHMARK, opened, { warmup: 2, measured: 3, again: 0 }, ({ round }) =>
    rounds.push(round),
  );
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
    /** The host's share of each turn's second, in order. If the benchmark gives its own figure, that one counts. */
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
    };
    const repeated: number[] = [];
    const rounds: number[] = [];
    const plan = { warmup: 1, measured: 3, again: 1 };
    const results = await runRounds(
      BENCHMARK,
      opened,
      plan,
      ({ round, isAgain }) => {
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
    t.strictSame(disturbedNotes(results), [
      "1 rounds were measured again, since the host took over 2 % of the cores' time; medians with them: ours 6.5, peer 6.5",
    ]);
    t.strictSame(disturbedNotes([{ name: "ours", warmup: [], rounds: [] }]), []);
    t.strictSame(repeated, [4, 5]);
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
  });
  const plan = { warmup: 0, measured: 1, again: 0 };
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
