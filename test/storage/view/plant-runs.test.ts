import t from "tap";
import { generateUuidV7 } from "../../../core/identifiers.js";
import type { RunChange } from "../../../core/link/change.js";
import { createRandom } from "../../../core/random.js";
import { foldRun } from "../../../core/run/run-fold.js";
import { encodeChanges } from "../../../storage/records/change-record.js";
import { IndexReader } from "../../../storage/records/index-reader.js";
import { PlantRuns } from "../../../storage/view/plant/plant-runs.js";
import { type RunListQuery, ViewRuns } from "../../../storage/view/view-runs.js";

const SEED = Number(process.env.TEST_SEED ?? 20_261_128);
const CELLS = 100;
const RUNS_OF_CELL = 100;
const PROGRAMS = ["01890a5d-ac96-774b-bcce-b302099a8057", "01890a5d-ac96-774b-bcce-b302099a8058"] as const;
const STORE = "11111111-1111-4111-8111-111111111111";

interface ModelRun {
  id: string;
  cell: string;
  programId: string;
  updatedAtUs: number;
}

function matches(run: ModelRun, { programId, cells, updatedSinceUs = 0 }: Omit<RunListQuery, "offset" | "limit">) {
  const isOfProgram = programId === undefined || run.programId === programId;
  return isOfProgram && cells?.includes(run.cell) !== false && run.updatedAtUs > updatedSinceUs;
}

t.test(`a page of a hundred cells costs few steps at any offset, seed ${SEED}`, (t) => {
  const random = createRandom(SEED);
  const runs = new PlantRuns();
  const model: ModelRun[] = [];
  const startMs = 1_700_000_000_000;
  let timeUs = 0;
  const add = (cell: number, nth: number): void => {
    // Each cell's clock is a little different; some cells are much busier than others.
    const runId = generateUuidV7(startMs + nth * 1_000 + cell, random.bytes(10), null);
    const programId = random.pick(PROGRAMS);
    const names = { programId, programName: "p", robotId: null, serialNumber: null, traceId: null };
    const change: RunChange = { kind: "run_created", runId, ...names, revision: 1, metadata: null, steps: [] };
    timeUs++;
    const { index } = encodeChanges(null, [change], foldRun(undefined, change, timeUs));
    const reader = new IndexReader(index);
    reader.origin();
    runs.select(`cell-${cell}`, STORE);
    if (!runs.create(reader.run(), timeUs)) throw new Error(`run ${runId} is not above the last one of its cell`);
    model.push({ id: runId, cell: `cell-${cell}`, programId, updatedAtUs: timeUs });
  };
  // Some cells are away for a while: their runs come late, between those of others.
  const waiting: [cell: number, nth: number][] = [];
  for (let nth = 0; nth < CELLS * RUNS_OF_CELL; nth++) {
    const cell = Math.floor(random.next() ** 2 * CELLS);
    if (cell % 10 === 3) waiting.push([cell, nth]);
    else add(cell, nth);
    if (random.chance(0.001)) for (const late of waiting.splice(0)) add(...late);
  }
  for (const late of waiting) add(...late);
  const newestFirst = model.sort((left, right) => (left.id < right.id ? 1 : -1));
  const { query } = ViewRuns.prototype;
  let steps = 0;
  ViewRuns.prototype.query = function (...asked) {
    steps++;
    return query.apply(this, asked);
  };
  t.teardown(() => {
    ViewRuns.prototype.query = query;
  });
  const mostSteps = { all: 0, some: 0 };
  for (let nth = 0; nth < 400; nth++) {
    const filter = {
      programId: random.chance(0.3) ? random.pick(PROGRAMS) : undefined,
      cells: random.chance(0.3) ? [1, 2, 3].map(() => `cell-${random.integer(0, CELLS)}`) : undefined,
      updatedSinceUs: random.chance(0.3) ? random.integer(0, timeUs) : undefined,
    };
    const matching = newestFirst.filter((run) => matches(run, filter));
    const offset = nth < 2 ? nth * (newestFirst.length - 1) : random.integer(0, matching.length + 1);
    const limit = random.pick([0, 1, 50, 200, 2_000]);
    steps = 0;
    const page = runs.query({ ...filter, offset, limit });
    const of = Object.values(filter).every((value) => value === undefined) ? "all" : "some";
    if (limit <= 200) mostSteps[of] = Math.max(mostSteps[of], steps);
    const expected = matching.slice(offset, offset + limit).map(({ id }) => id);
    t.equal(page.total, matching.length);
    const ids = page.ordinals.map((ordinal) => runs.id(ordinal));
    t.strictSame(ids, expected, `offset ${offset}, limit ${limit}, ${JSON.stringify(filter)}`);
  }
  t.equal(mostSteps.all, 0, "a page of all runs asks no table of a cell");
  // One for the total and one for the page of each table, and some for each halving of what is to be skipped.
  t.ok(mostSteps.some < 25 * CELLS, `${mostSteps.some} steps`);
  t.comment(
    `${newestFirst.length} runs of ${CELLS} cells: a page at any offset asks ${mostSteps.all} tables, with a filter at most ${mostSteps.some}`,
  );
  t.end();
});

