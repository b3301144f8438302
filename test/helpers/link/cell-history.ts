/**
 * A random history of a cell, as records of the log and beside it a plain model of what they add up to: every run, program and row as
 * an object in a Map, every list a filter over all of them.
 */

import { type ArtefactSubject, isProcessingOpen, openArtefacts } from "../../../core/capture/artefact.js";
import type { StoredArtefact } from "../../../core/capture/capture.js";
import type { ComponentRow } from "../../../core/health.js";
import { generateUuidV7, uuidV7TimeUs } from "../../../core/identifiers.js";
import { messagePackBytes } from "../../../core/json/document-size.js";
import type { CellChange, CellIdentity, RunChange } from "../../../core/link/change.js";
import type { Random } from "../../../core/random.js";
import type { ProgramDocument, ProgramState } from "../../../core/run/program.js";
import { CHECK_STATUSES } from "../../../core/run/quality.js";
import { endRun } from "../../../core/run/run-end.js";
import { type ArtefactChange, foldRun, withArtefacts } from "../../../core/run/run-fold.js";
import type { RunState } from "../../../core/run/run-state.js";
import { type EncodedRecord, encodeChanges, encodeRefusal } from "../../../storage/records/change-record.js";

/** A record with its time: what is appended to the log. */
export interface HistoryRecord extends EncodedRecord {
  readonly timeUs: number;
}

const FIRST_TIME_US = 1_700_000_000_000_000;
const MOST_ACTIVE_RUNS = 12;

export class CellHistory {
  readonly runs = new Map<string, RunState>();
  readonly programs = new Map<string, ProgramState>();
  readonly programIdsEver = new Set<string>();
  readonly components = new Map<string, ComponentRow>();
  readonly runOfFrame = new Map<string, string>();
  cell: CellIdentity = { kioskSerialNumber: null, unitSystem: "metric" };
  timeUs = FIRST_TIME_US;
  readonly #random: Random;
  readonly #activeIds: string[] = [];
  /** Ended runs that have captures of which something is still to be made. */
  readonly #processedIds: string[] = [];
  #lastId: string | null = null;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Runs as lists order them, newest first. */
  get newestFirst(): RunState[] {
    return [...this.runs.values()].sort((a, b) => (a.id < b.id ? 1 : -1));
  }

