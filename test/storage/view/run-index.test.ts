import t from "tap";
import { createRandom, type Random } from "../../../core/random.js";
import { LONG_LIST_LENGTH } from "../../../storage/columns/ordinal-lists.js";
import { RunIndex, type RunPage, type RunQuery } from "../../../storage/view/run-index.js";
import { heldBufferBytes } from "../../helpers/process/held-memory.js";
import { sized } from "../../helpers/test-size.js";

const seed = Number(process.env.TEST_SEED ?? 20_250_706);

interface PlainRun {
  readonly programOrdinal: number;
  readonly serialNumber: string | null;
  status: number;
  outcome: number;
  timeUs: number;
}

/** The index's answers by brute force: an array of runs, filtered and sliced. */
function queryPlain(runs: readonly PlainRun[], query: RunQuery): RunPage {
  const matching: number[] = [];
  for (let ordinal = runs.length - 1; ordinal >= 0; ordinal--) {
    const run = runs[ordinal]!;
    if (query.programOrdinal !== undefined && run.programOrdinal !== query.programOrdinal) continue;
    if (query.serialNumber !== undefined && run.serialNumber !== query.serialNumber) continue;
    if (query.status !== undefined && run.status !== query.status) continue;
    if (query.outcome !== undefined && run.outcome !== query.outcome) continue;
    if (query.updatedSinceUs !== undefined && !(run.timeUs > query.updatedSinceUs)) continue;
    matching.push(ordinal);
  }
  return { total: matching.length, ordinals: matching.slice(query.offset, query.offset + query.limit) };
}

interface Shape {
  readonly name: string;
  readonly steps: number;
  readonly programs: number;
  readonly serial: (random: Random, runs: readonly PlainRun[]) => string | null;
  readonly program: (random: Random, serialNumber: string | null) => number;
  /** How far back an update reaches: all runs, or the newest few. */
  readonly reach: number;
}

const anyProgram = (random: Random): number => Math.floor(random.next() ** 2 * 5);
const shapes: readonly Shape[] = [
  {
    name: "a line: new parts, some inspected again, updates near the creation",
    steps: sized(8_000, 32_000),
    programs: 5,
    serial: (random, runs) =>
      random.chance(0.1)
        ? null
        : random.chance(0.2) && runs.length > 0
          ? random.pick(runs).serialNumber
          : `SN-${runs.length}`,
    program: anyProgram,
    reach: 30,
  },
  {
    name: "updates anywhere: every block of times straddles every mark",
    steps: sized(8_000, 32_000),
    programs: 5,
    serial: (random) => `SN-${random.integer(0, 3000)}`,
    program: anyProgram,
    reach: Number.POSITIVE_INFINITY,
  },
  {
    name: "few serial numbers with long lists, in several programs",
    steps: sized(6_000, 24_000),
    programs: 3,
    serial: (random) => `SN-${random.integer(0, 3)}`,
    program: (random) => random.integer(0, 2),
    reach: Number.POSITIVE_INFINITY,
  },
  {
    name: "long serial lists that stay in one program each",
    steps: sized(4_000, 16_000),
    programs: 3,
    serial: (random) => `SN-${random.integer(0, 2)}`,
    program: (_, serialNumber) => Number(serialNumber?.slice(3)),
    reach: 200,
  },
];

for (const shape of shapes) {
  t.test(`${shape.name}: every query equals brute force, seed ${seed}`, async (t) => {
    const random = createRandom(seed);
    const index = new RunIndex();
    const runs: PlainRun[] = [];
    let clockUs = 1_700_000_000_000_000;
    let queries = 0;
    const mismatches: string[] = [];
    for (let step = 0; step < shape.steps; step++) {
      clockUs += random.integer(1, 5_000);
      if (runs.length === 0 || random.chance(0.4)) {
        const serialNumber = shape.serial(random, runs);
        const programOrdinal = shape.program(random, serialNumber);
        const run = { serialNumber, programOrdinal, status: 0, outcome: 0, timeUs: clockUs };
        t.equal(index.addRun(run), runs.length) || t.bailout("ordinals must count up");
        runs.push(run);
      } else {
        const ordinal = runs.length - 1 - random.integer(0, Math.min(shape.reach, runs.length) - 1);
        const run = runs[ordinal]!;
        run.timeUs = clockUs;
        if (random.chance(0.6)) {
          // Most change one of the two.
          if (random.chance(0.7)) run.status = random.integer(0, 5);
          if (random.chance(0.5)) run.outcome = random.integer(0, 3);
          index.update(ordinal, { status: run.status, outcome: run.outcome, timeUs: clockUs });
        } else if (random.chance(0.3)) {
          run.outcome = random.integer(0, 3);
          index.changeState(ordinal, { outcome: run.outcome });
          index.update(ordinal, { timeUs: clockUs });
        } else {
          index.update(ordinal, { timeUs: clockUs });
        }
      }
      // In its second half it is taken out as columns and put in again, and goes on.
      if (step % sized(5, 1) !== 0) continue;
      const query = randomQuery(random, runs, shape.programs, clockUs);
      queries++;
      const expected = queryPlain(runs, query);
      const actual = index.query(query);
      if (actual.total !== expected.total || String(actual.ordinals) !== String(expected.ordinals)) {
        mismatches.push(
          `${JSON.stringify(query)}: total ${actual.total}, not ${expected.total}, at ${runs.length} runs`,
        );
      }
    }
    t.comment(`${runs.length} runs, ${queries} queries, ${mismatches.length} mismatches`);
    t.same(mismatches.slice(0, 5), []);
    t.same(
      runs.map((_, ordinal) => index.entry(ordinal)),
      runs,
    );
    t.same(
      [0, 1, 2, 3, 4, 5].map((status) => index.newestOfStatus(status)),
      [0, 1, 2, 3, 4, 5].map((status) => {
        const newest = runs.findLastIndex((run) => run.status === status);
        return newest < 0 ? undefined : newest;
      }),
    );
    t.same(
      Array.from({ length: shape.programs }, (_, program) => index.programRunCount(program)),
      Array.from(
        { length: shape.programs },
        (_, program) => runs.filter((run) => run.programOrdinal === program).length,
      ),
    );
  });
}

