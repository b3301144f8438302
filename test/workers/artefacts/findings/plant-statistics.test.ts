/** Statistics and exports over runs that do not lie in the log in the order of their times: of a hub's cells, and after a clock was set back. */
import t, { type Test } from "tap";
import { createRandom, type Random } from "../../../../core/random.js";
import { nodeFileSystem } from "../../../../storage/disk/file-system.js";
import type { FindingQuery } from "../../../../storage/findings/finding-query.js";
import { FindingsReader } from "../../../../storage/findings/segment-findings.js";
import { KeptSummaries } from "../../../../workers/artefacts/findings/kept-summaries.js";
import { programStatistics } from "../../../../workers/artefacts/findings/program-statistics.js";
import { readAqdef } from "../../../helpers/statistics/aqdef-reader.js";
import { exportPieces } from "../../../helpers/statistics/made-exports.js";
import { MeasuredStore, randomRun } from "../../../helpers/statistics/measured-store.js";
import { plantRuns, plantStore } from "../../../helpers/statistics/plant-runs.js";
import { differenceOf, matchingRunsOf, modelStatistics } from "../../../helpers/statistics/statistics-model.js";

const DAY_US = 86_400_000_000;

/** A cell whose clock is 40 days ahead for a while, until it is set back. */
async function resetStore(t: Test, random: Random): Promise<MeasuredStore> {
  const store = await MeasuredStore.createFor(t);
  const beginUs = Date.UTC(2026, 1, 1) * 1000;
  for (let nth = 0; nth < 240; nth++) {
    const aheadUs = nth >= 80 && nth < 130 ? 40 * DAY_US : 0;
    const serialNumber = `SN ${nth % 90}`;
    const revision = 1 + Math.floor(nth / 90);
    await store.add({
      ...randomRun(random),
      serialNumber,
      revision,
      completedAtUs: beginUs + nth * 20_000_000 + aheadUs,
    });
  }
  return store;
}

async function statisticsOf(
  reader: FindingsReader,
  query: FindingQuery,
  options: Parameters<typeof programStatistics>[2] = {},
): Promise<string> {
  const { json } = await programStatistics(reader, query, options);
  return Buffer.from(json as Uint8Array).toString();
}

async function exportOf(...asked: Parameters<typeof exportPieces>): Promise<string> {
  return Buffer.concat(await exportPieces(...asked)).toString();
}

/** Holds the three exports against the model: which rows they have, in which order. */
async function assertExports(t: Test, store: MeasuredStore, query: FindingQuery, what: string): Promise<void> {
  const reader = new FindingsReader(nodeFileSystem);
  const checks = matchingRunsOf(store.runs, query)
    .filter(({ status }) => status === "completed")
    .flatMap(({ id, completedAtUs, checks }) => checks.map((check) => ({ id, completedAtUs, ...check })));
  const lines = (await exportOf(reader, "ndjson", query)).split("\n").filter((line) => line !== "");
  t.strictSame(
    lines.map((line) => JSON.parse(line) as object).map((row) => pick(row)),
    checks.map(({ id, name, value = null }) => pick({ run_id: id, name, value })),
    `${what}, NDJSON`,
  );
  const rows = (await exportOf(reader, "csv", query)).matchAll(/^[0-9a-f]{8}-[0-9a-f-]{27}(?=,)/gm);
  t.strictSame(
    [...rows].map(([id]) => id),
    checks.map(({ id }) => id),
    `${what}, CSV`,
  );
  const file = readAqdef(await exportOf(reader, "dfq", query));
  const measured = checks.filter(({ value }) => value != null);
  t.strictSame(
    file.characteristics.map(({ values }) => values.map(({ value }) => value)),
    [...new Set(measured.map(({ name }) => name))]
      .sort()
      .map((wanted) => measured.filter(({ name }) => name === wanted).map(({ value }) => value)),
    `${what}, AQDEF`,
  );
}

function pick(row: object): object {
  const { run_id, name, value } = row as Record<string, unknown>;
  return { run_id, name, value };
}

const STORES: readonly [name: string, make: (t: Test, random: Random) => Promise<MeasuredStore>][] = [
  ["a hub", (t, random) => plantStore(t, random, 300)],
  [
    "a hub of cells that shipped one after the other",
    (t, random) => plantStore(t, random, 300, { cells: 12, oneAfterAnother: true }),
  ],
  ["a cell whose clock was set back", resetStore],
];

