import type { RunChange } from "../link/change.js";

/** Extents and the numbers beside them, with their keys. */
const BATCH_BYTES = 96;
/** What processing adds to a frame at most, and to its series: counted when they begin, so that a full document has room for it. */
const ARTEFACTS_BYTES = 800;
/** The fixed fields of a run, and of what it lists, with their keys. */
const RUN_BYTES = 1024;
const STEP_BYTES = 160;
const ENTRY_BYTES = 256;

/**
 * Bytes of a JSON value as MessagePack, at most: every number counts as a float64, every length with its longest head.
 */
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
 * Bytes, at most, by which a change lets the document of its run grow (`LIMITS.runDocumentBytes`). Changes whose number
 * and size another limit bounds count as nothing (a start, an end, a step that finishes without a result), so that a
 * run whose document is full can still be brought to its end. Findings
 * that came within a step's result stand there and among the run's.
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
      // Beside what processing failed, and in the event log.
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
