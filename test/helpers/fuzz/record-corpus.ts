/** Contents of records to fuzz from: one of each kind of change, as the product encodes it. */
import type { Change, RunChange } from "../../../core/link/change.js";
import { foldRun } from "../../../core/run/run-fold.js";
import type { RunState } from "../../../core/run/run-state.js";
import type { WebhookChange } from "../../../core/webhook/webhook-change.js";
import { type EncodedRecord, encodeChanges, encodeRefusal } from "../../../storage/records/change-record.js";
import { encodeWebhookChange } from "../../../storage/records/webhook-record.js";
import { RecorderState } from "../../../workers/recorder/recorder-state.js";
import { EVENT, resendChanges, webhookChanges } from "../webhooks/webhook-fixtures.js";
import { type CorpusEntry, corpusEntry } from "./fuzz-corpus.js";

const PROGRAM_ID = "019bb000-0000-7000-8000-000000000001";
const RUN_ID = "019bb000-0000-7000-8000-000000000002";
const FRAME_ID = "019bb000-0000-7000-8000-000000000003";
const TIME_US = 1_780_000_000_000_000;
const ORIGIN = { producer: "cell-1", sequence: 7 };

const CREATED: RunChange = {
  ...{ kind: "run_created", runId: RUN_ID, programId: PROGRAM_ID, programName: "Weld seam", robotId: "r1" },
  ...{ serialNumber: "SN 1", revision: 2, metadata: { lot: "µ" }, traceId: null },
  steps: [{ type: "capture_frame", name: "top" }, { type: "wait" }],
};
const FRAME = {
  ...{ id: FRAME_ID, stepIndex: 1, sessionId: "s", frameType: "profile", width: 4, declaredLines: 0 },
  planes: { height: { dtype: "u16" as const, scale_mm: 0.001, offset_mm: 0, invalid: [0] } },
  ...{ xPitchMm: 0.1, yPitchMm: 0.2, xOriginMm: 0, yOriginMm: 0, sequenceNumber: 1, sensorId: null },
  ...{ jointPositions: null, tcpPosition: null, captureTimestampUs: TIME_US - 5, metadata: null },
};
const EXTENT = { offset: 0, lengthBytes: 16, crc32: 0x8000_0001 };

/** A run's whole life, in an order that the fold takes. */
const RUN_CHANGES: RunChange[] = [
  CREATED,
  { kind: "run_started", runId: RUN_ID },
  { kind: "step_started", runId: RUN_ID, index: 1 },
  { kind: "frame_begun", runId: RUN_ID, frame: FRAME },
  {
    ...{ kind: "frame_lines_stored", runId: RUN_ID, frameId: FRAME_ID },
    batch: { ...EXTENT, lineCount: 2, heightCrc32: 5 },
  },
  { kind: "frame_ended", runId: RUN_ID, frameId: FRAME_ID },
  {
    ...{ kind: "series_appended", runId: RUN_ID, stepIndex: 1, channels: 2 },
    append: {
      ...{ ...EXTENT, offset: 16, rows: 2, firstTimestampUs: TIME_US, samplePeriodUs: 12.5, dtype: "f32" },
      ...{ valueScale: null, valueOffset: null, invalid: [] },
    },
  },
  { kind: "check_added", runId: RUN_ID, check: { name: "gap", status: "failed", value: 1.5 } },
  { kind: "defect_added", runId: RUN_ID, defect: { type: "dent", region_2d: { bbox: [1, 2] } } },
  { kind: "job_started", runId: RUN_ID, jobId: FRAME_ID, name: "judge" },
  {
    ...{ kind: "job_finished", runId: RUN_ID, jobId: FRAME_ID, status: "completed", error: null },
    ...{ checks: [{ name: "c", status: "passed" }], defects: [] },
  },
  {
    kind: "file_stored",
    runId: RUN_ID,
    file: {
      ...{ name: "report.pdf", type: "report", contentType: "application/pdf", description: "\ufeffé" },
      ...{ stepIndex: null, frameId: null, ...EXTENT },
    },
  },
  { kind: "event_added", runId: RUN_ID, entry: { eventType: "note", data: { deep: [[[1]]] }, timestampUs: null } },
  {
    ...{ kind: "step_finished", runId: RUN_ID, index: 1, status: "completed", error: null },
    result: { checks: [{ name: "width", status: "passed" }] },
  },
  { kind: "run_finalizing", runId: RUN_ID, summary: "done", results: { mean: 0.25 } },
];

