import { artefactFileName, openArtefacts } from "../capture/artefact.js";
import type { EventLogEntry, RunState, StepStatus, TerminalRunStatus } from "./run-state.js";

export interface RunEnding {
  status: TerminalRunStatus;
  /** Null for completed runs. */
  errorMessage: string | null;
  /** Lines that the ending adds to the event log (a finalize time-out, an orphan). */
  notes: Omit<EventLogEntry, "timestampUs">[];
}

/**
 * The run after it ended at `timeUs`; its consolidated record holds this. Whatever is still open is closed as workers/cell-link/README.md says.
 * Running steps fail with a failed run, and are cancelled with any other. Pending steps are cancelled. Open frames become incomplete, and series
 * become complete. The report of a completed run is final from here on.
 */
export function endRun(run: RunState, ending: RunEnding, timeUs: number): RunState {
  const openStepStatus: StepStatus = ending.status === "failed" ? "failed" : "cancelled";
  return {
    ...run,
    status: ending.status,
    updatedAtUs: timeUs,
    completedAtUs: timeUs,
    errorMessage: ending.errorMessage,
    steps: run.steps.map((step) => {
      if (step.status === "running") return { ...step, status: openStepStatus, completedAtUs: timeUs };
      if (step.status === "pending") return { ...step, status: "cancelled" };
      return step;
    }),
    // Incomplete frames are listed too, after the complete ones.
    frameIds: [...run.frameIds, ...run.frames.filter((frame) => frame.status === "open").map((frame) => frame.id)],
    frames: run.frames.map((frame) => (frame.status === "open" ? { ...frame, status: "incomplete" } : frame)),
    series: run.series.map((series) => ({ ...series, completedAtUs: series.completedAtUs ?? timeUs })),
    eventLog: [...run.eventLog, ...ending.notes.map((note) => ({ ...note, timestampUs: timeUs }))],
  };
}

/** What a finalizing run still waits for. If time runs out, the event log names it. */
export interface OpenWork {
  jobs: string[];
  /** Ids of the frames that still accept lines. */
  frames: string[];
  /** Names of the files that are still to be made from its captures. */
  files: string[];
}

/** @param isProcessed false when this service makes no artefacts */
export function openWork(run: RunState, isProcessed: boolean): OpenWork {
  return {
    files: isProcessed ? openArtefacts(run).map(artefactFileName) : [],
    jobs: run.jobs.filter((job) => job.status === "running").map((job) => job.id),
    frames: run.frames.filter((frame) => frame.status === "open").map((frame) => frame.id),
  };
}
