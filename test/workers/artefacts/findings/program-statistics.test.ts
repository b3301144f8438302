import t, { type Test } from "tap";
import { createRandom } from "../../../../core/random.js";
import type { QualityCheck } from "../../../../core/run/quality.js";
import { nodeFileSystem } from "../../../../storage/disk/file-system.js";
import { FindingsReader } from "../../../../storage/findings/segment-findings.js";
import { KeptSummaries } from "../../../../workers/artefacts/findings/kept-summaries.js";
import { programStatistics } from "../../../../workers/artefacts/findings/program-statistics.js";
import { ProgramSummary } from "../../../../workers/artefacts/findings/program-summary.js";
import { MEASURED_PROGRAM, MeasuredStore, OTHER_PROGRAM } from "../../../helpers/statistics/measured-store.js";
import { differenceOf, type ModelQuestion, modelStatistics } from "../../../helpers/statistics/statistics-model.js";

type Statistics = ReturnType<typeof modelStatistics>;

async function textOf(
  store: MeasuredStore,
  question: Partial<ModelQuestion> = {},
  reader = new FindingsReader(nodeFileSystem),
  kept = new KeptSummaries(),
): Promise<string> {
  const {
    programId = MEASURED_PROGRAM,
    untilSequence = store.sequence,
    sinceUs,
    untilUs,
    serialNumber,
    check,
  } = question;
  const query = {
    ...{ dataDirectory: store.directory, untilSequence, programId },
    ...{ sinceUs: sinceUs ?? null, untilUs: untilUs ?? null },
    ...{ serialNumber: serialNumber ?? null, check: check ?? null },
  };
  const answer = await programStatistics(reader, query, { kept });
  return answer.json === null ? "too many names" : Buffer.from(answer.json).toString();
}

async function statisticsOf(store: MeasuredStore, question?: Partial<ModelQuestion>): Promise<Statistics> {
  return JSON.parse(await textOf(store, question)) as Statistics;
}

/** A store whose runs have one check each. */
async function storeOfChecks(t: Test, checks: readonly Partial<QualityCheck>[]): Promise<MeasuredStore> {
  const store = await MeasuredStore.createFor(t);
  for (const check of checks) await store.add({ checks: [{ name: "bore", status: "passed", ...check }] });
  return store;
}

/** The only check of the program's statistics. */
async function checkOf(store: MeasuredStore): Promise<Statistics["checks"][number]> {
  const { checks } = await statisticsOf(store);
  if (checks.length !== 1) throw new Error(`${checks.length} checks`);
  return checks[0]!;
}

t.test("statistics of seeded histories are those of a plain model", async (t) => {
  for (const seed of [1, 2, 3]) {
    const random = createRandom(seed);
    const store = await MeasuredStore.createFor(t);
    await store.fill(random, 250);
    const last = store.runs.at(-1)!;
    const middleUs = store.runs[120]!.completedAtUs;
    const questions: ModelQuestion[] = [
      { programId: MEASURED_PROGRAM },
      { programId: OTHER_PROGRAM },
      { programId: "019b76da-a800-7000-8000-0000000000cc" },
      { programId: MEASURED_PROGRAM, sinceUs: middleUs },
      { programId: MEASURED_PROGRAM, untilUs: middleUs },
      { programId: MEASURED_PROGRAM, sinceUs: middleUs, untilUs: middleUs },
      { programId: MEASURED_PROGRAM, sinceUs: middleUs, untilUs: last.completedAtUs },
      { programId: MEASURED_PROGRAM, serialNumber: random.pick(store.runs).serialNumber },
      { programId: MEASURED_PROGRAM, serialNumber: "nobody" },
      { programId: MEASURED_PROGRAM, check: random.pick(store.runs.flatMap(({ checks }) => checks)).name },
      { programId: MEASURED_PROGRAM, check: "no such check" },
    ];
    for (const question of questions) {
      const what = `seed ${seed}, ${JSON.stringify(question)}`;
      t.equal(
        differenceOf(await statisticsOf(store, question), modelStatistics(store.runs, question)),
        undefined,
        what,
      );
    }
  }
});

t.test("statistics while runs are recorded are those of the model at that moment", async (t) => {
  const store = await MeasuredStore.createFor(t);
  const random = createRandom(5);
  const reader = new FindingsReader(nodeFileSystem);
  for (let part = 0; part < 12; part++) {
    await store.fill(random, 25);
    for (const untilSequence of [store.sequence, random.integer(1, store.sequence)]) {
      const question = { programId: MEASURED_PROGRAM, untilSequence };
      const model = modelStatistics(store.runs, question);
      t.equal(differenceOf(await statisticsOf(store, question), model), undefined, `up to record ${untilSequence}`);
      t.equal(
        await textOf(store, question, reader),
        await textOf(store, question),
        "by a reader that was asked before",
      );
    }
  }
});

