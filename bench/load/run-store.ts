import { generateUuidV7 } from "../../core/identifiers.js";
import type { Change } from "../../core/link/change.js";
import { createRandom, type Random } from "../../core/random.js";
import type { ProgramDocument } from "../../core/run/program.js";
import { foldRun } from "../../core/run/run-fold.js";
import type { RunState, RunStatus } from "../../core/run/run-state.js";
import type { RecorderState } from "../../workers/recorder/recorder-state.js";
import type { BenchmarkContext } from "../harness/benchmark.js";
import { type Append, prepareStore } from "./store-builder.js";

const RUNS = { smoke: 500, full: 1_000_000 };
/** Raise it when the same arguments make another store. */
const STORE_VERSION = 1;
const PROGRAMS = 20;
/** Inspections of a serial number, on average: parts come back. */
const RUNS_PER_SERIAL = 5;
/** How many of the newest runs have not ended, so that the store has every status. */
const ACTIVE_RUNS = 60;
const STEPS = 3;
const FIRST_RUN_MS = Date.parse("2026-01-01T00:00:00Z");
const RUN_MS = 20_000;

/** A store of many runs, and what a benchmark must know to ask for them. */
export interface RunStore {
  /** The data directory; a hub's for the store of many cells. */
  path: string;
  runs: number;
  programIds: readonly string[];
  serialNumbers: number;
  /** Names of its cells; none in the store of one cell. */
  cells: readonly string[];
}

export function serialNumberText(number: number): string {
  return `SN-${String(number).padStart(7, "0")}`;
}

/** When the `index`-th run was created, in microseconds since the Unix epoch. */
export function createdAtUs(index: number): number {
  return (FIRST_RUN_MS + index * RUN_MS) * 1000;
}

/**
 * The store of a million runs (of 500 at smoke size), made unless it is there. It has what a service would have after these runs, without their
 * deltas: programs, one consolidated record for each ended run (1 to 1.5 KB, with one frame), and the newest runs, which have not ended.
 */
export function prepareRunStore(context: BenchmarkContext): Promise<RunStore> {
  return prepareCellStore(context, { runs: RUNS[context.size], cells: 1, cell: 0 });
}

/** The store of one of many cells: they have the same programs, times and serial numbers, and runs of their own. */
export async function prepareCellStore(
  context: BenchmarkContext,
  { runs, cells, cell }: { runs: number; cells: number; cell: number },
): Promise<RunStore> {
  const { seed } = context;
  const { random: first, programs } = programsOf(seed);
  const random = cell === 0 ? first : createRandom(seed + cell);
  const serialNumbers = serialNumbersOf(cells * runs);
  const name = `runs-${runs}-seed-${seed}-v${STORE_VERSION}${cells === 1 ? "" : `-cell-${cell}`}`;
  const path = await prepareStore(context, name, (append, state) =>
    fill({ append, state }, { runs, serialNumbers }, programs, random),
  );
  return { path, runs, programIds: programs.map(({ id }) => id), serialNumbers, cells: [] };
}

/** The programs of every store, and the generator that has made them. */
export function programsOf(seed: number): { random: Random; programs: ProgramDocument[] } {
  const random = createRandom(seed);
  return { random, programs: Array.from({ length: PROGRAMS }, (_, at) => programOf(random, at)) };
}

export function serialNumbersOf(runs: number): number {
  return Math.max(1, Math.round(runs / RUNS_PER_SERIAL));
}

