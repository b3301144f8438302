import type { FrameState, SeriesState } from "../capture/capture.js";
import { valuesOf } from "../json/closed-set.js";
import type { JsonObject } from "../json/json.js";
import type { EmittedEvent } from "../webhook/emitted-event.js";
import type { FileType } from "./manifest.js";
import type { ProgramStep } from "./program.js";
import { type Defect, type QualityCheck, type ReportStatus, reportStatus } from "./quality.js";

export const RUN_STATUS_MEANINGS = {
  pending: "the run is created, but has not begun.",
  running: "its steps are being carried out.",
  finalizing:
    "the steps are over. The service waits, for a short time at most, until open co-processing jobs and the processing of the captures have ended.",
  completed:
    "it was carried out to its end. Whether the part is good is another question: the quality report answers it. Terminal.",
  failed: "it broke off with an error; `error_message` says which. It has no quality report. Terminal.",
  cancelled: "it was stopped on purpose. It has no quality report. Terminal.",
} as const;
export type RunStatus = keyof typeof RUN_STATUS_MEANINGS;
export const RUN_STATUSES = valuesOf(RUN_STATUS_MEANINGS);
export type TerminalRunStatus = "completed" | "failed" | "cancelled";

export function isTerminal(status: RunStatus): status is TerminalRunStatus {
  return status === "completed" || status === "failed" || status === "cancelled";
}

export const STEP_STATUS_MEANINGS = {
  pending: "not begun.",
  running: "begun and not ended.",
  completed: "ended as intended.",
  failed: "ended with an error, or was running when its run failed.",
  skipped: "passed over without being begun.",
  cancelled: "not carried out, or not to its end, because its run ended first.",
} as const;
export type StepStatus = keyof typeof STEP_STATUS_MEANINGS;

/** A step of a run. Its index is its position in `RunState.steps` plus one. */
export interface RunStep {
  definition: ProgramStep;
  status: StepStatus;
  startedAtUs: number | null;
  completedAtUs: number | null;
  result: JsonObject | null;
  error: string | null;
}

export type JobStatus = "running" | "completed" | "failed";

/** A co-processing job. Finalizing waits for it. Checks and defects of a failed job do not count and are not kept. */
export interface JobState {
  id: string;
  name: string;
  status: JobStatus;
  startedAtUs: number;
  completedAtUs: number | null;
  error: string | null;
}

/** The two files with a run's bytes. Retention removes the captures; the reports stay. */
export type StoredKind = "captures" | "reports";

/** A file that a producer sent with file.put. Its bytes are an extent of one of the run's two files. */
export interface StoredFile {
  name: string;
  type: FileType;
  contentType: string;
  description: string | null;
  stepIndex: number | null;
  frameId: string | null;
  offset: number;
  lengthBytes: number;
  crc32: number;
  /** Absent means reports. */
  storedIn?: StoredKind;
  createdAtUs: number;
}

export interface EventLogEntry {
  timestampUs: number;
  eventType: string;
  data: JsonObject;
}

/**
 * All that is known of one run. It is folded from changes while the run executes. When the run ends, it is stored whole
 * in one consolidated record. It holds plain JSON values only, so that it survives MessagePack unchanged.
 */
export interface RunState {
  id: string;
  /** Name of the cell, at a hub. The store of a cell does not know it. */
  cell?: string;
  programId: string;
  /** The program's name when the run was created. */
  programName: string;
  /** First robot of the program when the run was created; null for a program without robots. */
  robotId: string | null;
  serialNumber: string | null;
  /** Counts the inspections of the serial number from 1; 1 for a run without one. */
  revision: number;
  metadata: JsonObject | null;
  traceId: string | null;
  status: RunStatus;
  createdAtUs: number;
  /** Moves when state, results, files or event log change. */
  updatedAtUs: number;
  startedAtUs: number | null;
  /** When finalizing began. */
  finalizingAtUs: number | null;
  completedAtUs: number | null;
  errorMessage: string | null;
  /** The results that run.finish gave, without frame_ids. */
  results: JsonObject | null;
  /** The quality report's summary, from run.finish. */
  summary: string | null;
  steps: RunStep[];
  checks: QualityCheck[];
  defects: Defect[];
  jobs: JobState[];
  /** In order of frame.begin. */
  frames: FrameState[];
  /** The ids in results.frame_ids: in order of frame.end, then those that were incomplete when the run ended. */
  frameIds: string[];
  series: SeriesState[];
  files: StoredFile[];
  eventLog: EventLogEntry[];
  /** The run's events that were emitted to webhooks; absent when none subscribed. */
  emitted?: EmittedEvent[];
  /** When retention removed the captured bytes; null while they are there. */
  capturesRemovedAtUs: number | null;
  /** Upper bound of this document's size as MessagePack, as `documentGrowthBytes` counts it. */
  documentBytes: number;
}

/** What lists show of a run. The index section of its records carries it. */
export interface RunSummary
  extends Pick<
      RunState,
      "id" | "cell" | "programId" | "programName" | "status" | "serialNumber" | "revision" | "metadata"
    >,
    Pick<RunState, "createdAtUs" | "updatedAtUs" | "startedAtUs" | "completedAtUs" | "errorMessage"> {
  /** Present status of the quality report; null without one. */
  qualityStatus: ReportStatus | null;
  progress: RunProgress;
}

export interface RunProgress {
  totalSteps: number;
  /** Count of completed, failed and skipped steps. */
  completedSteps: number;
  /** Lowest index of a running step; null when none runs. */
  currentStep: number | null;
}

export function runProgress(steps: readonly RunStep[]): RunProgress {
  let completedSteps = 0;
  let currentStep: number | null = null;
  for (const [at, step] of steps.entries()) {
    if (step.status === "completed" || step.status === "failed" || step.status === "skipped") completedSteps++;
    if (step.status === "running" && currentStep === null) currentStep = at + 1;
  }
  return { totalSteps: steps.length, completedSteps, currentStep };
}

/** Present status of the run's quality report; null without checks, and for a run that failed or was cancelled. */
export function qualityStatusOf({ status, checks }: Pick<RunState, "status" | "checks">): ReportStatus | null {
  if (status === "failed" || status === "cancelled" || checks.length === 0) return null;
  return reportStatus(checks);
}

/** @param qualityStatus of the run, if the caller knows it already */
export function summarizeRun(run: RunState, qualityStatus = qualityStatusOf(run)): RunSummary {
  return {
    id: run.id,
    ...(run.cell !== undefined && { cell: run.cell }),
    programId: run.programId,
    programName: run.programName,
    status: run.status,
    qualityStatus,
    serialNumber: run.serialNumber,
    revision: run.revision,
    metadata: run.metadata,
    createdAtUs: run.createdAtUs,
    updatedAtUs: run.updatedAtUs,
    startedAtUs: run.startedAtUs,
    completedAtUs: run.completedAtUs,
    errorMessage: run.errorMessage,
    progress: runProgress(run.steps),
  };
}
