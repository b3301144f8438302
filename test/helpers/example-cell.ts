import { crc32 } from "node:zlib";
import type { Change, RunChange } from "../../core/link/change.js";
import type { ProgramStep } from "../../core/run/program.js";
import { endRun, type RunEnding } from "../../core/run/run-end.js";
import type { RunState } from "../../core/run/run-state.js";
import type { RunEventName } from "../../core/webhook/webhook.js";
import { runEventPayload } from "../../core/webhook/webhook-event.js";
import { createdWebhook, type WebhookRequestBody } from "../../core/webhook/webhook-request.js";
import { REQUEST_EXAMPLES } from "../../http/openapi/request-examples.js";
import { RecordedCell } from "./captures/recorded-cell.js";
import { EXAMPLE_RESEND, EXAMPLE_SOURCE, ExampleWebhooks, exampleId } from "./webhooks/example-webhooks.js";

const T0_US = Date.UTC(2026, 0, 31, 12) * 1000;
const us = (second: number) => T0_US + second * 1_000_000;

export const EXAMPLE_PROGRAM = exampleId(us(1), 1);
export const EXAMPLE_RUN = exampleId(us(10), 2);
export const EXAMPLE_FRAME = exampleId(us(12), 3);
const EXAMPLE_WEBHOOK = exampleId(us(2.001), 4);
/** The delivery of the test event before the receiver was up. Number 5 is the event. */
const FAILED_DELIVERY = exampleId(us(3.001), 6);
/** The delivery of the run's end. */
const EXAMPLE_DELIVERY = exampleId(us(16), 7);

const WEBHOOK: WebhookRequestBody = {
  name: "MES",
  url: "https://mes.factory/inspection",
  subscribed_events: ["ProgramCompleted", "ProgramFailed"],
  secret: "whsec_aHVzaGh1c2g=",
};

const STEPS: ProgramStep[] = [
  { type: "move_robot", name: "approach" },
  { type: "capture_frame", name: "top face", params: { exposure_us: 40 } },
];

const PROGRAM_PUT: Change = {
  kind: "program_put",
  program: {
    id: EXAMPLE_PROGRAM,
    name: "Housing top",
    description: "Flatness of the top face",
    robot_ids: ["r1"],
    sensor_id: "ljx-1",
    status: "active",
    steps: STEPS,
    metadata: { line: 4 },
  },
};

const RUN_BEGINS: readonly RunChange[] = [
  {
    kind: "run_created",
    runId: EXAMPLE_RUN,
    programId: EXAMPLE_PROGRAM,
    programName: "Housing top",
    robotId: "r1",
    serialNumber: "SN-0042",
    revision: 1,
    metadata: { lot: "A7" },
    traceId: null,
    steps: STEPS,
  },
  { kind: "run_started", runId: EXAMPLE_RUN },
];

const HEIGHTS = Buffer.from(Uint16Array.from({ length: 6 }, (_, at) => 500 + at).buffer);

const RUN_GOES_ON: readonly [second: number, change: RunChange][] = [
  [11, { kind: "step_started", runId: EXAMPLE_RUN, index: 1 }],
  [12, { kind: "step_finished", runId: EXAMPLE_RUN, index: 1, status: "completed", result: null, error: null }],
  [12, { kind: "step_started", runId: EXAMPLE_RUN, index: 2 }],
  [
    12,
    {
      kind: "frame_begun",
      runId: EXAMPLE_RUN,
      frame: {
        id: EXAMPLE_FRAME,
        stepIndex: 2,
        sessionId: "session-1",
        frameType: "heightmap",
        width: 3,
        declaredLines: 2,
        planes: { height: { dtype: "u16", scale_mm: 0.01, offset_mm: -5, invalid: [0] } },
        xPitchMm: 0.1,
        yPitchMm: 0.2,
        xOriginMm: 0,
        yOriginMm: 0,
        sequenceNumber: 1,
        sensorId: "ljx-1",
        jointPositions: [0, 1.5, -2, 0, 0.7, 0],
        tcpPosition: null,
        captureTimestampUs: us(12),
        metadata: null,
      },
    },
  ],
  [
    13,
    {
      kind: "frame_lines_stored",
      runId: EXAMPLE_RUN,
      frameId: EXAMPLE_FRAME,
      batch: { offset: 64, lengthBytes: 12, crc32: crc32(HEIGHTS), lineCount: 2, heightCrc32: crc32(HEIGHTS) },
    },
  ],
  [14, { kind: "frame_ended", runId: EXAMPLE_RUN, frameId: EXAMPLE_FRAME }],
  [
    14,
    {
      kind: "step_finished",
      runId: EXAMPLE_RUN,
      index: 2,
      status: "completed",
      result: {
        frame_id: EXAMPLE_FRAME,
        checks: [{ name: "flatness", status: "passed", value: 0.12, nominal: 0, delta: 0.12, threshold: 0.2 }],
        defects: [{ id: "d1", type: "scratch", confidence: 0.82, severity: "low" }],
      },
      error: null,
    },
  ],
  [15, { kind: "run_finalizing", runId: EXAMPLE_RUN, summary: "1 of 1 checks passed", results: null }],
];

/**
 * A cell with one program, one run of it and one webhook, whose receiver was not up when it was tested and took the end of the run at
 * the second attempt: what the interface's document shows as examples.
 */