t.test(`runs come and late ones get their place without a text, and without a new order, seed ${SEED}`, (t) => {
  const random = createRandom(SEED + 1);
  const [cells, count] = [20, 10_000];
  const runs = new PlantRuns();
  const ids: string[] = [];
  const prototype = ViewRuns.prototype;
  const { id, idWord } = prototype;
  const counts = { texts: 0, words: 0 };
  prototype.id = function (ordinal) {
    counts.texts++;
    return id.call(this, ordinal);
  };
  prototype.idWord = function (ordinal, word) {
    counts.words++;
    return idWord.call(this, ordinal, word);
  };
  t.teardown(() => Object.assign(prototype, { id, idWord }));
  const late: { cell: number; runId: string }[] = [];
  const end = (cell: number, runId: string, at: number): number => {
    const created = { kind: "run_created", runId, programId: PROGRAMS[0], programName: "p", revision: 1 } as const;
    const nothing = { robotId: null, serialNumber: null, traceId: null, metadata: null, steps: [] };
    const run = { ...foldRun(undefined, { ...created, ...nothing }, at), status: "completed" } as const;
    const reader = new IndexReader(encodeChanges(null, [{ kind: "run_ended", runId, run }], undefined).index);
    reader.origin();
    runs.select(`cell-${cell}`, `${String(cell).padStart(8, "0")}${STORE.slice(8)}`);
    return runs.end(reader.run(), at, { segmentBase: 1, offset: at, length: 1 } as never);
  };
  for (let nth = 0; nth < count; nth++) {
    const cell = random.integer(0, cells - 1);
    const runId = generateUuidV7(1_700_000_000_000 + nth * 1_000, random.bytes(10), null);
    ids.push(runId);
    if (random.chance(0.01)) late.push({ cell, runId });
    else end(cell, runId, nth + 1);
  }
  t.equal(counts.texts, 0, "no text is made to find a run's place");
  t.ok(counts.words < 6 * count, `${counts.words} words are compared for ${count} runs that come in order`);
  for (let cell = 0; cell < cells; cell++)
    end(cell, generateUuidV7(1_800_000_000_000 + cell, random.bytes(10), null), 1);
  for (const { cell, runId } of late) t.equal(end(cell, runId, count), -1, "it waits for its place");
  counts.words = 0;
  runs.admitLateRuns();
  t.ok(counts.words < 200 * late.length, `${counts.words} words are compared for ${late.length} late runs`);
  const page = runs.query({ offset: cells, limit: count }).ordinals;
  t.strictSame(
    page.map((ordinal) => runs.id(ordinal)),
    ids.reverse(),
  );
  t.end();
});