t.test("an answer that goes on from the one before has the bytes of one that begins anew", async (t) => {
  for (const seed of [11, 12, 13]) {
    const store = await MeasuredStore.createFor(t);
    const random = createRandom(seed);
    const [reader, kept] = [new FindingsReader(nodeFileSystem), new KeptSummaries()];
    const sinceUs = Date.UTC(2026, 0, 31, 12, 20) * 1000;
    const questions: Partial<ModelQuestion>[] = [
      ...[{}, { programId: OTHER_PROGRAM }, { sinceUs }, { untilUs: sinceUs }, { serialNumber: "SN 1" }],
      ...[{ check: "check ä 0" }, { sinceUs, untilUs: sinceUs + 900_000_000 }],
    ];
    for (let step = 0; step < 120; step++) {
      // New names come late, runs end with an older time, programs are deleted, and the log begins new segments.
      await store.fill(random, random.integer(0, 4), step < 60 ? 3 : 7);
      if (random.chance(0.1)) {
        const completedAtUs = random.pick(store.runs)?.completedAtUs ?? sinceUs;
        const checks = [
          { name: `late ${step % 5}`, status: "failed" as const, value: random.normal() * 10 ** (step % 9) },
        ];
        await store.add({ completedAtUs, revision: random.integer(1, 3), serialNumber: "SN 1", checks });
      }
      if (random.chance(0.03)) await store.append({ kind: "program_deleted", id: OTHER_PROGRAM });
      const question = random.pick(questions);
      const untilSequence = random.chance(0.1) ? random.integer(1, store.sequence) : store.sequence;
      const found = await textOf(store, { ...question, untilSequence }, reader, kept);
      const what = `seed ${seed}, step ${step}, ${JSON.stringify(question)}`;
      if (found !== (await textOf(store, { ...question, untilSequence }))) t.fail(what);
      if (step % 10 > 0) continue;
      const model = modelStatistics(store.runs, { programId: MEASURED_PROGRAM, ...question, untilSequence });
      t.equal(differenceOf(JSON.parse(found), model), undefined, what);
    }
  }
});

t.test("an answer goes on from the one before, and reads no older segment", async (t) => {
  const store = await MeasuredStore.createFor(t);
  await store.fill(createRandom(14), 300);
  const reader = new FindingsReader(nodeFileSystem);
  const kept = new KeptSummaries();
  await textOf(store, {}, reader, kept);
  await store.fill(createRandom(15), 3);
  const bases: number[] = [];
  const { read } = reader;
  reader.read = (...asked) => {
    bases.push(asked[1].base);
    return read.apply(reader, asked);
  };
  await textOf(store, {}, reader, kept);
  t.ok(bases.length <= 2 && bases.every((base) => base > 1), `segments ${bases.join()}`);
  await textOf(store, { check: "check ä 0" }, reader, kept);
  t.ok(bases.includes(1), "another question reads them all");
});

t.test("kept: where there is no room, a question must come twice in a row", async (t) => {
  const kept = new KeptSummaries();
  const summary = (bytes: number) =>
    Object.create(ProgramSummary.prototype, {
      bytes: { value: bytes },
      untilSequence: { value: 5 },
      holdsAll: { value: true },
    }) as ProgramSummary;
  const query = (check: string, untilSequence = 5) => ({
    ...{
      dataDirectory: "d",
      untilSequence,
      programId: MEASURED_PROGRAM,
      sinceUs: null,
      untilUs: null,
      serialNumber: null,
      check,
    },
  });
  const large = summary(150 * 1024 * 1024);
  kept.keep(query("a"), large);
  for (const other of ["b", "c", "b"]) kept.keep(query(other), summary(100 * 1024 * 1024));
  t.equal(kept.take(query("a", 4)), undefined, "it has counted more than is asked for");
  t.equal(kept.take(query("a", 6)), large, "questions that come once do not drive it out");
  kept.keep(query("a"), large);
  const second = summary(100 * 1024 * 1024);
  kept.keep(query("b"), second);
  kept.keep(query("b"), second);
  t.same([kept.take(query("a")), kept.take(query("b"))], [undefined, second]);
  kept.keep(query("d"), summary(1024 ** 3));
  kept.keep(query("d"), summary(1024 ** 3));
  t.equal(kept.take(query("d")), undefined, "too large");
});

