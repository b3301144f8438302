import type { ArtefactSubject } from "../capture/artefact.js";
import type { FailedArtefact, FrameState, Recorded, StoredArtefact } from "../capture/capture.js";
import { documentGrowthBytes } from "../json/document-size.js";
import type { RunChange, RunEnded } from "../link/change.js";
import type { RunState, RunStep } from "./run-state.js";

/**
 * Applies one change to a run, in place.
 *
 * @param run undefined for run_created only
 * @param timeUs the record's time
 * @throws when the change needs something that no earlier record created: the log is broken
 */
export function foldRun(run: RunState | undefined, change: RunChange | RunEnded, timeUs: number): RunState {
  if (change.kind === "run_ended") return change.run;
  if (change.kind === "run_created") return createRun(change, timeUs);
  if (run === undefined) throw new Error(`${change.kind} for run ${change.runId}, which no earlier record created`);
  applyChange(run, change, timeUs);
  run.documentBytes += documentGrowthBytes(change);
  // Every change of a run moves it. A delivery is no change of its run, and does not move it.
  run.updatedAtUs = timeUs;
  return run;
}

function createRun(change: Extract<RunChange, { kind: "run_created" }>, timeUs: number): RunState {
  return {
    id: change.runId,
    programId: change.programId,
    programName: change.programName,
    robotId: change.robotId,
    serialNumber: change.serialNumber,
    revision: change.revision,
    metadata: change.metadata,
    traceId: change.traceId,
    status: "pending",
    createdAtUs: timeUs,
    updatedAtUs: timeUs,
    startedAtUs: null,
    finalizingAtUs: null,
    completedAtUs: null,
    errorMessage: null,
    results: null,
    summary: null,
    steps: change.steps.map((definition) => ({
      definition,
      status: "pending",
      startedAtUs: null,
      completedAtUs: null,
      result: null,
      error: null,
    })),
    checks: [],
    defects: [],
    jobs: [],
    frames: [],
    frameIds: [],
    series: [],
    files: [],
    eventLog: [],
    capturesRemovedAtUs: null,
    documentBytes: documentGrowthBytes(change),
  };
}

function applyChange(run: RunState, change: Exclude<RunChange, { kind: "run_created" }>, timeUs: number): void {
  switch (change.kind) {
    case "run_started":
      run.status = "running";
      run.startedAtUs = timeUs;
      if (change.event !== undefined) run.emitted = [change.event];
      return;
    case "step_started": {
      const step = stepOf(run, change.index);
      step.status = "running";
      step.startedAtUs = timeUs;
      return;
    }
    case "step_finished":
      finishStep(run, change, timeUs);
      return;
    case "frame_begun":
      run.frames.push({ ...change.frame, lines: 0, batches: [], status: "open", completedAtUs: null });
      return;
    case "frame_lines_stored": {
      const frame = frameOf(run, change.frameId);
      frame.batches.push(change.batch);
      frame.lines += change.batch.lineCount;
      return;
    }
    case "frame_ended": {
      const frame = frameOf(run, change.frameId);
      frame.status = "complete";
      frame.completedAtUs = timeUs;
      run.frameIds.push(frame.id);
      return;
    }
    case "series_appended":
      appendSeries(run, change);
      return;
    case "check_added":
      run.checks.push(change.check);
      return;
    case "defect_added":
      run.defects.push(change.defect);
      return;
    case "job_started":
      startJob(run, change, timeUs);
      return;
    case "job_finished":
      finishJob(run, change, timeUs);
      return;
    case "file_stored":
      run.files.push({ ...change.file, createdAtUs: timeUs });
      return;
    case "event_added":
      run.eventLog.push({ ...change.entry, timestampUs: change.entry.timestampUs ?? timeUs });
      return;
    case "artefact_stored":
      setArtefact(run, change.of, { ...change.artefact, atUs: timeUs });
      return;
    case "artefact_failed":
      failArtefact(run, change, timeUs);
      return;
    case "run_finalizing":
      run.status = "finalizing";
      run.finalizingAtUs = timeUs;
      run.summary = change.summary;
      run.results = change.results;
      closeSeries(run, timeUs);
      return;
  }
}

