import { mkdirSync } from "node:fs";
import type { Test } from "tap";
import { generateUuidV7 } from "../../../core/identifiers.js";
import type { Change } from "../../../core/link/change.js";
import type { Random } from "../../../core/random.js";
import type { Defect, QualityCheck } from "../../../core/run/quality.js";
import { withoutCaptures } from "../../../core/run/run-files.js";
import { foldRun } from "../../../core/run/run-fold.js";
import type { RunState, TerminalRunStatus } from "../../../core/run/run-state.js";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import type { FindingQuery } from "../../../storage/findings/finding-query.js";
import { Log } from "../../../storage/log/log.js";
import { encodeChanges } from "../../../storage/records/change-record.js";
import { RecorderState } from "../../../workers/recorder/recorder-state.js";
import { temporaryDirectory } from "../recorder/recorder-harness.js";

export const MEASURED_PROGRAM = "019b76da-a800-7000-8000-0000000000aa";
export const OTHER_PROGRAM = "019b76da-a800-7000-8000-0000000000bb";
export const FIRST_US = Date.UTC(2026, 0, 31, 12) * 1000;

/** A run as a test wants it to have ended. */
export interface MeasuredRun {
  programId?: string;
  serialNumber?: string | null;
  revision?: number;
  status?: TerminalRunStatus;
  /** Null: it never started. */
  startedAtUs?: number | null;
  completedAtUs?: number;
  createdAtUs?: number;
  checks?: QualityCheck[];
  defects?: Defect[];
}

/** The same, with all fields, as the store has it. */
export interface StoredMeasuredRun extends Required<MeasuredRun> {
  id: string;
  /** Of the record of its end. */
  sequence: number;
}

/** A log of small segments with ended runs, as the recorder would write them. */
export class MeasuredStore {
  /** In the order of the log. */
  readonly runs: StoredMeasuredRun[] = [];
  readonly directory: string;
  readonly #log: Log;
  readonly #state: RecorderState;
  #timeUs = FIRST_US;
  #lastId: string | null = null;
  #seed = 0;

  private constructor(directory: string, log: Log, state: RecorderState) {
    this.directory = directory;
    this.#log = log;
    this.#state = state;
  }

  /** @param directory of the store: it is made */
  static async create(directory: string, segmentBytes = 24 * 1024): Promise<MeasuredStore> {
    for (const folder of ["meta", "quarantine"]) mkdirSync(`${directory}/${folder}`, { recursive: true });
    const state = new RecorderState();
    const log = await Log.open({
      fileSystem: nodeFileSystem,
      directory: `${directory}/meta`,
      quarantineDirectory: `${directory}/quarantine`,
      durability: "none",
      segmentBytes,
      openingState: () => state.openingState(),
      onRecords: () => {},
      createSalt: () => 0x12345678,
    });
    const store = new MeasuredStore(directory, log, state);
    for (const id of [MEASURED_PROGRAM, OTHER_PROGRAM]) {
      await store.append({
        kind: "program_put",
        program: { id, name: `Program ${id.slice(-2)}`, status: "active", steps: [] },
      });
    }
    return store;
  }

  /** As `create`, in a folder of the test, whose end closes it. */
  static async createFor(t: Test, segmentBytes?: number): Promise<MeasuredStore> {
    const store = await MeasuredStore.create(temporaryDirectory(t), segmentBytes);
    t.teardown(() => store.close());
    return store;
  }

  /** Asks for all runs of a program that it has now. */
  query(bounds: Partial<FindingQuery> = {}): FindingQuery {
    return {
      ...{ dataDirectory: this.directory, untilSequence: this.sequence, programId: MEASURED_PROGRAM },
      ...{ sinceUs: null, untilUs: null, serialNumber: null, check: null, ...bounds },
    };
  }

  get sequence(): number {
    return this.#log.nextSequence - 1;
  }

  async append(change: Change): Promise<void> {
    const timeUs = ++this.#timeUs;
    const sequence = this.#log.append({ ...encodeChanges(null, [change], undefined), timeUs });
    this.#state.apply(null, [change], timeUs);
    await this.#log.whenCommitted(sequence);
  }