  /** What happens next, as one record; the model has moved with it. */
  next(): HistoryRecord {
    this.timeUs += this.#random.integer(1, 2_000_000);
    if (this.#random.chance(0.01)) {
      const refusal = { code: "not_found", message: "no run", params: {} } as const;
      return { ...encodeRefusal(this.#origin(), refusal), timeUs: this.timeUs };
    }
    if (this.programs.size === 0 || this.#random.chance(0.06)) return this.#cellRecord();
    if (this.#activeIds.length === 0 || (this.#activeIds.length < MOST_ACTIVE_RUNS && this.#random.chance(0.12))) {
      return this.#createRun();
    }
    if (this.#processedIds.length > 0 && this.#random.chance(0.08)) return this.#processEnded();
    const id = this.#random.pick(this.#activeIds);
    const run = this.runs.get(id)!;
    if (this.#random.chance(run.status === "finalizing" ? 0.5 : 0.05)) return this.#endRun(run);
    return this.#runRecord(this.#deltaOf(run));
  }

  #id(): string {
    const id = generateUuidV7(Math.floor(this.timeUs / 1000), this.#random.bytes(10), this.#lastId);
    this.#lastId = id;
    return id;
  }

  #origin() {
    return { producer: "cell-1", sequence: this.#random.integer(1, 2 ** 40) };
  }

  #cellRecord(): HistoryRecord {
    const change = this.#cellChange();
    switch (change.kind) {
      case "cell_put":
        this.cell = change.cell;
        break;
      case "component_put":
        this.components.set(change.row.key, change.row);
        break;
      case "component_deleted":
        this.components.delete(change.key);
        break;
      case "program_put": {
        const { id } = change.program;
        this.programIdsEver.add(id);
        this.programs.set(id, {
          document: change.program,
          createdAtUs: uuidV7TimeUs(id),
          updatedAtUs: this.timeUs,
          documentBytes: messagePackBytes(change.program),
        });
        break;
      }
      case "program_deleted":
        this.programs.delete(change.id);
        break;
    }
    return { ...encodeChanges(this.#origin(), [change], undefined), timeUs: this.timeUs };
  }

  #cellChange(): CellChange {
    const random = this.#random;
    const key = `camera-${random.integer(1, 4)}`;
    if (this.programs.size > 0 && random.chance(0.5)) {
      if (random.chance(0.3)) {
        return {
          kind: "cell_put",
          cell: { kioskSerialNumber: `K${random.integer(1, 9)}`, unitSystem: random.pick(["metric", "imperial"]) },
        };
      }
      if (random.chance(0.3) && this.components.has(key)) return { kind: "component_deleted", key };
      const row = {
        key,
        id: null,
        status: random.pick(["healthy", "degraded", "down"] as const),
        detail: null,
        enabled: null,
        required: random.chance(0.5),
      };
      return { kind: "component_put", row };
    }
    const known = [...this.programs.keys()];
    if (known.length > 3 && random.chance(0.3)) return { kind: "program_deleted", id: random.pick(known) };
    // New, replaced, or one that was deleted brought back.
    const id =
      known.length > 0 && random.chance(0.5)
        ? random.pick(random.chance(0.5) ? known : [...this.programIdsEver])
        : this.#id();
    const robots = ["r1", "r2", "r3"].filter(() => random.chance(0.4));
    const program: ProgramDocument = {
      id,
      name: `program ${random.integer(1, 99)}`,
      status: "active",
      ...(random.chance(0.8) && { robot_ids: robots }),
      steps: Array.from({ length: random.integer(0, 4) }, () => ({ type: "capture_frame" as const })),
    };
    return { kind: "program_put", program };
  }

  #createRun(): HistoryRecord {
    const random = this.#random;
    const program = random.pick([...this.programs.values()]).document;
    const serialNumber = random.chance(0.15) ? null : `SN-${random.integer(1, 40)}`;
    const runId = this.#id();
    this.#activeIds.push(runId);
    return this.#runRecord({
      kind: "run_created",
      runId,
      programId: program.id,
      programName: program.name,
      robotId: program.robot_ids?.[0] ?? null,
      serialNumber,
      revision: [...this.runs.values()].filter((run) => run.serialNumber === serialNumber).length + 1,
      metadata: random.chance(0.5) ? { lot: random.integer(1, 5), note: 'ü \u2028 "quoted"' } : null,
      traceId: null,
      steps: program.steps,
    });
  }

  #deltaOf(run: RunState): RunChange {
    const random = this.#random;
    const runId = run.id;
    const event = { eventType: "note", data: { text: "x".repeat(random.integer(0, 40)) }, timestampUs: null };
    if (run.status === "pending") {
      return random.chance(0.7) ? { kind: "run_started", runId } : { kind: "event_added", runId, entry: event };
    }
    const [of] = openArtefacts(run);
    if (of !== undefined && random.chance(0.3)) return this.#artefactOf(run, of);
    if (run.status === "finalizing") return { kind: "event_added", runId, entry: event };
    const pending = run.steps.findIndex((step) => step.status === "pending") + 1;
    const running = run.steps.findIndex((step) => step.status === "running") + 1;
    const open = run.frames.find((frame) => frame.status === "open");
    if (pending > 0 && random.chance(0.3)) return { kind: "step_started", runId, index: pending };
    if (open !== undefined && random.chance(0.6)) {
      if (random.chance(0.4)) return { kind: "frame_ended", runId, frameId: open.id };
      const crc32 = random.integer(0, 2 ** 32 - 1);
      const batch = { offset: open.lines * 8, lengthBytes: 16, crc32, lineCount: 2, heightCrc32: crc32 };
      return { kind: "frame_lines_stored", runId, frameId: open.id, batch };
    }
    if (running > 0 && random.chance(0.4)) {
      const checks = [{ name: "width", status: random.pick(CHECK_STATUSES), value: random.next() }];
      const status = random.pick(["completed", "failed"] as const);
      return { kind: "step_finished", runId, index: running, status, result: { checks }, error: null };
    }
    if (running > 0 && random.chance(0.5)) {
      const frame = {
        id: this.#id(),
        stepIndex: running,
        sessionId: "session",
        frameType: "profile",
        width: 4,
        declaredLines: 0,
        planes: { height: { dtype: "u16" as const, scale_mm: 0.001, offset_mm: 0, invalid: [0] } },
        xPitchMm: 0.1,
        yPitchMm: 0.1,
        xOriginMm: 0,
        yOriginMm: 0,
        sequenceNumber: run.frames.length + 1,
        sensorId: null,
        jointPositions: null,
        tcpPosition: null,
        captureTimestampUs: this.timeUs - 5,
        metadata: null,
      };
      this.runOfFrame.set(frame.id, runId);
      return { kind: "frame_begun", runId, frame };
    }
    if (random.chance(0.3)) {
      return { kind: "run_finalizing", runId, summary: "done", results: { mean: random.next() } };
    }
    if (random.chance(0.3))
      return {
        kind: "check_added",
        runId,
        check: { name: "height", status: run.checks.length % 3 === 1 ? "error" : "passed" },
      };
    return { kind: "event_added", runId, entry: event };
  }

  #artefactOf({ id: runId }: RunState, of: ArtefactSubject): ArtefactChange {
    const random = this.#random;
    if (random.chance(0.1)) return { kind: "artefact_failed", runId, of, code: "capture_damaged", message: "bytes" };
    const extent = () => ({ offset: random.integer(100, 200), lengthBytes: 8, crc32: random.integer(0, 2 ** 32 - 1) });
    const isPicture = "format" in of && /png/.test(of.format);
    const artefact: StoredArtefact = isPicture
      ? { kind: "picture", file: extent() }
      : { kind: "cloud", points: random.integer(0, 9), lineCounts: extent(), mask: null };
    return { kind: "artefact_stored", runId, of, artefact };
  }

