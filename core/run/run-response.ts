import { formatTimeUs, timeText } from "../timestamps.js";
import { deliveryRollup, deliverySummary, failureNote, type NamedDelivery } from "../webhook/webhook-response.js";
import type { QualityCheck } from "./quality.js";
import { manifestOf } from "./run-files.js";
import {
  type EventLogEntry,
  isTerminal,
  qualityStatusOf,
  type RunProgress,
  type RunState,
  type RunStep,
  type RunSummary,
  runProgress,
} from "./run-state.js";

/**
 * The answer about one run.
 *
 * @param baseUrl has no trailing slash; an empty one makes relative links with a leading slash, as event payloads carry them
 * @param deliveries of the run's events, in the order they began
 */
export function runResponse(run: RunState, baseUrl: string, deliveries: readonly NamedDelivery[] = []) {
  return {
    id: run.id,
    ...(run.cell !== undefined && { cell: run.cell }),
    program_id: run.programId,
    status: run.status,
    quality_status: qualityStatusOf(run),
    trace_id: run.traceId,
    serial_number: run.serialNumber,
    revision: run.revision,
    metadata: run.metadata ?? {},
    progress: progressResponse(runProgress(run.steps)),
    steps: stepsResponse(run.steps),
    started_at: timeText(run.startedAtUs),
    completed_at: timeText(run.completedAtUs),
    error_message: run.errorMessage,
    results: { ...run.results, frame_ids: [...run.frameIds] },
    event_log: eventLogOf(run, deliveries).map((entry) => ({
      timestamp: formatTimeUs(entry.timestampUs),
      event_type: entry.eventType,
      data: entry.data,
    })),
    webhook_deliveries: deliveries.map(deliverySummary),
    webhook_delivery: deliveryRollup(deliveries),
    files: manifestResponse(run, baseUrl),
    created_at: formatTimeUs(run.createdAtUs),
    updated_at: formatTimeUs(run.updatedAtUs),
    links: runLinks(run, baseUrl),
  };
}

/** The run's event log, with a line for each failed delivery whose webhook has the failure mode WARN. */
function eventLogOf(run: RunState, deliveries: readonly NamedDelivery[]): EventLogEntry[] {
  const notes = deliveries.flatMap(failureNote);
  if (notes.length === 0) return run.eventLog;
  return [...run.eventLog, ...notes].sort((a, b) => a.timestampUs - b.timestampUs);
}

export function runSummaryResponse(summary: RunSummary, baseUrl: string) {
  return {
    id: summary.id,
    ...(summary.cell !== undefined && { cell: summary.cell }),
    program_id: summary.programId,
    program_name: summary.programName,
    status: summary.status,
    quality_status: summary.qualityStatus,
    progress: progressResponse(summary.progress),
    serial_number: summary.serialNumber,
    revision: summary.revision,
    metadata: summary.metadata ?? {},
    started_at: timeText(summary.startedAtUs),
    completed_at: timeText(summary.completedAtUs),
    error_message: summary.errorMessage,
    created_at: formatTimeUs(summary.createdAtUs),
    updated_at: formatTimeUs(summary.updatedAtUs),
    links: runLinks(summary, baseUrl),
  };
}

/**
 * Null until checks exist, and for a run that failed or was cancelled. It changes no more once the run is completed.
 *
 * @param isReasonsOnly it lists only the checks that did not pass, and has no defects; its status is that of all checks
 */
export function qualityReportResponse(run: RunState, isReasonsOnly = false) {
  const status = qualityStatusOf(run);
  if (status === null) return { run_id: run.id, quality_report: null };
  // Values are millimetres unless the producer said otherwise; the answer always says which.
  const shown = isReasonsOnly ? run.checks.filter(isNotPassed) : run.checks;
  const checks = shown.map((check) => ({ ...check, canonical_units: check.canonical_units ?? "mm" }));
  const { defects, summary } = run;
  const found = isReasonsOnly ? {} : { defects };
  // Until the run is completed, checks can be added and the run can fail.
  const final = run.status === "completed";
  return { run_id: run.id, quality_report: { status, final, checks, ...found, summary } };
}

function isNotPassed({ status }: QualityCheck): boolean {
  return status !== "passed" && status !== "warning";
}

export function defectsResponse(run: RunState) {
  return { run_id: run.id, defects: run.defects };
}

export function manifestResponse(run: RunState, baseUrl: string) {
  return manifestOf(run).map((entry) => ({
    name: entry.name,
    type: entry.type,
    content_type: entry.contentType,
    size_in_bytes: entry.sizeBytes,
    description: entry.description,
    href: `${baseUrl}/runs/${run.id}/files/${encodeURIComponent(entry.name)}`,
    step_index: entry.stepIndex,
    frame_id: entry.frameId,
    created_at: formatTimeUs(entry.createdAtUs),
    updated_at: formatTimeUs(entry.updatedAtUs),
    deleted_at: timeText(entry.deletedAtUs),
  }));
}

function runLinks({ id, programId, status }: RunSummary | RunState, baseUrl: string) {
  return {
    self: { href: `${baseUrl}/runs/${id}`, method: "GET" },
    program: { href: `${baseUrl}/programs/${programId}`, method: "GET" },
    cancel: null,
    // ws for http, wss for https.
    websocket: isTerminal(status) ? null : { href: `${baseUrl.replace(/^http/, "ws")}/runs/${id}/live`, method: "GET" },
  };
}

function progressResponse(progress: RunProgress) {
  return {
    total_steps: progress.totalSteps,
    completed_steps: progress.completedSteps,
    current_step: progress.currentStep,
  };
}

/**
 * Completed, failed and skipped steps are under `completed`, the first running one under `in_progress`, and all others under `pending`. The others
 * include further running steps and those cancelled with their run. So every step is listed.
 */
function stepsResponse(steps: readonly RunStep[]) {
  type Step = ReturnType<typeof stepResponse>;
  const completed: Step[] = [];
  const pending: Step[] = [];
  let inProgress: Step | null = null;
  for (const [at, step] of steps.entries()) {
    const entry = stepResponse(step, at + 1);
    if (step.status === "completed" || step.status === "failed" || step.status === "skipped") completed.push(entry);
    else if (step.status === "running" && inProgress === null) inProgress = entry;
    else pending.push(entry);
  }
  return { completed, in_progress: inProgress, pending };
}

function stepResponse(step: RunStep, index: number) {
  return {
    index,
    type: step.definition.type,
    name: step.definition.name ?? null,
    status: step.status,
    started_at: timeText(step.startedAtUs),
    completed_at: timeText(step.completedAtUs),
    result: step.result,
    error: step.error,
  };
}
