import { setImmediate as eventLoopTurn } from "node:timers/promises";
import t from "tap";
import { uuidToBytes } from "../../../../core/identifiers.js";
import { RUN_STATUSES } from "../../../../core/run/run-state.js";
import {
  COUNTS,
  type ColumnCounts,
  columnsBytes,
  FIGURE_COLUMNS,
  type SegmentFindings,
  viewColumns,
} from "../../../../storage/findings/finding-columns.js";
import type { ColumnsReader } from "../../../../storage/findings/segment-findings.js";
import { programStatistics } from "../../../../workers/artefacts/findings/program-statistics.js";
import { ProgramSummary } from "../../../../workers/artefacts/findings/program-summary.js";
import { collectGarbage, heldBytes } from "../../../helpers/process/held-memory.js";
import { MEASURED_PROGRAM } from "../../../helpers/statistics/measured-store.js";

const SEGMENTS = 40;
const RUNS_OF_SEGMENT = 5_000;
const RUNS = SEGMENTS * RUNS_OF_SEGMENT;
const SERIAL_CHARACTERS = 60;
const MB = 1e6;
const QUERY = {
  ...{ dataDirectory: "", untilSequence: Number.MAX_SAFE_INTEGER, programId: MEASURED_PROGRAM },
  ...{ sinceUs: null, untilUs: null, serialNumber: null, check: null },
};

/** Runs with a check each, and with serial numbers that are all different; every fourth is the second inspection of the one before. */
function segmentOf(nth: number): SegmentFindings {
  const size = RUNS_OF_SEGMENT;
  const none = Object.fromEntries(COUNTS.map((name) => [name, 0])) as ColumnCounts;
  const texts = size + 1;
  const textBytes = size * SERIAL_CHARACTERS + "bore".length;
  const counts = { ...none, runs: size, checks: size, settings: 1, programs: 1, texts, textBytes };
  const figures = viewColumns(FIGURE_COLUMNS, counts, new ArrayBuffer(columnsBytes(FIGURE_COLUMNS, counts)), 0);
  figures.programIds.set(uuidToBytes(MEASURED_PROGRAM));
  figures.textEnds[0] = Buffer.from(figures.texts.buffer, figures.texts.byteOffset).write("bore");
  for (let at = 0; at < size; at++) {
    const run = nth * size + at;
    const isAgain = at % 4 === 3;
    const end = (figures.textEnds[at] as number) + SERIAL_CHARACTERS;
    figures.texts.set(Buffer.from(`SN-${run}`.padEnd(SERIAL_CHARACTERS, "x")), end - SERIAL_CHARACTERS);
    figures.textEnds[at + 1] = end;
    figures.serials[at] = isAgain ? at + 1 : at + 2;
    figures.revisions[at] = isAgain ? 2 : 1;
    figures.sequences[at] = run + 1;
    figures.completedAtUs[at] = 2e15 + run;
    figures.createdAtUs[at] = 2e15 + run;
    figures.startedAtUs[at] = 2e15 - (run % 977) * 1e6;
    figures.values[at] = Math.sin(run);
    figures.checkEnds[at] = at + 1;
    figures.defectEnds[at] = 0;
    figures.outcomes[at] = 1 + (run % 3);
  }
  figures.statuses.fill(RUN_STATUSES.indexOf("completed"));
  figures.nominals.fill(Number.NaN);
  figures.thresholds.fill(Number.NaN);
  return { counts, figures, details: null };
}

/** A store of so many segments. */
const storeOf = (segments: number): ColumnsReader => ({
  async spans() {
    return Array.from({ length: segments }, (_, nth) => {
      const base = nth * RUNS_OF_SEGMENT + 1;
      const lowUs = 2e15 + nth * RUNS_OF_SEGMENT;
      return { base, nextBase: base + RUNS_OF_SEGMENT, lowUs, highUs: lowUs + RUNS_OF_SEGMENT - 1 };
    });
  },
  read: async (_, { base }) => segmentOf((base - 1) / RUNS_OF_SEGMENT),
});
const store = storeOf(SEGMENTS);

/** Another thread frees the buffers: it gets a turn in between. */
async function held(): Promise<number> {
  collectGarbage();
  await eventLoopTurn();
  return heldBytes();
}

/** In a function of its own, so that nothing holds the last segment. */
async function summaryOfAll(): Promise<ProgramSummary> {
  const summary = new ProgramSummary(QUERY, { mostValues: 12_000_000, mostPartBytes: 96_000_000 });
  await summary.count(store, QUERY.untilSequence);
  return summary;
}

t.test("a summary takes as much memory as it says", async (t) => {
  await summaryOfAll();
  const before = await held();
  const summary = await summaryOfAll();
  const taken = (await held()) - before;
  const text = `${RUNS} runs: ${(taken / RUNS).toFixed(1)} bytes a run, it says ${(summary.bytes / RUNS).toFixed(1)}`;
  t.comment(text);
  // 16 for a value and a duration; three of four runs are parts, with 60 bytes of serial number and at most 38 more.
  t.ok(taken / RUNS < 16 + 0.75 * (SERIAL_CHARACTERS + 38) + 4, text);
  t.ok(taken < 1.05 * summary.bytes && taken > 0.7 * summary.bytes, text);
  t.ok(summary.holdsAll);
});

t.test("a small summary takes as much memory as it says", async (t) => {
  const before = await held();
  const summaries: ProgramSummary[] = [];
  for (let nth = 0; nth < 20; nth++) {
    const summary = new ProgramSummary(
      { ...QUERY, untilUs: 2e15 + 5 },
      { mostValues: 12_000_000, mostPartBytes: 96_000_000 },
    );
    await summary.count(storeOf(1), QUERY.untilSequence);
    summaries.push(summary);
  }
  const taken = ((await held()) - before) / summaries.length;
  const said = summaries.reduce((sum, { bytes }) => sum + bytes, 0) / summaries.length;
  t.ok(taken < 1.1 * said, `${taken} bytes, it says ${said}`);
});

t.test("the memory for an answer has a bound, however many runs and serial numbers there are", async (t) => {
  const whole = await programStatistics(store, QUERY);
  let mostBytes = 0;
  const watched: ColumnsReader = {
    ...store,
    async read(...asked) {
      // Most is held at the end of each time that all are read.
      if (asked[1].base > RUNS - RUNS_OF_SEGMENT) mostBytes = Math.max(mostBytes, await held());
      return store.read(...asked);
    },
  };
  const before = await held();
  const bounds = { mostValues: 100_000, mostPartBytes: 4 * MB };
  t.same(await programStatistics(watched, QUERY, { held: bounds }), whole, "the same answer");
  const text = `${((mostBytes - before) / MB).toFixed(1)} MB for ${RUNS} runs`;
  t.comment(text);
  // Without bounds it would be 16 MB. Beside the numbers of a series, and the serial numbers, some segments of 0.6 MB are held.
  t.ok(mostBytes - before < bounds.mostPartBytes + 8 * RUNS + 3 * MB, text);
});