function randomQuery(random: Random, runs: readonly PlainRun[], programs: number, clockUs: number): RunQuery {
  const sample = random.pick(runs);
  return {
    ...(random.chance(0.5) && { programOrdinal: random.integer(0, programs) }),
    ...(random.chance(0.4) && {
      serialNumber: random.chance(0.9) && sample.serialNumber !== null ? sample.serialNumber : "unknown",
    }),
    ...(random.chance(0.5) && { status: random.integer(0, 8) }),
    ...(random.chance(0.5) && { outcome: random.integer(0, 4) }),
    ...(random.chance(0.5) && {
      updatedSinceUs: random.pick([
        0,
        clockUs,
        clockUs - random.integer(0, 100_000),
        sample.timeUs,
        sample.timeUs - 1,
        random.pick(runs).timeUs,
      ]),
    }),
    offset: random.chance(0.5) ? 0 : random.integer(0, random.chance(0.5) ? 40 : runs.length + 5),
    limit: random.pick([0, 1, 7, 50, 1000]),
  };
}

t.test("one serial number 10,000 times, all of one program: every filter pages through all of them", async (t) => {
  const index = new RunIndex();
  const run = { programOrdinal: 0, serialNumber: "SAME", status: 3, outcome: 2 };
  for (let i = 0; i < 10_000; i++) index.addRun({ ...run, timeUs: i });
  const newestFirst = Array.from({ length: 10_000 }, (_, i) => 9_999 - i);
  for (const filters of [
    {},
    { programOrdinal: 0 },
    { serialNumber: "SAME" },
    { status: 3 },
    { outcome: 2 },
    { status: 3, outcome: 2 },
    { updatedSinceUs: -1 },
    { ...run, updatedSinceUs: -1 },
  ]) {
    const walked: number[] = [];
    for (let offset = 0; ; ) {
      const { total, ordinals } = index.query({ ...filters, offset, limit: 1000 });
      t.equal(total, 10_000) || t.bailout("wrong total");
      if (ordinals.length === 0) break;
      walked.push(...ordinals);
      offset += ordinals.length;
    }
    t.same(walked, newestFirst, JSON.stringify(filters));
    t.same(index.query({ ...filters, offset: 10_000, limit: 1 }), { total: 10_000, ordinals: [] });
    t.same(index.query({ ...filters, offset: 2 ** 40, limit: 1 }), { total: 10_000, ordinals: [] });
  }
});

t.test("a list answers the same just below, at and above the length where it becomes a long one", async (t) => {
  const index = new RunIndex();
  const runs: PlainRun[] = [];
  for (let i = 0; i < LONG_LIST_LENGTH + 3; i++) {
    for (const programOrdinal of [0, 1]) {
      const states = { status: i % 3, outcome: i % 4 };
      const run = { programOrdinal, serialNumber: `SN-${programOrdinal}`, ...states, timeUs: runs.length };
      runs.push(run);
      index.addRun(run);
    }
    if (i < LONG_LIST_LENGTH - 3) continue;
    for (const query of [
      { programOrdinal: 1 },
      { serialNumber: "SN-0", status: 2 },
      { programOrdinal: 0, outcome: 3 },
      { serialNumber: "SN-1", status: 2, outcome: 1 },
      { programOrdinal: 0, updatedSinceUs: 500 },
    ]) {
      const full = { ...query, offset: 3, limit: 20 };
      t.same(index.query(full), queryPlain(runs, full), `${i + 1} runs, ${JSON.stringify(query)}`);
    }
  }
});

t.test("a million runs of a line cost under 200 bytes each beside ids and places", async (t) => {
  const before = heldBufferBytes();
  const index = new RunIndex();
  const count = sized(40_000, 1_000_000);
  for (let i = 0; i < count; i++) {
    const ordinal = index.addRun({ programOrdinal: i % 3, serialNumber: `SN-${i}`, status: 0, outcome: 0, timeUs: i });
    for (const state of [{ status: 1 }, { outcome: 1 + (i % 3) }, { status: 2 }]) index.changeState(ordinal, state);
    index.update(ordinal, i % 10 === 0 ? { status: 4, outcome: 0, timeUs: i } : { status: 3, timeUs: i });
  }
  // Asked last, so that the index is held until here, whatever the collector does.
  const bytes = (heldBufferBytes() - before) / index.size;
  t.comment(`${bytes.toFixed(1)} bytes a run at ${count}`);
  // Ids and places of records take another 16 and 12 bytes.
  t.ok(bytes < 160, `${bytes}`);
});
