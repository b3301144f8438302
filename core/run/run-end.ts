import { artefactFileName, openArtefacts } from "../capture/artefact.js";
import type { EventLogEntry, RunState, StepStatus, TerminalRunStatus } from "./run-state.js";

export interface RunEnding {
  status: TerminalRunStatus;
  /** For failed and cancelled runs; null for completed ones. */
  errorMessage: string | null;
  /** Lines for the event log that the ending itself brings (a finalize time-out, an orphan). */
  notes: Omit<EventLogEntry, "timestampUs">[];
}

/**
 * The run as it stands once it has ended at `timeUs`: what its consolidated record holds. Steps and frames that are still open are
 * closed as cell-link.md says (failed: running steps failed; cancelled: cancelled; pending ones always cancelled; open
 * frames incomplete), series become whole. With it the report of a completed run is fixed: what it is made of changes no more.
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
    // A frame that was never whole is listed all the same, behind those that were.
    frameIds: [...run.frameIds, ...run.frames.filter((frame) => frame.status === "open").map((frame) => frame.id)],
    frames: run.frames.map((frame) => (frame.status === "open" ? { ...frame, status: "incomplete" } : frame)),
    series: run.series.map((series) => ({ ...series, completedAtUs: series.completedAtUs ?? timeUs })),
    eventLog: [...run.eventLog, ...ending.notes.map((note) => ({ ...note, timestampUs: timeUs }))],
  };
}

/** What keeps a finalizing run from its end. For the event log when time runs out. */
export interface OpenWork {
  jobs: string[];
  /** That still take lines. */
  frames: string[];
  /** Names of the files that are still to be made of its captures. */
  files: string[];
}

/** @param isProcessed false where nothing is made of captures */
export function openWork(run: RunState, isProcessed: boolean): OpenWork {
  return {
    files: isProcessed ? openArtefacts(run).map(artefactFileName) : [],
    jobs: run.jobs.filter((job) => job.status === "running").map((job) => job.id),
    frames: run.frames.filter((frame) => frame.status === "open").map((frame) => frame.id),
  };
}