export function exampleCell(): RecordedCell {
  const cell = new RecordedCell();
  const runId = EXAMPLE_RUN;
  cell.apply(us(1), PROGRAM_PUT);
  const webhooks = new ExampleWebhooks(cell, 4);
  webhooks.timeUs = us(2);
  void webhooks.request({ op: "create", webhook: createdWebhook(WEBHOOK) });
  webhooks.timeUs = us(3);
  webhooks.refusals = 1;
  void webhooks.request({ op: "test", webhookId: EXAMPLE_WEBHOOK });
  for (const change of RUN_BEGINS) cell.apply(us(10), change);
  for (const [second, change] of RUN_GOES_ON) cell.apply(us(second), change);
  const ending: RunEnding = { status: "completed", errorMessage: null, notes: [] };
  const event = webhooks.emit("ProgramCompleted", endRun(cell.state(runId), ending, us(16)), us(16));
  cell.end(us(16), runId, ending, { emitted: [event] });
  webhooks.refusals = 1;
  webhooks.emitted(event, runId);
  cell.files.set(`${runId}/capture`, Buffer.concat([Buffer.alloc(64), HEIGHTS]));
  webhooks.timeUs = us(60);
  cell.healthRows = [
    { key: "log", status: "healthy", id: null, detail: null, enabled: null, required: true },
    { key: "recorder", status: "healthy", id: null, detail: null, enabled: null, required: true },
  ];
  return cell;
}

/** Payloads of the events that the example's webhook is not told of: of the same run as it began, and as it might have ended. */
export function otherExampleEvents(): Record<Exclude<RunEventName, "ProgramCompleted">, unknown> {
  const cell = new RecordedCell();
  cell.apply(us(1), PROGRAM_PUT);
  for (const change of RUN_BEGINS) cell.apply(us(10), change);
  const running = cell.state(EXAMPLE_RUN);
  const failing: RunEnding = { status: "failed", errorMessage: "protective stop of r1", notes: [] };
  const cancelling: RunEnding = { status: "cancelled", errorMessage: "cancelled at the panel", notes: [] };
  const event = (name: RunEventName, run: RunState, second: number): unknown =>
    JSON.parse(runEventPayload(EXAMPLE_SOURCE, exampleId(us(second), 0x20), name, run, true, us(second)));
  return {
    ProgramStarted: event("ProgramStarted", running, 10),
    ProgramFailed: event("ProgramFailed", endRun(running, failing, us(13)), 13),
    ProgramCancelled: event("ProgramCancelled", endRun(running, cancelling, us(14)), 14),
  };
}

export interface ExampleRequest {
  method: string;
  path: string;
  body?: object | undefined;
}

const get = (path: string): ExampleRequest => ({ method: "GET", path });
const post = (path: string, body?: object): ExampleRequest => ({ method: "POST", path, body });
const webhook = `/webhooks/${EXAMPLE_WEBHOOK}`;

/** The request behind each example, by the operation's id, in the order that they are made in: writes come last. */
export const EXAMPLE_REQUESTS: Readonly<Record<string, ExampleRequest>> = {
  listRuns: get("/runs?limit=1"),
  getActiveRun: get("/runs/active"),
  getRun: get(`/runs/${EXAMPLE_RUN}`),
  listProgramRuns: get(`/programs/${EXAMPLE_PROGRAM}/runs?limit=1`),
  listPrograms: get("/programs?limit=1"),
  getProgram: get(`/programs/${EXAMPLE_PROGRAM}`),
  getProgramStatistics: get(`/programs/${EXAMPLE_PROGRAM}/statistics`),
  getQualityReport: get(`/runs/${EXAMPLE_RUN}/quality-report`),
  getDefects: get(`/runs/${EXAMPLE_RUN}/defects`),
  listRunFiles: get(`/runs/${EXAMPLE_RUN}/files`),
  getFrame: get(`/sensor/frames/${EXAMPLE_FRAME}`),
  listFrameFiles: get(`/sensor/frames/${EXAMPLE_FRAME}/files`),
  getRoot: get("/"),
  getHealth: get("/health"),
  getVersion: get("/system/version"),
  getLiveness: get("/livez"),
  listWebhooks: get("/webhooks"),
  getWebhook: get(webhook),
  listWebhookDeliveries: get(`${webhook}/deliveries?limit=2`),
  getWebhookDelivery: get(`/webhook-deliveries/${EXAMPLE_DELIVERY}`),
  createWebhook: post("/webhooks", REQUEST_EXAMPLES.createWebhook),
  getWebhookSigningKey: get("/webhooks/signing-key"),
  updateWebhook: { method: "PATCH", path: webhook, body: REQUEST_EXAMPLES.updateWebhook },
  resendWebhookDeliveries: post(`${webhook}/resend`, REQUEST_EXAMPLES.resendWebhookDeliveries),
  getWebhookResend: get(`${webhook}/resends/${EXAMPLE_RESEND}`),
  rotateWebhookSecret: post(`${webhook}/rotate-secret`, REQUEST_EXAMPLES.rotateWebhookSecret),
  testWebhook: post(`${webhook}/test`),
  retryWebhookDelivery: post(`/webhook-deliveries/${FAILED_DELIVERY}/retry`),
};

/** A request that fails, for the example of the envelope. */
export const EXAMPLE_MISTAKE = get("/runs?limit=5000");