t.test("a program without runs, and runs without checks", async (t) => {
  const store = await MeasuredStore.createFor(t);
  const empty = await statisticsOf(store);
  t.match(empty, { runs: { completed: 0 }, first_pass_yield: null, final_yield: null });
  t.match(empty.duration_seconds, { count: 0, p50: null, p99: null });
  t.same([empty.checks, empty.defects], [[], []]);
  await store.add({});
  t.match(await statisticsOf(store), { runs: { completed: 1, without_report: 1 }, first_pass_yield: null });
});

t.test("no values: counts only", async (t) => {
  const check = await checkOf(
    await storeOfChecks(t, [{ status: "failed" }, { status: "error", value: null, nominal: 1 }]),
  );
  t.match(check, {
    count: 2,
    failed: 1,
    error: 1,
    values: 0,
    mean: null,
    median: null,
    nominal: null,
    limits_changed: false,
  });
  t.same([check.histogram, check.trend], [null, []]);
});

t.test("one value: no spread and no capability", async (t) => {
  const check = await checkOf(await storeOfChecks(t, [{ value: 5, nominal: 5, threshold: 1 }]));
  t.match(check, { values: 1, mean: 5, standard_deviation: null, cp: null, cpk: null, pp: null, ppk: null });
  t.match(check, { nominal: 5, lower_limit: 4, upper_limit: 6 });
  t.equal(check.trend.length, 1);
});

t.test("all values equal: a spread of 0 and no capability", async (t) => {
  const check = await checkOf(await storeOfChecks(t, Array(12).fill({ value: 0.1, nominal: 0, threshold: 1 })));
  t.match(check, {
    mean: 0.1,
    standard_deviation: 0,
    minimum: 0.1,
    maximum: 0.1,
    cp: null,
    cpk: null,
    pp: null,
    ppk: null,
  });
  t.equal(
    check.histogram?.counts.reduce((sum, count) => sum + count, 0),
    12,
  );
});

t.test("histories of the examples in NIST's e-Handbook have the figures that it prints", async (t) => {
  const figuresOf = async (values: readonly number[], nominal: number, threshold: number) => {
    const { mean, cp, cpk, standard_deviation, pp, ppk } = await checkOf(
      await storeOfChecks(
        t,
        values.map((value) => ({ value, nominal, threshold })),
      ),
    );
    return [mean, cp, cpk, standard_deviation, pp, ppk].map((figure) => figure?.toFixed(4));
  };
  // 6.3.2.2: the limits are its control limits, 45.8159 and 55.8041.
  const flowrates = [49.6, 47.6, 49.9, 51.3, 47.8, 51.2, 52.6, 52.4, 53.6, 52.1];
  t.same((await figuresOf(flowrates, 50.81, 4.9941)).slice(0, 3), ["50.8100", "1.0000", "1.0000"]);
  // 6.1.6: limits 8 and 20, mean 16, deviation 2. From part to part, and over all.
  const around16 = (distance: number) => Array.from({ length: 50 }, (_, at) => 16 + (at % 2 === 0 ? 1 : -1) * distance);
  t.same((await figuresOf(around16(1.128), 14, 6)).slice(0, 3), ["16.0000", "1.0000", "0.6667"]);
  t.same((await figuresOf(around16(2 * Math.sqrt(49 / 50)), 14, 6)).slice(3), ["2.0000", "1.0000", "0.6667"]);
});

t.test("limits missing: the values' figures without capability", async (t) => {
  const check = await checkOf(await storeOfChecks(t, [{ value: 1 }, { value: 2 }, { value: 4, nominal: 2 }]));
  t.match(check, { nominal: 2, lower_limit: null, upper_limit: null, limits_changed: true, cp: null, ppk: null });
  t.ok(check.standard_deviation);
});

t.test("a threshold without nominal value is the least value that passes", async (t) => {
  const check = await checkOf(
    await storeOfChecks(t, [
      { value: 8, threshold: 5 },
      { value: 9, threshold: 5 },
    ]),
  );
  t.match(check, { nominal: null, lower_limit: 5, upper_limit: null, limits_changed: false, cp: null, pp: null });
  t.equal(differenceOf(check.cpk, 3.5 / (3 / 1.128)), undefined);
});

t.test("limits changed: those of the newest check that has them", async (t) => {
  const changing = [{ value: 1, nominal: 1, threshold: 0.5 }, { value: 2, nominal: 2, threshold: 1 }, { value: 2 }];
  const check = await checkOf(await storeOfChecks(t, changing));
  t.match(check, { nominal: 2, lower_limit: 1, upper_limit: 3, limits_changed: true });
  const once = await checkOf(await storeOfChecks(t, [{ nominal: 9, threshold: 9 }, ...Array(3).fill(changing[0])]));
  t.match(once, { nominal: 1, limits_changed: false }, "a check without a value has no say");
});

