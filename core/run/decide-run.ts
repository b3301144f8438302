import { messagePackBytes } from "../json/document-size.js";
import type { JsonObject } from "../json/json.js";
import { LIMITS } from "../limits.js";
import type { CellMessageOf } from "../link/cell-message-schema.js";
import type { Change } from "../link/change.js";
import { notFound, tooMany } from "../link/decide-cell.js";
import type { DecisionContext } from "../link/decision-context.js";
import { invalid, RefusedError } from "../link/refusal.js";
import { parseTimeUs } from "../timestamps.js";
import { endRun } from "./run-end.js";
import type { RunState, RunStatus, RunStep } from "./run-state.js";

type RunMessage =
  | CellMessageOf<"run.create" | "run.start" | "run.finish" | "run.fail" | "run.cancel" | "event.add">
  | CellMessageOf<"step.start" | "step.finish" | "check.add" | "defect.add" | "job.start" | "job.finish">;

/** The run statuses in which each message is accepted (workers/cell-link/README.md). */
export const ACCEPTED_IN = {
  "run.start": ["pending"],
  "run.cancel": ["pending", "running"],
  "run.fail": ["pending", "running", "finalizing"],
  "run.finish": ["running"],
  "event.add": ["pending", "running", "finalizing"],
  "file.put": ["pending", "running", "finalizing"],
  "frame.begin": ["running"],
  "frame.lines": ["running", "finalizing"],
  "frame.end": ["running", "finalizing"],
  "series.append": ["running"],
  "step.start": ["running"],
  "step.finish": ["running"],
  "check.add": ["running"],
  "defect.add": ["running"],
  "job.start": ["running"],
  "job.finish": ["running", "finalizing"],
} as const satisfies Record<string, readonly RunStatus[]>;

const FINDINGS_AT = { checks: "/check", defects: "/defect" };

/**
 * The run that a message names, if its status accepts the message.
 *
 * @throws {RefusedError} not_found or illegal_transition
 */
export function acceptingRun(
  context: DecisionContext,
  type: keyof typeof ACCEPTED_IN,
  runId: string,
  path: string,
): RunState {
  const run = context.activeRun(runId);
  if (run === undefined) {
    if (!context.runHasEnded(runId)) throw notFound("run", path, runId);
    throw new RefusedError("illegal_transition", `run ${runId} has ended`, {
      path,
      value: runId,
      status: "ended",
      allowed: [...ACCEPTED_IN[type]],
    });
  }
  const allowed: readonly RunStatus[] = ACCEPTED_IN[type];
  if (!allowed.includes(run.status)) throw illegalTransition(type, path, runId, run.status, allowed);
  return run;
}

export function illegalTransition(
  type: string,
  path: string,
  value: string | number,
  status: string,
  allowed: readonly string[],
): RefusedError {
  return new RefusedError("illegal_transition", `${type} is not accepted while ${value} is ${status}`, {
    path,
    value,
    status,
    allowed: [...allowed],
  });
}

/** Decides messages about a run, its steps, checks, defects, jobs and events. */
export function decideRun(context: DecisionContext, message: RunMessage, timeUs: number): Change[] {
  switch (message.type) {
    case "run.create":
      return decideRunCreate(context, message);
    case "run.start":
      acceptingRun(context, message.type, message.id, "/id");
      return [{ kind: "run_started", runId: message.id }];
    case "step.start":
    case "step.finish":
      return decideStep(context, message);
    case "check.add": {
      const run = acceptingRun(context, message.type, message.run_id, "/run_id");
      roomForFindings(run, 1, 0, FINDINGS_AT);
      return [{ kind: "check_added", runId: run.id, check: message.check }];
    }
    case "defect.add": {
      const run = acceptingRun(context, message.type, message.run_id, "/run_id");
      roomForFindings(run, 0, 1, FINDINGS_AT);
      return [{ kind: "defect_added", runId: run.id, defect: message.defect }];
    }
    case "job.start":
    case "job.finish":
      return decideJob(context, message);
    case "event.add": {
      const run = acceptingRun(context, message.type, message.run_id, "/run_id");
      if (run.eventLog.length >= LIMITS.eventsPerRun) {
        throw tooMany("event log lines of a run", "/run_id", LIMITS.eventsPerRun);
      }
      const timestampUs = typeof message.timestamp === "string" ? (parseTimeUs(message.timestamp) ?? null) : null;
      const entry = { timestampUs, eventType: message.event_type, data: message.data };
      return [{ kind: "event_added", runId: run.id, entry }];
    }
    case "run.finish": {
      const run = acceptingRun(context, message.type, message.id, "/id");
      refuseFrameIds(message.results ?? {});
      const { summary = null, results = null } = message;
      return [{ kind: "run_finalizing", runId: run.id, summary, results }];
    }
    case "run.fail":
    case "run.cancel": {
      const run = acceptingRun(context, message.type, message.id, "/id");
      const status = message.type === "run.fail" ? "failed" : "cancelled";
      const ended = endRun(run, { status, errorMessage: message.error_message ?? null, notes: [] }, timeUs);
      return [{ kind: "run_ended", runId: run.id, run: ended }];
    }
  }
}