/** What processing makes of it; something is left open. */
const ARTEFACT_CHANGES: RunChange[] = [
  {
    ...{ kind: "artefact_stored", runId: RUN_ID, of: { frameId: FRAME_ID, format: "ply" } },
    artefact: {
      ...{ kind: "cloud", points: 7 },
      lineCounts: { ...EXTENT, offset: 33 },
      mask: { ...EXTENT, offset: 32 },
    },
  },
  {
    ...{ kind: "artefact_failed", runId: RUN_ID, of: { frameId: FRAME_ID, format: "png" } },
    ...{ code: "capture_damaged", message: "the bytes do not match" },
  },
];

const CELL_CHANGES: Change[] = [
  { kind: "cell_put", cell: { kioskSerialNumber: "K1", unitSystem: "imperial" } },
  {
    kind: "component_put",
    row: { key: "camera", id: "c1", status: "degraded", detail: "warm", enabled: null, required: true },
  },
  { kind: "component_deleted", key: "camera" },
  {
    kind: "program_put",
    program: { id: PROGRAM_ID, name: "Weld seam", status: "active", robot_ids: ["r1"], steps: [{ type: "wait" }] },
  },
  { kind: "program_deleted", id: PROGRAM_ID },
];

/** Parts `type` (one byte), `index`, `body`. */
function recordEntry(name: string, about: string, type: number, index: Uint8Array, body: Uint8Array): CorpusEntry {
  return corpusEntry(name, about, { type: Uint8Array.of(type), index, body });
}

export function recordCorpus(): CorpusEntry[] {
  const entries: CorpusEntry[] = [];
  const add = (kind: string, about: string, { type, index, body }: EncodedRecord): void => {
    entries.push(recordEntry(`${type}-${kind.replaceAll("_", "-")}`, about, type, index, body));
  };
  for (const change of CELL_CHANGES) add(change.kind, `a ${change.kind}`, encodeChanges(ORIGIN, [change], undefined));
  add("two-changes", "two changes of one message", encodeChanges(ORIGIN, CELL_CHANGES.slice(0, 2), undefined));
  let run: RunState | undefined;
  for (const [at, change] of [...RUN_CHANGES, ...ARTEFACT_CHANGES].entries()) {
    run = foldRun(run, structuredClone(change), TIME_US + at);
    add(change.kind, `a ${change.kind}`, encodeChanges(at % 2 === 0 ? ORIGIN : null, [change], run));
  }
  const end = { status: "completed", completedAtUs: TIME_US + 20, documentBytes: 900 } as const;
  const ended: RunState = { ...(run as RunState), ...end };
  const endOf = (state: RunState) => encodeChanges(null, [{ kind: "run_ended", runId: RUN_ID, run: state }], undefined);
  add("run_ended", "a consolidated record", endOf(ended));
  add(
    "tombstone",
    "a consolidated record that says its captures to be removed",
    endOf({ ...ended, capturesRemovedAtUs: TIME_US + 30 }),
  );
  const started: RunChange = { kind: "run_started", runId: RUN_ID, event: { ...EVENT, name: "ProgramStarted" } };
  add("run_started_event", "a run_started that webhooks are told of", encodeChanges(null, [started], run));
  add("run_ended_events", "a consolidated record with events", endOf({ ...ended, emitted: [EVENT, EVENT] }));
  for (const change of webhookChanges(RUN_ID)) add(change.kind, `a ${change.kind}`, encodeWebhookChange(change));
  const [begun, over] = resendChanges(RUN_ID) as [WebhookChange, WebhookChange];
  add("resend_begun", "a resend that begins", encodeWebhookChange(begun));
  add("resend_done", "a resend that is done", encodeWebhookChange(over));
  add("refusal", "a refusal", encodeRefusal(ORIGIN, { code: "not_found", message: "no run", params: { path: "/id" } }));
  const opening = new RecorderState();
  opening.apply(ORIGIN, [CREATED], TIME_US);
  opening.applyRefusal({ producer: "cell-2", sequence: 3 }, { code: "too_large", message: "m", params: {} }, TIME_US);
  const state = opening.openingState();
  entries.push(recordEntry("01-opening-state", "an opening state", 1, state.index, state.body));
  return entries;
}