t.test("unspecified units are those of the newest check", async (t) => {
  const check = await checkOf(await storeOfChecks(t, [{ value: 1 }, { value: 2, canonical_units: "unspecified" }]));
  t.equal(check.canonical_units, "unspecified");
  t.equal((await checkOf(await storeOfChecks(t, [{ value: 1 }]))).canonical_units, "mm");
});

t.test("re-inspections: the first inspection counts for one yield, the newest for the other", async (t) => {
  const store = await MeasuredStore.createFor(t);
  const inspect = async (serialNumber: string | null, revision: number, status: "passed" | "failed") => {
    await store.add({ serialNumber, revision, checks: [{ name: "bore", status }] });
  };
  await inspect("A", 1, "failed");
  await inspect("A", 2, "passed");
  await inspect("B", 1, "passed");
  await inspect("B", 2, "failed");
  await inspect("C", 1, "passed");
  await inspect(null, 1, "passed");
  await store.add({ serialNumber: "C", revision: 2, status: "failed" });
  t.match(
    await statisticsOf(store),
    { first_pass_yield: 3 / 4, final_yield: 2 / 3 },
    "a failed inspection has no outcome",
  );
  await inspect("D", 2, "passed");
  t.match(await statisticsOf(store, { serialNumber: "D" }), { first_pass_yield: null, final_yield: 1 });
});

t.test("a failed run between two others: its checks do not count, and the moving range passes over it", async (t) => {
  const store = await MeasuredStore.createFor(t);
  const checks = (value: number) => [{ name: "bore", status: "passed" as const, value, nominal: 0, threshold: 9 }];
  await store.add({ checks: checks(1), defects: [{ type: "dent" }] });
  await store.add({ checks: checks(100), status: "failed", defects: [{ type: "dent" }] });
  await store.add({ checks: checks(100), status: "cancelled" });
  await store.add({ checks: checks(3), serialNumber: "A" });
  const found = await statisticsOf(store);
  t.match(found.runs, { completed: 2, failed: 1, cancelled: 1, passed: 2 });
  t.match(found.checks[0], { count: 2, values: 2, mean: 2 });
  t.equal(differenceOf(found.checks[0]?.cp, 18 / (6 * (2 / 1.128))), undefined, "from 1 to 3");
  t.match(found.defects[0], { type: "dent", defects: 1, runs: 1 });
});

t.test("a deleted program keeps its statistics", async (t) => {
  const store = await storeOfChecks(t, [{ value: 1 }, { value: 2 }]);
  const before = await textOf(store);
  await store.append({ kind: "program_deleted", id: MEASURED_PROGRAM });
  t.equal(await textOf(store), before);
});

t.test("later records of a run, as retention writes them, count nothing twice", async (t) => {
  const store = await storeOfChecks(t, [{ value: 1 }, { value: 2 }]);
  const before = await textOf(store);
  for (const run of store.runs) await store.repeat(run);
  t.equal(await textOf(store), before);
});

t.test("10,000 different names of checks: all of them, with a shorter trend each; one more is too many", async (t) => {
  const store = await MeasuredStore.createFor(t);
  const checks = Array.from({ length: 10_000 }, (_, at) => ({
    name: `check ${at}`,
    status: "passed" as const,
    value: at,
  }));
  const defects = [{ type: "dent", severity: "minor" }];
  for (let run = 0; run < 12; run++) await store.add({ checks, defects });
  const found = await statisticsOf(store);
  t.equal(found.checks.length, 10_000, "defects have names of their own");
  t.equal(found.defects.length, 1);
  t.same([...new Set(found.checks.map(({ trend }) => trend.length))], [6], "100,000 buckets together at most");
  t.equal((await statisticsOf(store, { check: "check 77" })).checks[0]?.trend.length, 12);
  await store.add({ checks: [{ name: "one more", status: "passed" }] });
  t.equal(await textOf(store), "too many names");
  t.equal((await statisticsOf(store, { check: "check 77" })).checks.length, 1, "one of them can still be asked for");
});

t.test("more values and parts than are held at a time give the same answer", async (t) => {
  const store = await MeasuredStore.createFor(t);
  await store.fill(createRandom(8), 60);
  const reader = new FindingsReader(nodeFileSystem);
  const query = store.query();
  const whole = await programStatistics(reader, query);
  for (const mostValues of [1, 70, 200, 100_000]) {
    for (const mostPartBytes of [100, 300, 100_000]) {
      const answer = await programStatistics(reader, query, { held: { mostValues, mostPartBytes } });
      t.same(answer, whole, `${mostValues} values, ${mostPartBytes} bytes of parts`);
    }
  }
});
