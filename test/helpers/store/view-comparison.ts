/** Compares what a view answers with the plain model of the same history. */

import type { Random } from "../../../core/random.js";
import { REPORT_STATUSES } from "../../../core/run/quality.js";
import { runSummaryResponse } from "../../../core/run/run-response.js";
import { qualityStatusOf, RUN_STATUSES, type RunState, summarizeRun } from "../../../core/run/run-state.js";
import type { CellState } from "../../../storage/view/cell-state.js";
import type { RunListQuery, View } from "../../../storage/view/view.js";
import type { CellHistory } from "../link/cell-history.js";

const BASE_URL = "http://cell:8000";
const UNKNOWN_ID = "01890a5d-ac96-774b-bcce-b302099a8057";

function listPlain(history: CellHistory, query: RunListQuery): { total: number; runs: RunState[] } {
  const matching = history.newestFirst.filter(
    (run) =>
      (query.programId === undefined || run.programId === query.programId) &&
      (query.serialNumber === undefined || run.serialNumber === query.serialNumber) &&
      (query.status === undefined || run.status === query.status) &&
      (query.qualityStatus === undefined || (qualityStatusOf(run) ?? "none") === query.qualityStatus) &&
      (query.updatedSinceUs === undefined || run.updatedAtUs > query.updatedSinceUs),
  );
  return { total: matching.length, runs: matching.slice(query.offset, query.offset + query.limit) };
}

function randomQuery(random: Random, history: CellHistory): RunListQuery {
  const runs = [...history.runs.values()];
  return {
    programId: random.chance(0.3) ? random.pick([...history.programIdsEver, UNKNOWN_ID]) : undefined,
    serialNumber: random.chance(0.3) ? `SN-${random.integer(0, 40)}` : undefined,
    status: random.chance(0.3) ? random.pick([...RUN_STATUSES, "exploded"]) : undefined,
    qualityStatus: random.chance(0.3) ? random.pick([...REPORT_STATUSES, "none", "null"]) : undefined,
    updatedSinceUs:
      random.chance(0.3) && runs.length > 0 ? random.pick(runs).updatedAtUs - random.integer(0, 1) : undefined,
    offset: random.chance(0.6) ? 0 : random.integer(0, runs.length + 2),
    limit: random.pick([1, 10, 50, 1000]),
  };
}

/** A page of the list of runs, read. */
export async function listRuns(view: View, query: RunListQuery, baseUrl: string) {
  const page = view.runPage(query, baseUrl);
  return { total: page.total, ...(await page.read()) };
}

/** Compares what the view answers with the model, everything or (while the history goes on) a sample; returns the differences. */
export async function differences(
  view: View,
  history: CellHistory,
  random: Random,
  queries: number,
): Promise<string[]> {
  const found: string[] = [];
  const compare = (what: string, actual: unknown, expected: unknown): void => {
    const [actualText, expectedText] = [JSON.stringify(actual), JSON.stringify(expected)];
    if (actualText !== expectedText) found.push(`${what}: ${actualText}, not ${expectedText}`);
  };
  for (let i = 0; i < queries; i++) {
    const query = randomQuery(random, history);
    const { total, runs } = await listRuns(view, query, BASE_URL);
    const expected = listPlain(history, query);
    compare(
      `list ${JSON.stringify(query)}`,
      [total, runs.map((json) => JSON.parse(Buffer.from(json).toString()))],
      [expected.total, expected.runs.map((run) => runSummaryResponse(summarizeRun(run), BASE_URL))],
    );
  }
  const runs = history.newestFirst;
  for (const run of random.chance(0.05) || queries > 100 ? runs : runs.slice(0, 15)) {
    compare(`run ${run.id}`, await view.run(run.id), run);
    compare(`head ${run.id}`, view.runHead(run.id), { id: run.id, status: run.status, updatedAtUs: run.updatedAtUs });
    for (const frame of run.frames) compare(`run of ${frame.id}`, view.runOfFrame(frame.id), run.id);
  }
  compare(
    "active run",
    view.activeRun(),
    runs.find((run) => run.status === "running" || run.status === "finalizing"),
  );
  const newestPrograms = [...history.programs.values()].sort((a, b) => (a.document.id < b.document.id ? 1 : -1));
  for (const robotId of [undefined, "r1", "r2", "r3", "r4"]) {
    const offset = random.integer(0, 3);
    const limit = random.integer(1, 5);
    const matching = newestPrograms.filter(
      ({ document }) => robotId === undefined || document.robot_ids?.includes(robotId),
    );
    const programs = matching.slice(offset, offset + limit).map((program) => ({
      program,
      runCount: runs.filter((run) => run.programId === program.document.id).length,
    }));
    compare(`programs of ${robotId}`, view.listPrograms({ robotId, offset, limit }), {
      total: matching.length,
      programs,
    });
  }
  for (const id of history.programIdsEver) {
    compare(`program ${id}`, view.program(id)?.program, history.programs.get(id));
    compare(`program ${id} ever`, view.cell.programs.everExisted(id), true);
  }
  const programBytes = [...history.programs.values()].reduce((sum, { documentBytes }) => sum + documentBytes, 0);
  compare("bytes of programs", view.cell.programs.documentBytes, programBytes);
  compare("cell", (view.cell as CellState).identity, history.cell);
  const rows = [...history.components.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  compare("components", view.components(), rows);
  return found;
}