async function fill(
  { append, state }: { append: Append; state: RecorderState },
  store: Pick<RunStore, "runs" | "serialNumbers">,
  programs: readonly ProgramDocument[],
  random: Random,
): Promise<void> {
  for (const program of programs) await append([{ kind: "program_put", program }], undefined, createdAtUs(-1));
  const ended = Math.max(0, store.runs - ACTIVE_RUNS);
  let id: string | null = null;
  for (let index = 0; index < store.runs; index++) {
    const beginUs = createdAtUs(index);
    id = generateUuidV7(beginUs / 1000, random.bytes(10), id);
    const serialNumber = serialNumberText(random.integer(1, store.serialNumbers));
    const created = creationOf(id, random.pick(programs), serialNumber, random);
    if (index < ended) {
      const run = endedRun(foldRun(undefined, created, beginUs), random, beginUs);
      await append([{ kind: "run_ended", runId: id, run }], undefined, run.updatedAtUs);
      continue;
    }
    await append([created], foldRun(undefined, created, beginUs), beginUs);
    // A third of them waits, a third runs, a third waits for its jobs.
    if (index % 3 === 0) continue;
    const step = { kind: "run_started", runId: id } as const;
    await append([step], { ...(state.activeRun(id) as RunState), status: "running" }, beginUs + 1);
    if (index % 3 === 1) continue;
    const finalizing: RunStatus = "finalizing";
    await append(
      [
        { kind: "job_started", runId: id, jobId: id, name: "surface analysis" },
        { kind: "run_finalizing", runId: id, summary: null, results: null },
      ],
      { ...(state.activeRun(id) as RunState), status: finalizing },
      beginUs + 2,
    );
  }
}

function programOf(random: Random, at: number): ProgramDocument {
  return {
    id: generateUuidV7(FIRST_RUN_MS - 86_400_000 + at, random.bytes(10)),
    name: `Housing ${String.fromCharCode(65 + at)}, final inspection`,
    status: "active",
    robot_ids: ["robot-1"],
    steps: [
      { type: "safety_gate", name: "Gate closed" },
      { type: "capture_frame", name: "Top face", params: { speed_mm_s: 250 } },
      { type: "gripper", name: "Part out" },
    ],
  };
}

export function creationOf(runId: string, program: ProgramDocument, serialNumber: string, random: Random) {
  return {
    kind: "run_created",
    runId,
    programId: program.id,
    programName: program.name,
    robotId: "robot-1",
    serialNumber,
    revision: 1,
    metadata: { shift: random.pick(["early", "late", "night"]), order: `PO-${random.integer(10_000, 99_999)}` },
    traceId: null,
    steps: program.steps,
  } as const satisfies Change;
}

/** The run as it ended: 85 % completed, 9 % failed, the others cancelled; each with a frame and two checks. */
function endedRun(run: RunState, random: Random, beginUs: number): RunState {
  const roll = random.next();
  const status = roll < 0.85 ? "completed" : roll < 0.94 ? "failed" : "cancelled";
  const startedAtUs = beginUs + random.integer(1_000, 900_000);
  const endUs = startedAtUs + random.integer(5_000_000, 15_000_000);
  const frameId = generateUuidV7(startedAtUs / 1000, random.bytes(10));
  const value = Math.round(random.normal() * 20 + 12_000) / 1000;
  run.status = status;
  run.startedAtUs = startedAtUs;
  run.updatedAtUs = endUs;
  run.completedAtUs = endUs;
  run.errorMessage = status === "failed" ? "robot-1: protective stop" : null;
  run.steps = run.steps.slice(0, STEPS).map((step, at) => ({
    ...step,
    status: status === "completed" || at < STEPS - 1 ? "completed" : status,
    startedAtUs: startedAtUs + at * 1_000_000,
    completedAtUs: startedAtUs + (at + 1) * 1_000_000,
  }));
  run.frames = [
    {
      id: frameId,
      stepIndex: 2,
      sessionId: "head-1",
      frameType: "profile",
      width: 3200,
      declaredLines: 4000,
      lines: 0,
      planes: {
        height: { dtype: "u16", scale_mm: 0.0005, offset_mm: -16, invalid: [0] },
        luminance: { dtype: "u16", bits: 10 },
      },
      xPitchMm: 0.01,
      yPitchMm: 0.01,
      xOriginMm: 0,
      yOriginMm: 0,
      sequenceNumber: 0,
      sensorId: null,
      jointPositions: null,
      tcpPosition: null,
      captureTimestampUs: startedAtUs,
      metadata: null,
      batches: [],
      status: "incomplete",
      completedAtUs: null,
    },
  ];
  run.frameIds = [frameId];
  run.checks = [
    { name: "Bore 1 diameter", status: "passed", value, nominal: 12, delta: value - 12, threshold: 0.1 },
    { name: "Top face flatness", status: "passed", value: random.integer(1, 40) / 1000, threshold: 0.05 },
  ];
  return run;
}
