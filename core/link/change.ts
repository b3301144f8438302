import type { ArtefactSubject } from "../capture/artefact.js";
import type { FrameState, LineBatch, SeriesAppend, StoredArtefact } from "../capture/capture.js";
import type { ComponentRow } from "../health.js";
import { valuesOf } from "../json/closed-set.js";
import type { JsonObject } from "../json/json.js";
import type { ProgramDocument } from "../run/program.js";
import type { Defect, QualityCheck } from "../run/quality.js";
import type { EventLogEntry, RunState, RunStep, StoredFile } from "../run/run-state.js";
import type { EmittedEvent } from "../webhook/emitted-event.js";

/** The units in which people see lengths, and webhooks get them. */
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
 * A fact that a record states, with everything decided; its time is the record's. Folding the changes in order gives the state. The fold
 * never refuses a change.
 */
export type Change = CellChange | RunChange | RunEnded;

export type CellChange =
  | { kind: "cell_put"; cell: CellIdentity }
  | { kind: "component_put"; row: ComponentRow }
  | { kind: "component_deleted"; key: string }
  | { kind: "program_put"; program: ProgramDocument }
  | { kind: "program_deleted"; id: string }
  /** A producer's name is forgotten, with everything known about it. Its sequence numbers begin again from 1. */
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
  /** `event`: the event that it emitted; absent when no webhook subscribes. */
  | { kind: "run_started"; runId: string; event?: EmittedEvent }
  | { kind: "step_started"; runId: string; index: number }
  | {
      kind: "step_finished";
      runId: string;
      index: number;
      status: "completed" | "failed" | "skipped";
      /** As the producer sent it, with its checks and defects. */
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
  /** `timestampUs` null means the record's own time. */
  | { kind: "event_added"; runId: string; entry: Omit<EventLogEntry, "timestampUs"> & { timestampUs: number | null } }
  | { kind: "artefact_stored"; runId: string; of: ArtefactSubject; artefact: StoredArtefact }
  /** An artefact that cannot be made. The fold notes it in the run's event log too. */
  | { kind: "artefact_failed"; runId: string; of: ArtefactSubject; code: string; message: string }
  | { kind: "run_finalizing"; runId: string; summary: string | null; results: JsonObject | null };

/** The consolidated record: the whole run as it ended. It replaces all deltas of the run. */
export interface RunEnded {
  kind: "run_ended";
  runId: string;
  run: RunState;
}