for (const [seed, [name, make]] of STORES.entries()) {
  t.test(`statistics and exports of ${name} are those of a plain model`, async (t) => {
    const random = createRandom(50 + seed);
    const store = await make(t, random);
    const times = store.runs.map(({ completedAtUs }) => completedAtUs);
    const inOrder = times.toSorted((a, b) => a - b);
    t.not(times.join(), inOrder.join(), "the log is not in order");
    const middleUs = inOrder[times.length >> 1] as number;
    const reader = new FindingsReader(nodeFileSystem);
    for (const bounds of [
      ...[{}, { sinceUs: middleUs }, { untilUs: middleUs }, { check: "check ä 0" }],
      ...[{ serialNumber: "SN 7" }, { sinceUs: inOrder[20] as number, untilUs: middleUs }],
    ]) {
      const query = store.query(bounds);
      const what = `seed ${50 + seed}, ${JSON.stringify(bounds)}`;
      const found = await statisticsOf(reader, query);
      t.equal(differenceOf(JSON.parse(found), modelStatistics(store.runs, query)), undefined, what);
      for (const [mostValues, mostPartBytes] of [
        [1, 1_000_000],
        [200, 2_000],
      ] as const) {
        const held = { mostValues, mostPartBytes };
        t.equal(await statisticsOf(reader, query, { held }), found, what);
      }
      if (!("check" in bounds)) await assertExports(t, store, query, what);
    }
    for (const format of ["csv", "ndjson", "dfq"] as const) {
      const whole = await exportOf(reader, format, store.query());
      for (const pieces of [{ mostBytes: 0 }, { mostBytes: 700 }, { mostMs: 0 }])
        t.equal(await exportOf(reader, format, store.query(), pieces), whole, `${format} in pieces`);
    }
  });
}

t.test("a time is half-open to the microsecond, in each export", async (t) => {
  for (const store of [await plantStore(t, createRandom(61), 120), await resetStore(t, createRandom(62))]) {
    for (const at of [0, 3, 50, 77, 119]) {
      const { completedAtUs: us } = store.runs[at]!;
      for (const [sinceUs, untilUs] of [
        ...[
          [us, us + 1],
          [us + 1, us + 1_000],
          [us - 1_000, us],
          [us - 1, us + 1],
        ],
        ...[
          [us, null],
          [null, us],
          [us + 1, null],
          [null, us + 1],
        ],
      ] as [number | null, number | null][])
        await assertExports(t, store, store.query({ sinceUs, untilUs }), `run ${at} from ${sinceUs} to ${untilUs}`);
    }
  }
});

t.test("an answer that goes on has the bytes of one that begins anew, also if runs come late", async (t) => {
  const store = await MeasuredStore.createFor(t);
  const [reader, kept] = [new FindingsReader(nodeFileSystem), new KeptSummaries()];
  const random = createRandom(63);
  const runs = plantRuns(random, 300);
  while (runs.length > 0) {
    for (const run of runs.splice(0, random.integer(1, 6))) await store.add(run);
    const query = store.query(random.chance(0.3) ? { serialNumber: "SN 7" } : {});
    const found = await statisticsOf(reader, query, { kept });
    t.equal(found, await statisticsOf(new FindingsReader(nodeFileSystem), query), `${runs.length} runs are left`);
    if (random.chance(0.2)) t.equal(differenceOf(JSON.parse(found), modelStatistics(store.runs, query)), undefined);
  }
});

t.test("a part is one part, whichever cells inspect it", async (t) => {
  const inspected = async (
    ...runs: [revision: number, createdS: number, endedS: number, "passed" | "failed" | null][]
  ) => {
    const store = await MeasuredStore.createFor(t);
    const beginUs = Date.UTC(2026, 1, 1) * 1000;
    for (const [revision, createdS, endedS, status] of runs) {
      const times = { createdAtUs: beginUs + createdS * 1e6, completedAtUs: beginUs + endedS * 1e6 };
      const checks = status === null ? [] : [{ name: "bore", status }];
      await store.add({ serialNumber: "A", revision, ...times, checks, ...(status === null && { status: "failed" }) });
    }
    const { first_pass_yield: first, final_yield: final } = JSON.parse(
      await statisticsOf(new FindingsReader(nodeFileSystem), store.query()),
    ) as Record<string, number | null>;
    return [first, final];
  };
  t.strictSame(await inspected([1, 0, 10, "failed"], [2, 20, 30, "passed"]), [0, 1]);
  // The second cell counts from 1 again, and its run comes first.
  t.strictSame(await inspected([1, 100, 110, "passed"], [1, 0, 10, "failed"], [2, 20, 30, "failed"]), [0, 1]);
  t.strictSame(await inspected([1, 100, 110, "failed"], [1, 0, 10, "passed"]), [1, 0]);
  // A run that its producer has left ends late: the newer inspection counts.
  t.strictSame(await inspected([2, 20, 30, "passed"], [1, 0, 900, null]), [null, 1]);
  t.strictSame(await inspected([1, 0, 10, "passed"], [1, 20, 30, null]), [1, null]);
});