function decideRunCreate(context: DecisionContext, message: CellMessageOf<"run.create">): Change[] {
  const { id } = message;
  if (context.activeRun(id) !== undefined || context.runHasEnded(id)) {
    throw new RefusedError("already_exists", `run ${id} already exists`, { path: "/id", value: id });
  }
  if (context.lastRunId !== null && id <= context.lastRunId) {
    throw new RefusedError(
      "id_out_of_order",
      `a run's id must be above every earlier one; the last is ${context.lastRunId}`,
      {
        path: "/id",
        value: id,
        allowed: `above ${context.lastRunId}`,
        last_run_id: context.lastRunId,
      },
    );
  }
  const program = context.program(message.program_id);
  if (program === undefined) throw notFound("program", "/program_id", message.program_id);
  if (context.activeRunCount >= LIMITS.activeRuns) throw tooMany("runs that have not ended", "/id", LIMITS.activeRuns);
  const metadataBytes = messagePackBytes(message.metadata ?? null);
  if (metadataBytes > LIMITS.runMetadataBytes) {
    throw new RefusedError("too_large", `the run's metadata is larger than ${LIMITS.runMetadataBytes} bytes`, {
      path: "/metadata",
      value: metadataBytes,
      allowed: LIMITS.runMetadataBytes,
    });
  }
  const serialNumber = message.serial_number ?? null;
  return [
    {
      kind: "run_created",
      runId: id,
      programId: program.id,
      programName: program.name,
      robotId: program.robot_ids?.[0] ?? null,
      serialNumber,
      revision: serialNumber === null ? 1 : context.nextRevision(serialNumber),
      metadata: message.metadata ?? null,
      traceId: message.trace_id ?? null,
      steps: message.steps ?? program.steps.filter((step) => step.enabled !== false),
    },
  ];
}

/** The service itself writes frame_ids into the results. */
function refuseFrameIds(results: JsonObject): void {
  if ("frame_ids" in results) throw invalid("/results/frame_ids", null, "absent: the service lists the frames itself");
}

export function stepOfRun(run: RunState, index: number, path: string): RunStep {
  const step = run.steps[index - 1];
  if (step === undefined) {
    throw new RefusedError("not_found", `run ${run.id} has no step ${index}`, {
      path,
      value: index,
      allowed: run.steps.length === 0 ? "none: the run has no steps" : `1 to ${run.steps.length}`,
    });
  }
  return step;
}

function decideStep(context: DecisionContext, message: CellMessageOf<"step.start" | "step.finish">): Change[] {
  const run = acceptingRun(context, message.type, message.run_id, "/run_id");
  const { index } = message;
  const step = stepOfRun(run, index, "/index");
  if (message.type === "step.start") {
    if (step.status !== "pending") throw illegalTransition("step.start", "/index", index, step.status, ["pending"]);
    return [{ kind: "step_started", runId: run.id, index }];
  }
  // A pending step can be skipped; a running one can complete or fail.
  const from = message.status === "skipped" ? "pending" : "running";
  if (step.status !== from) {
    throw illegalTransition(`step.finish as ${message.status}`, "/index", index, step.status, [from]);
  }
  const result = (message.result ?? null) as (JsonObject & { checks?: unknown[]; defects?: unknown[] }) | null;
  roomForFindings(run, result?.checks?.length ?? 0, result?.defects?.length ?? 0, {
    checks: "/result/checks",
    defects: "/result/defects",
  });
  const { status, error = null } = message;
  return [{ kind: "step_finished", runId: run.id, index, status, result, error }];
}

function decideJob(context: DecisionContext, message: CellMessageOf<"job.start" | "job.finish">): Change[] {
  const run = acceptingRun(context, message.type, message.run_id, "/run_id");
  const job = run.jobs.find((one) => one.id === message.id);
  if (message.type === "job.start") {
    if (job !== undefined) {
      throw new RefusedError("already_exists", `job ${message.id} already exists`, { path: "/id", value: message.id });
    }
    if (run.jobs.length >= LIMITS.jobsPerRun) throw tooMany("jobs of a run", "/id", LIMITS.jobsPerRun);
    return [{ kind: "job_started", runId: run.id, jobId: message.id, name: message.name }];
  }
  if (job === undefined) throw notFound("job", "/id", message.id);
  if (job.status !== "running") throw illegalTransition("job.finish", "/id", message.id, job.status, ["running"]);
  const checks = message.checks ?? [];
  const defects = message.defects ?? [];
  // Findings of a failed job do not count (workers/cell-link/README.md): the fold leaves them out.
  if (message.status === "completed") {
    roomForFindings(run, checks.length, defects.length, { checks: "/checks", defects: "/defects" });
  }
  const { status, error = null } = message;
  return [{ kind: "job_finished", runId: run.id, jobId: job.id, status, checks, defects, error }];
}

/** Refuses more `checks` or `defects` than a run may have. Both are counts of the message; `paths` are their places in it. */
function roomForFindings(
  run: RunState,
  checks: number,
  defects: number,
  paths: { checks: string; defects: string },
): void {
  const allChecks = run.checks.length + checks;
  if (allChecks > LIMITS.checksPerRun) {
    throw tooMany("checks of a run", paths.checks, LIMITS.checksPerRun, allChecks);
  }
  const allDefects = run.defects.length + defects;
  if (allDefects > LIMITS.defectsPerRun) {
    throw tooMany("defects of a run", paths.defects, LIMITS.defectsPerRun, allDefects);
  }
}