  /** Ends a run. Times that are not given follow each other. */
  async add(run: MeasuredRun): Promise<StoredMeasuredRun> {
    const { programId = MEASURED_PROGRAM, serialNumber = null, revision = 1, status = "completed" } = run;
    const { checks = [], defects = [], completedAtUs = this.#timeUs + 20_000_000 } = run;
    this.#timeUs = Math.max(this.#timeUs, completedAtUs);
    const startedAtUs = run.startedAtUs === undefined ? completedAtUs - 10_000_000 : run.startedAtUs;
    const createdAtUs = run.createdAtUs ?? completedAtUs - 15_000_000;
    this.#lastId = generateUuidV7(FIRST_US / 1000, new Uint8Array(10).fill(this.#seed++ % 250), this.#lastId);
    const id = this.#lastId;
    const times = { createdAtUs, startedAtUs, completedAtUs };
    const ended = { id, programId, serialNumber, revision, status, ...times, checks, defects };
    await this.append({ kind: "run_ended", runId: id, run: endedRun(ended) });
    const stored = { ...ended, sequence: this.sequence };
    this.runs.push(stored);
    return stored;
  }

  /** Writes the record of a run's end again, as retention does. */
  async repeat(run: StoredMeasuredRun): Promise<void> {
    const removed = withoutCaptures(endedRun(run), this.#timeUs + 1);
    await this.append({ kind: "run_ended", runId: run.id, run: removed });
  }

  /** Runs of two programs, with everything that can be missing or different. */
  async fill(random: Random, runs: number, checkNames = 6): Promise<void> {
    const revisions = new Map<string, number>();
    for (let nth = 0; nth < runs; nth++) {
      const serialNumber = random.chance(0.15) ? null : `SN ${random.integer(0, runs >> 1)}`;
      const revision = serialNumber === null ? 1 : (revisions.get(serialNumber) ?? 0) + 1;
      if (serialNumber !== null) revisions.set(serialNumber, revision);
      const stored = await this.add({ serialNumber, revision, ...randomRun(random, checkNames) });
      if (random.chance(0.2)) await this.repeat(random.chance(0.5) ? stored : random.pick(this.runs));
    }
  }

  close(): Promise<void> {
    return this.#log.close();
  }
}

/** A run of one of two programs, with everything that can be missing or different. */
export function randomRun(random: Random, checkNames = 6): MeasuredRun {
  const roll = random.next();
  return {
    programId: random.chance(0.8) ? MEASURED_PROGRAM : OTHER_PROGRAM,
    status: roll < 0.85 ? "completed" : roll < 0.95 ? "failed" : "cancelled",
    ...(random.chance(0.05) && { startedAtUs: null }),
    checks: random.chance(0.05) ? [] : Array.from({ length: checkNames }, (_, at) => randomCheck(random, at)),
    defects: Array.from({ length: random.integer(0, 3) }, () => randomDefect(random)),
  };
}

export type Ended = Omit<StoredMeasuredRun, "sequence">;

/** The run as its record has it. */
export function endedRun(ended: Ended): RunState {
  const { id, programId, serialNumber, revision, status, createdAtUs, startedAtUs, completedAtUs, checks, defects } =
    ended;
  const created = { kind: "run_created", runId: id, programId, programName: "p", robotId: null, serialNumber } as const;
  const run = foldRun(undefined, { ...created, revision, metadata: null, traceId: null, steps: [] }, createdAtUs);
  const errorMessage = status === "completed" ? null : "stopped";
  return { ...run, status, startedAtUs, completedAtUs, updatedAtUs: completedAtUs, errorMessage, checks, defects };
}

function randomCheck(random: Random, at: number): QualityCheck {
  const nominal = random.chance(0.97) ? 10 * at : null;
  const value = random.chance(0.9) ? 10 * at + random.normal() * (at + 1) * 0.01 : null;
  return {
    name: `check ${'äb=c,"d'[at % 7]} ${at}`,
    status: random.pick(["passed", "passed", "passed", "failed", "warning", "not_evaluated", "error"]),
    ...(random.chance(0.3) && { message: `says "${at}", twice\nover` }),
    ...(value !== null && { value, delta: nominal === null ? null : value - nominal }),
    nominal,
    ...(random.chance(0.95) && { threshold: random.chance(0.9) ? 0.02 * (at + 1) : 0.5 }),
    ...(at === 3 && { canonical_units: "unspecified" as const }),
  };
}

function randomDefect(random: Random): Defect {
  return {
    ...(random.chance(0.9) && { type: random.pick(["scratch", "dent", "pore", "__proto__"]) }),
    ...(random.chance(0.7) && { severity: random.pick(["minor", "major", "__proto__", "7"]) }),
  };
}