function appendSeries(run: RunState, change: Extract<RunChange, { kind: "series_appended" }>): void {
  const { stepIndex, channels, append } = change;
  const series = run.series.find((one) => one.stepIndex === stepIndex);
  if (series === undefined) run.series.push({ stepIndex, channels, appends: [append], completedAtUs: null });
  else series.appends.push(append);
}

function startJob(run: RunState, change: Extract<RunChange, { kind: "job_started" }>, timeUs: number): void {
  const { jobId: id, name } = change;
  run.jobs.push({ id, name, status: "running", startedAtUs: timeUs, completedAtUs: null, error: null });
}

function finishJob(run: RunState, change: Extract<RunChange, { kind: "job_finished" }>, timeUs: number): void {
  const job = run.jobs.find((one) => one.id === change.jobId);
  if (job === undefined) throw new Error(`job ${change.jobId} of run ${run.id} was never started`);
  job.status = change.status;
  job.completedAtUs = timeUs;
  job.error = change.error;
  if (change.status === "completed") {
    run.checks.push(...change.checks);
    run.defects.push(...change.defects);
  }
}

/** The changes that processing a run's captures brings. */
export type ArtefactChange = Extract<RunChange, { kind: "artefact_stored" | "artefact_failed" }>;

function failArtefact(
  run: RunState,
  { of, code, message }: Extract<RunChange, { kind: "artefact_failed" }>,
  timeUs: number,
): void {
  setArtefact(run, of, { kind: "failed", code, message, atUs: timeUs });
  const which = "stepIndex" in of ? { step_index: of.stepIndex } : { frame_id: of.frameId, format: of.format };
  run.eventLog.push({ timestampUs: timeUs, eventType: "artefact_failed", data: { ...which, code, message } });
}

function setArtefact(run: RunState, of: ArtefactSubject, artefact: Recorded<StoredArtefact | FailedArtefact>): void {
  if ("stepIndex" in of) {
    const series = run.series.find((one) => one.stepIndex === of.stepIndex);
    if (series === undefined) throw new Error(`run ${run.id} has no series of step ${of.stepIndex}`);
    series.csv = artefact as NonNullable<typeof series.csv>;
  } else {
    const frame = frameOf(run, of.frameId);
    frame.artefacts = { ...frame.artefacts, [of.format]: artefact };
  }
}

/** A copy of an ended run with the artefacts that were made since. Report, event and outcome stay. */
export function withArtefacts(run: RunState, changes: readonly ArtefactChange[], timeUs: number): RunState {
  const later: RunState = {
    ...run,
    frames: run.frames.map((frame) => ({ ...frame })),
    series: run.series.map((series) => ({ ...series })),
    eventLog: [...run.eventLog],
  };
  for (const change of changes) foldRun(later, change, timeUs);
  return later;
}

function finishStep(run: RunState, change: Extract<RunChange, { kind: "step_finished" }>, timeUs: number): void {
  const step = stepOf(run, change.index);
  step.status = change.status;
  step.completedAtUs = timeUs;
  step.result = change.result;
  step.error = change.error;
  // The message's schema has checked the shapes of `checks` and `defects`.
  const result = change.result as { checks?: RunState["checks"]; defects?: RunState["defects"] } | null;
  run.checks.push(...(result?.checks ?? []));
  run.defects.push(...(result?.defects ?? []));
  for (const series of run.series) if (series.stepIndex === change.index) series.completedAtUs ??= timeUs;
}

function closeSeries(run: RunState, timeUs: number): void {
  for (const series of run.series) series.completedAtUs ??= timeUs;
}

function stepOf(run: RunState, index: number): RunStep {
  const step = run.steps[index - 1];
  if (step === undefined) throw new Error(`run ${run.id} has no step ${index}`);
  return step;
}

function frameOf(run: RunState, frameId: string): FrameState {
  // Lines come for the latest frames, so the search begins at the end.
  const frame = run.frames.findLast((one) => one.id === frameId);
  if (frame === undefined) throw new Error(`run ${run.id} has no frame ${frameId}`);
  return frame;
}
