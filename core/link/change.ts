import type { ArtefactSubject } from "../capture/artefact.js";
import type { FrameState, LineBatch, SeriesAppend, StoredArtefact } from "../capture/capture.js";
import type { ComponentRow } from "../health.js";
import { valuesOf } from "../json/closed-set.js";
import type { JsonObject } from "../json/json.js";
import type { ProgramDocument } from "../run/program.js";
import type { Defect, QualityCheck } from "../run/quality.js";
import type { EventLogEntry, RunState, RunStep, StoredFile } from "../run/run-state.js";
import type { EmittedEvent } from "../webhook/emitted-event.js";

/** How the cell shows lengths to people, and webhooks get them. */
export const UNIT_SYSTEM_MEANINGS = {
  metric: "lengths are millimetres.",
  imperial: "lengths are inches.",
} as const;
export type UnitSystem = keyof typeof UNIT_SYSTEM_MEANINGS;
export const UNIT_SYSTEMS = valuesOf(UNIT_SYSTEM_MEANINGS);

/** The cell's identity and display units. */
export interface CellIdentity {
  kioskSerialNumber: string | null;
  unitSystem: UnitSystem;
}

/**
 * What a record says: facts, with everything decided (times apart: a record's time is that of all its changes). Folding them in
 * order gives the state; no change is ever refused by the fold.
 */
export type Change = CellChange | RunChange | RunEnded;

export type CellChange =
  | { kind: "cell_put"; cell: CellIdentity }
  | { kind: "component_put"; row: ComponentRow }
  | { kind: "component_deleted"; key: string }
  | { kind: "program_put"; program: ProgramDocument }
  | { kind: "program_deleted"; id: string }
  /** A producer's name and all that was known of it: its numbers begin anew. */
  | { kind: "producer_forgotten"; name: string };

/** Deltas of a run while it executes; each names its run. */
export type RunChange =
  | {
      kind: "run_created";
      runId: string;
      programId: string;
      programName: string;
      robotId: string | null;
      serialNumber: string | null;
      revision: number;
      metadata: JsonObject | null;
      traceId: string | null;
      steps: RunStep["definition"][];
    }
  /** `event`: what it emitted; absent when no webhook subscribes. */
  | { kind: "run_started"; runId: string; event?: EmittedEvent }
  | { kind: "step_started"; runId: string; index: number }
  | {
      kind: "step_finished";
      runId: string;
      index: number;
      status: "completed" | "failed" | "skipped";
      /** As it came, checks and defects within. */
      result: JsonObject | null;
      error: string | null;
    }
  | {
      kind: "frame_begun";
      runId: string;
      frame: Omit<FrameState, "lines" | "batches" | "status" | "completedAtUs" | "artefacts">;
    }
  | { kind: "frame_lines_stored"; runId: string; frameId: string; batch: LineBatch }
  | { kind: "frame_ended"; runId: string; frameId: string }
  | { kind: "series_appended"; runId: string; stepIndex: number; channels: number; append: SeriesAppend }
  | { kind: "check_added"; runId: string; check: QualityCheck }
  | { kind: "defect_added"; runId: string; defect: Defect }
  | { kind: "job_started"; runId: string; jobId: string; name: string }
  | {
      kind: "job_finished";
      runId: string;
      jobId: string;
      status: "completed" | "failed";
      checks: QualityCheck[];
      defects: Defect[];
      error: string | null;
    }
  | { kind: "file_stored"; runId: string; file: Omit<StoredFile, "createdAtUs"> }
  /** `timestampUs` null: the record's own time. */
  | { kind: "event_added"; runId: string; entry: Omit<EventLogEntry, "timestampUs"> & { timestampUs: number | null } }
  | { kind: "artefact_stored"; runId: string; of: ArtefactSubject; artefact: StoredArtefact }
  /** It cannot be made: the run's event log says so too. */
  | { kind: "artefact_failed"; runId: string; of: ArtefactSubject; code: string; message: string }
  | { kind: "run_finalizing"; runId: string; summary: string | null; results: JsonObject | null };

/** The consolidated record: the whole run as it ended. It replaces every delta of the run. */
export interface RunEnded {
  kind: "run_ended";
  runId: string;
  run: RunState;
}
