import type { RunChange } from "../link/change.js";

/** Size of the extent and numbers of a batch or an append, with their keys. */
const BATCH_BYTES = 96;
/** The most that processing adds to a frame or a series. It is counted when they begin, so that a full document has room for it. */
const ARTEFACTS_BYTES = 800;
/** Size of the fixed fields of a run and of the entries of its lists, with their keys. */
const RUN_BYTES = 1024;
const STEP_BYTES = 160;
const ENTRY_BYTES = 256;

/** Upper bound of a JSON value's size as MessagePack, in bytes. Every number counts as a float64, every length with its longest head. */
export function messagePackBytes(value: unknown): number {
  if (typeof value === "string") return 5 + Buffer.byteLength(value);
  if (typeof value === "number") return 9;
  if (typeof value !== "object" || value === null) return 1;
  let bytes = 5;
  if (Array.isArray(value)) {
    for (const item of value) bytes += messagePackBytes(item);
  } else {
    for (const key of Object.keys(value)) {
      bytes += 5 + Buffer.byteLength(key) + messagePackBytes((value as Record<string, unknown>)[key]);
    }
  }
  return bytes;
}

/**
 * Upper bound of the bytes that a change adds to its run's document (`LIMITS.runDocumentBytes`). Changes that another
 * limit bounds count as nothing: a start, an end, a step that finishes without a result. So a run with a full document
 * can still end. Findings within a step's result count twice: they are in the result and in the run's own list.
 */
export function documentGrowthBytes(change: RunChange): number {
  switch (change.kind) {
    case "run_created":
      return (
        RUN_BYTES +
        messagePackBytes([change.programName, change.serialNumber, change.metadata, change.traceId, change.robotId]) +
        change.steps.reduce((sum, step) => sum + STEP_BYTES + messagePackBytes(step), 0)
      );
    case "run_started":
      return change.event === undefined ? 0 : messagePackBytes(change.event);
    case "step_started":
    case "frame_ended":
    case "artefact_stored":
      return 0;
    case "artefact_failed":
      // The message is in the failed artefact and in the event log.
      return ENTRY_BYTES + 2 * messagePackBytes([change.code, change.message]);
    case "step_finished": {
      if (change.result === null && change.error === null) return 0;
      const { checks = [], defects = [] } = change.result ?? {};
      return messagePackBytes([change.result, change.error]) + messagePackBytes([checks, defects]);
    }
    case "frame_begun":
      return ENTRY_BYTES + ARTEFACTS_BYTES + messagePackBytes(change.frame);
    case "frame_lines_stored":
      return BATCH_BYTES;
    case "series_appended":
      return ENTRY_BYTES + messagePackBytes(change.append.invalid);
    case "check_added":
      return messagePackBytes(change.check);
    case "defect_added":
      return messagePackBytes(change.defect);
    case "job_started":
      return ENTRY_BYTES + messagePackBytes(change.name);
    case "job_finished":
      return (
        (change.status === "completed" ? messagePackBytes([...change.checks, ...change.defects]) : 0) +
        (change.error === null ? 0 : messagePackBytes(change.error))
      );
    case "file_stored":
      return ENTRY_BYTES + messagePackBytes(change.file);
    case "event_added":
      return messagePackBytes(change.entry) + 16;
    case "run_finalizing":
      return change.results === null && change.summary === null
        ? 0
        : messagePackBytes([change.summary, change.summary, change.results]);
  }
}