  /** An ended run, recorded once more with what was made of its captures. */
  #processEnded(): HistoryRecord {
    const at = this.#random.integer(0, this.#processedIds.length - 1);
    const run = this.runs.get(this.#processedIds[at]!)!;
    const made = openArtefacts(run).slice(0, this.#random.integer(1, 4));
    const later = withArtefacts(
      run,
      made.map((of) => this.#artefactOf(run, of)),
      this.timeUs,
    );
    if (!isProcessingOpen(later)) this.#processedIds.splice(at, 1);
    this.runs.set(run.id, later);
    const change = { kind: "run_ended" as const, runId: run.id, run: later };
    return { ...encodeChanges(null, [change], undefined), timeUs: this.timeUs };
  }

  #endRun(run: RunState): HistoryRecord {
    const status = run.status === "finalizing" ? "completed" : this.#random.pick(["failed", "cancelled"] as const);
    const ended = endRun(
      run,
      { status, errorMessage: status === "failed" ? "it broke" : null, notes: [] },
      this.timeUs,
    );
    this.#activeIds.splice(this.#activeIds.indexOf(run.id), 1);
    if (isProcessingOpen(ended)) this.#processedIds.push(run.id);
    this.runs.set(run.id, ended);
    const change = { kind: "run_ended" as const, runId: run.id, run: ended };
    return { ...encodeChanges(this.#origin(), [change], undefined), timeUs: this.timeUs };
  }

  #runRecord(change: RunChange): HistoryRecord {
    const run = foldRun(this.runs.get(change.runId), change, this.timeUs);
    this.runs.set(run.id, run);
    return { ...encodeChanges(this.#origin(), [change], run), timeUs: this.timeUs };
  }
}
