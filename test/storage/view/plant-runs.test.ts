import t from "tap";
import { generateUuidV7 } from "../../../core/identifiers.js";
import type { RunChange } from "../../../core/link/change.js";
import { createRandom, type Random } from "../../../core/random.js";
import { NO_REPORT, REPORT_STATUSES, type ReportStatus } from "../../../core/run/quality.js";
import { foldRun } from "../../../core/run/run-fold.js";
import { RUN_STATUSES, type RunStatus } from "../../../core/run/run-state.js";
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
  status: RunStatus;
  qualityStatus: ReportStatus | null;
  updatedAtUs: number;
}

function matches(run: ModelRun, filter: Omit<RunListQuery, "offset" | "limit">): boolean {
  const { programId, status, qualityStatus, cells, updatedSinceUs = 0 } = filter;
  const isOfProgram = programId === undefined || run.programId === programId;
  const isOfState =
    (status ?? run.status) === run.status &&
    (qualityStatus ?? run.qualityStatus ?? NO_REPORT) === (run.qualityStatus ?? NO_REPORT);
  return isOfProgram && isOfState && cells?.includes(run.cell) !== false && run.updatedAtUs > updatedSinceUs;
}

/** Cells whose runs come, change and come late. */
function growPlant(random: Random): { runs: PlantRuns; model: ModelRun[]; lastUs: number } {
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
    const state = { status: "pending", qualityStatus: null, updatedAtUs: timeUs } as const;
    model.push({ id: runId, cell: `cell-${cell}`, programId, ...state });
  };
  const update = (run: ModelRun): void => {
    timeUs++;
    Object.assign(run, { status: random.pick(RUN_STATUSES), updatedAtUs: timeUs });
    if (random.chance(0.5)) run.qualityStatus = random.pick([null, ...REPORT_STATUSES]);
    runs.update(runs.ordinal(run.id), run.status, run.qualityStatus, timeUs);
    if (!random.chance(0.1)) return;
    run.qualityStatus = random.pick(REPORT_STATUSES);
    runs.setQualityStatus(runs.ordinal(run.id), run.qualityStatus);
  };
  // Some cells are away for a while: their runs come late, between those of others.
  const waiting: [cell: number, nth: number][] = [];
  for (let nth = 0; nth < CELLS * RUNS_OF_CELL; nth++) {
    const cell = Math.floor(random.next() ** 2 * CELLS);
    if (cell % 10 === 3) waiting.push([cell, nth]);
    else add(cell, nth);
    if (random.chance(0.001)) for (const late of waiting.splice(0)) add(...late);
    // Mostly a run of the last ones, now and then any.
    const updated = random.chance(0.05) ? random.integer(0, nth) : nth - random.integer(0, 20);
    const run = model[updated];
    if (run !== undefined) update(run);
  }
  for (const late of waiting) add(...late);
  return { runs, model, lastUs: timeUs };
}

t.test(`a page of a hundred cells costs few steps at any offset, seed ${SEED}`, (t) => {
  const random = createRandom(SEED);
  const { runs, model, lastUs } = growPlant(random);
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
  const mostSteps = { counted: 0, others: 0 };
  for (let nth = 0; nth < 600; nth++) {
    const filter = {
      programId: random.chance(0.3) ? random.pick(PROGRAMS) : undefined,
      status: random.chance(0.3) ? random.pick(RUN_STATUSES) : undefined,
      qualityStatus: random.chance(0.3) ? random.pick([NO_REPORT, ...REPORT_STATUSES]) : undefined,
      cells: random.chance(0.3)
        ? Array.from({ length: random.pick([3, CELLS]) }, () => `cell-${random.integer(0, CELLS)}`)
        : undefined,
      updatedSinceUs: random.chance(0.3) ? random.integer(0, lastUs) : undefined,
    };
    const matching = newestFirst.filter((run) => matches(run, filter));
    const offset = nth < 2 ? nth * (newestFirst.length - 1) : random.integer(0, matching.length + 1);
    const limit = random.pick([0, 1, 50, 200, 2_000]);
    steps = 0;
    const page = runs.query({ ...filter, offset, limit });
    const of = filter.cells === undefined && filter.updatedSinceUs === undefined ? "counted" : "others";
    if (limit <= 200) mostSteps[of] = Math.max(mostSteps[of], steps);
    const expected = matching.slice(offset, offset + limit).map(({ id }) => id);
    t.equal(page.total, matching.length);
    const ids = page.ordinals.map((ordinal) => runs.id(ordinal));
    t.strictSame(ids, expected, `offset ${offset}, limit ${limit}, ${JSON.stringify(filter)}`);
  }
  t.equal(mostSteps.counted, 0, "a page by program, status or outcome asks no table of a cell");
  // One for the total and one for the page of each table, and some for each halving of what is to be skipped.
  t.ok(mostSteps.others < 25 * CELLS, `${mostSteps.others} steps`);
  t.comment(
    `${newestFirst.length} runs of ${CELLS} cells: a page at any offset asks ${mostSteps.counted} tables, by cells or mark at most ${mostSteps.others}`,
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
