import t from "tap";
import { generateUuidV7 } from "../../../core/identifiers.js";
import type { RunChange } from "../../../core/link/change.js";
import { createRandom } from "../../../core/random.js";
import { foldRun } from "../../../core/run/run-fold.js";
import { encodeChanges } from "../../../storage/records/change-record.js";
import { IndexReader } from "../../../storage/records/index-reader.js";
import { PlantRuns } from "../../../storage/view/plant/plant-runs.js";
import { ViewRuns } from "../../../storage/view/view-runs.js";

const SEED = Number(process.env.TEST_SEED ?? 20_261_128);
const CELLS = 100;
const RUNS_OF_CELL = 100;
const PROGRAM = "01890a5d-ac96-774b-bcce-b302099a8057";
const STORE = "11111111-1111-4111-8111-111111111111";

t.test(`a page of a hundred cells costs few steps at any offset, seed ${SEED}`, (t) => {
  const random = createRandom(SEED);
  const runs = new PlantRuns();
  const ids: string[] = [];
  const startMs = 1_700_000_000_000;
  for (let nth = 0, timeUs = 1; nth < CELLS * RUNS_OF_CELL; nth++, timeUs++) {
    // Each cell's clock is a little different; some cells are much busier than others.
    const cell = Math.floor(random.next() ** 2 * CELLS);
    const runId = generateUuidV7(startMs + nth * 1_000 + cell, random.bytes(10), null);
    const names = { programId: PROGRAM, programName: "p", robotId: null, serialNumber: null, traceId: null };
    const change: RunChange = { kind: "run_created", runId, ...names, revision: 1, metadata: null, steps: [] };
    const { index } = encodeChanges(null, [change], foldRun(undefined, change, timeUs));
    const reader = new IndexReader(index);
    reader.origin();
    runs.select(`cell-${cell}`, STORE);
    if (!runs.create(reader.run(), timeUs)) throw new Error(`run ${runId} is not above the last one of its cell`);
    ids.push(runId);
  }
  const newestFirst = ids.sort().reverse();
  const { query } = ViewRuns.prototype;
  let steps = 0;
  ViewRuns.prototype.query = function (...asked) {
    steps++;
    return query.apply(this, asked);
  };
  t.teardown(() => {
    ViewRuns.prototype.query = query;
  });
  let mostSteps = 0;
  for (let nth = 0; nth < 200; nth++) {
    const offset = nth < 2 ? nth * (newestFirst.length - 1) : random.integer(0, newestFirst.length);
    const limit = random.pick([1, 50, 200]);
    steps = 0;
    const page = runs.query({ offset, limit });
    mostSteps = Math.max(mostSteps, steps);
    const expected = newestFirst.slice(offset, offset + limit);
    t.equal(page.total, newestFirst.length);
    t.strictSame(
      page.ordinals.map((ordinal) => runs.id(ordinal)),
      expected,
      `offset ${offset}, limit ${limit}`,
    );
  }
  // One for the total and one for the page of each table, and some for each halving of what is to be skipped.
  t.ok(mostSteps < 25 * CELLS, `${mostSteps} steps`);
  t.comment(
    `${newestFirst.length} runs of ${CELLS} cells: at most ${mostSteps} queries of one table for a page at any offset`,
  );
  t.end();
});
