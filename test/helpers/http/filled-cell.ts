import { crc32 } from "node:zlib";
import type { Change } from "../../../core/link/change.js";
import type { ProgramDocument, ProgramStep } from "../../../core/run/program.js";
import { formatTimeUs } from "../../../core/timestamps.js";
import { type ListenOptions, RecordedCell } from "../captures/recorded-cell.js";
import { type Assert, ContractClient } from "./contract-client.js";

export const BASE = "http://cell:8000";
const T0 = Date.UTC(2026, 0, 31, 12) * 1000;
export const at = (second: number) => formatTimeUs(T0 + second * 1_000_000);
export const us = (second: number) => T0 + second * 1_000_000;

/** A UUIDv7 of second `n` after T0. */
export function id(n: number, kind = 0): string {
  const hex = (T0 / 1000 + n * 1000).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7${kind.toString(16).padStart(3, "0")}-8000-0000000000${(n % 256).toString(16).padStart(2, "0")}`;
}

export const PROGRAM = id(1);
export const GONE_PROGRAM = id(2);
export const RUN = id(10);
export const FRAME = id(11, 1);
export const FAILED_RUN = id(20);
export const CANCELLED_RUN = id(30);
export const REMOVED_RUN = id(40);
export const REMOVED_FRAME = id(41, 1);
export const ACTIVE_RUN = id(50);
export const OPEN_FRAME = id(51, 1);
export const UNKNOWN = id(99);

const STEPS: ProgramStep[] = [
  { type: "move_robot", name: "approach" },
  { type: "capture_frame", name: "top", params: { exposure_us: 40 }, enabled: true, group_id: "g", section_name: null },
  { type: "wait" },
  { type: "gripper" },
];

export const FULL_PROGRAM: ProgramDocument = {
  id: PROGRAM,
  name: "Housing top",
  description: "Top face",
  robot_ids: ["r1", "r2"],
  sensor_id: "ljx",
  co_processor: null,
  pre_hook: null,
  post_hook: "park",
  status: "active",
  steps: STEPS,
  run_configs: [{ name: "fast", metadata: { speed: 2 } }],
  metadata: { line: 4 },
};

type StepFinished = Extract<Change, { kind: "step_finished" }>;

function created(
  runId: string,
  programId: string,
  fields: Partial<Extract<Change, { kind: "run_created" }>> = {},
): Change {
  return {
    kind: "run_created",
    runId,
    programId,
    programName: programId === PROGRAM ? "Housing top" : "Old",
    robotId: "r1",
    serialNumber: null,
    revision: 1,
    metadata: null,
    traceId: null,
    steps: [],
    ...fields,
  };
}

function begun(runId: string, frameId: string, fields: object = {}): Change {
  return {
    kind: "frame_begun",
    runId,
    frame: {
      id: frameId,
      stepIndex: 2,
      sessionId: "session-1",
      frameType: "heightmap",
      width: 5,
      declaredLines: 0,
      planes: {
        height: { dtype: "u16", scale_mm: 0.01, offset_mm: -5, invalid: [0] },
        luminance: { dtype: "u8", bits: 8 },
      },
      xPitchMm: 0.1,
      yPitchMm: 0.2,
      xOriginMm: 0,
      yOriginMm: 0,
      sequenceNumber: 1,
      sensorId: "ljx",
      jointPositions: [0, 1.5, -2],
      tcpPosition: { x: 1 },
      captureTimestampUs: us(11) + 123_456,
      metadata: { gain: 2 },
      ...fields,
    },
  };
}

/** Lines of a frame of width 5 as they are stored: height rows (u16), then luminance rows (u8). */
function batch(first: number, lines: number): { stored: Buffer; height: Buffer } {
  const height = Buffer.alloc(lines * 5 * 2);
  for (let i = 0; i < lines * 5; i++) height.writeUInt16LE(((first * 5 + i) * 257 + 1) % 65_536, i * 2);
  return { stored: Buffer.concat([height, Buffer.alloc(lines * 5, 0xee)]), height };
}

export const REPORT_BYTES = Buffer.from("%PDF report é\n".repeat(100_000));
export const ODD_NAME = "Messprotokoll 100% (é).pdf";
export const BATCHES = [batch(0, 3), batch(3, 1), batch(4, 60_000)];
export const NPY_BODY = Buffer.concat(BATCHES.map(({ height }) => height));

/** The states that the tests read; nothing changes them. */
function fill(cell: RecordedCell): void {
  cell.apply(us(1), { kind: "program_put", program: FULL_PROGRAM });
  cell.apply(us(2), { kind: "program_put", program: { id: GONE_PROGRAM, name: "Old", status: "archived", steps: [] } });
  fillCompletedRun(cell);
  fillEndedRuns(cell);
  fillRemovedRun(cell);
  fillActiveRun(cell);
}

/** A run with everything that a run can have. */
function fillCompletedRun(cell: RecordedCell): void {
  const run = { serialNumber: "SN+1 é", revision: 3, metadata: { lot: "A" }, traceId: "trace-1", steps: STEPS };
  cell.apply(us(10), created(RUN, PROGRAM, run));
  cell.apply(us(11), { kind: "run_started", runId: RUN });
  cell.apply(us(12), { kind: "step_started", runId: RUN, index: 1 });
  cell.apply(us(13), finished(1, "completed"));
  cell.apply(us(14), { kind: "step_started", runId: RUN, index: 2 });
  fillFrame(cell);
  const check = { name: "flatness", status: "passed", value: 0.12, nominal: 0, delta: 0.12, threshold: 0.2 } as const;
  const region_2d = { file: "x.png", bbox: [1, 2, 3, 4] };
  const result = {
    frame_id: FRAME,
    checks: [{ ...check, message: "ok", metadata: { n: 1 } }],
    defects: [{ id: "d1", type: "dent", region_2d, confidence: 0.9, severity: "low" }],
  };
  cell.apply(us(18), finished(2, "completed", { result }));
  cell.apply(us(19), finished(3, "skipped"));
  cell.apply(us(20), finished(4, "failed", { error: "gripper stuck" }));
  cell.apply(us(21), {
    kind: "check_added",
    runId: RUN,
    check: { name: "count", status: "warning", value: 3, canonical_units: "unspecified" },
  });
  cell.apply(us(22), {
    kind: "defect_added",
    runId: RUN,
    defect: { region_3d: { location: [1, 2, 3], extents: [1, 1, 1], orientation: [0, 0, 0, 1], frame: "scan" } },
  });
  fillReports(cell);
  cell.apply(us(26), {
    kind: "event_added",
    runId: RUN,
    entry: { eventType: "operator_note", data: { text: "hi" }, timestampUs: us(5) },
  });
  cell.apply(us(27), { kind: "run_finalizing", runId: RUN, summary: "all good", results: { score: 1 } });
  cell.end(us(28), RUN, {
    status: "completed",
    errorMessage: null,
    notes: [{ eventType: "finalize_timeout", data: { jobs: [] } }],
  });
}

function finished(
  index: number,
  status: "completed" | "failed" | "skipped",
  fields: Partial<Pick<StepFinished, "result" | "error">> = {},
): StepFinished {
  return { kind: "step_finished", runId: RUN, index, status, result: null, error: null, ...fields };
}

function fillFrame(cell: RecordedCell): void {
  cell.apply(us(15), begun(RUN, FRAME));
  const parts: Buffer[] = [Buffer.alloc(64, 0xff)];
  let offset = 64;
  let heightCrc32 = 0;
  for (const { stored } of BATCHES) {
    const lineCount = stored.length / 15;
    heightCrc32 = crc32(stored.subarray(0, lineCount * 10), heightCrc32);
    cell.apply(us(16), {
      kind: "frame_lines_stored",
      runId: RUN,
      frameId: FRAME,
      batch: { offset, lengthBytes: stored.length, crc32: crc32(stored), lineCount, heightCrc32 },
    });
    parts.push(stored, Buffer.alloc(8, 0xff));
    offset += stored.length + 8;
  }
  cell.files.set(`${RUN}/capture`, Buffer.concat(parts));
  cell.apply(us(17), { kind: "frame_ended", runId: RUN, frameId: FRAME });
}

function fillReports(cell: RecordedCell): void {
  cell.files.set(`${RUN}/report`, Buffer.concat([Buffer.alloc(8), REPORT_BYTES, Buffer.from("damaged")]));
  const report = { type: "report", stepIndex: null, frameId: null, description: null, offset: 8 } as const;
  const whole = { name: ODD_NAME, contentType: "application/pdf", lengthBytes: REPORT_BYTES.length };
  const empty = { name: "empty.txt", contentType: "text/plain", description: "nothing", lengthBytes: 0, crc32: 0 };
  const damaged = { name: "damaged.bin", contentType: "a/b", offset: 8 + REPORT_BYTES.length, lengthBytes: 7 };
  const files = [
    { ...report, ...whole, crc32: crc32(REPORT_BYTES) },
    { ...report, ...empty, stepIndex: 2, frameId: FRAME },
    { ...report, ...damaged, crc32: crc32("correct") },
  ];
  for (const [at, file] of files.entries()) cell.apply(us(23 + at), { kind: "file_stored", runId: RUN, file });
}

function fillEndedRuns(cell: RecordedCell): void {
  cell.apply(us(29), created(FAILED_RUN, GONE_PROGRAM, { steps: STEPS.slice(0, 2) }));
  cell.apply(us(29) + 1, { kind: "run_started", runId: FAILED_RUN });
  cell.apply(us(29) + 2, { kind: "step_started", runId: FAILED_RUN, index: 1 });
  cell.apply(us(29) + 3, { kind: "check_added", runId: FAILED_RUN, check: { name: "c", status: "passed" } });
  cell.end(us(30), FAILED_RUN, { status: "failed", errorMessage: "robot fault", notes: [] });
  cell.apply(us(31), created(CANCELLED_RUN, PROGRAM, { serialNumber: "SN-2" }));
  cell.end(us(32), CANCELLED_RUN, { status: "cancelled", errorMessage: null, notes: [] });
  cell.apply(us(33), { kind: "program_deleted", id: GONE_PROGRAM });
}

/** A run whose captures retention has removed. */
function fillRemovedRun(cell: RecordedCell): void {
  cell.apply(us(40), created(REMOVED_RUN, PROGRAM, { serialNumber: "SN-2", revision: 2 }));
  cell.apply(us(41), { kind: "run_started", runId: REMOVED_RUN });
  cell.apply(us(42), begun(REMOVED_RUN, REMOVED_FRAME, { width: 1 }));
  cell.apply(us(43), {
    kind: "frame_lines_stored",
    runId: REMOVED_RUN,
    frameId: REMOVED_FRAME,
    batch: { offset: 0, lengthBytes: 3, crc32: 0, lineCount: 1, heightCrc32: 0 },
  });
  cell.apply(us(44), { kind: "frame_ended", runId: REMOVED_RUN, frameId: REMOVED_FRAME });
  cell.end(
    us(45),
    REMOVED_RUN,
    { status: "completed", errorMessage: null, notes: [] },
    { capturesRemovedAtUs: us(46), updatedAtUs: us(46) },
  );
}

function fillActiveRun(cell: RecordedCell): void {
  cell.apply(us(50), created(ACTIVE_RUN, PROGRAM, { steps: STEPS }));
  cell.apply(us(51), { kind: "run_started", runId: ACTIVE_RUN });
  cell.apply(us(52), { kind: "step_started", runId: ACTIVE_RUN, index: 2 });
  cell.apply(
    us(53),
    begun(ACTIVE_RUN, OPEN_FRAME, { declaredLines: 0, jointPositions: null, tcpPosition: null, metadata: null }),
  );
}

export async function filled(
  t: Tap,
  options: ListenOptions = {},
): Promise<{ cell: RecordedCell; client: ContractClient; port: number }> {
  const cell = new RecordedCell();
  fill(cell);
  const port = await cell.listenFor(t, options);
  return { cell, client: new ContractClient(t, port), port };
}

type Tap = Assert & { teardown(undo: () => Promise<void>): unknown };

export const links = (runId: string, programId: string) => ({
  self: { href: `${BASE}/runs/${runId}`, method: "GET" },
  program: { href: `${BASE}/programs/${programId}`, method: "GET" },
  cancel: null,
  websocket: null,
});

export const NPY_BYTES = 128 + NPY_BODY.length;

/** A report of the run, unless `fields` say something else. @param path of its href, below the run's files */
const fileAt = (
  second: number,
  path: string,
  fields: { name: string; content_type: string; size_in_bytes: number },
) => ({
  type: "report",
  description: null as string | null,
  href: `${BASE}/runs/${RUN}/files/${path}`,
  step_index: null as number | null,
  frame_id: null as string | null,
  created_at: at(second),
  updated_at: at(second),
  deleted_at: null,
  ...fields,
});

const NPY_NAME = `frame-${FRAME}.npy`;

export const FILES = [
  {
    ...fileAt(17, NPY_NAME, { name: NPY_NAME, content_type: "application/octet-stream", size_in_bytes: NPY_BYTES }),
    ...{ type: "array", step_index: 2, frame_id: FRAME },
  },
  fileAt(23, "Messprotokoll%20100%25%20(%C3%A9).pdf", {
    ...{ name: ODD_NAME, content_type: "application/pdf", size_in_bytes: REPORT_BYTES.length },
  }),
  {
    ...fileAt(24, "empty.txt", { name: "empty.txt", content_type: "text/plain", size_in_bytes: 0 }),
    ...{ description: "nothing", step_index: 2, frame_id: FRAME },
  },
  fileAt(25, "damaged.bin", { name: "damaged.bin", content_type: "a/b", size_in_bytes: 7 }),
];

export const CHECKS = [
  {
    name: "flatness",
    status: "passed",
    value: 0.12,
    nominal: 0,
    delta: 0.12,
    threshold: 0.2,
    message: "ok",
    metadata: { n: 1 },
    canonical_units: "mm",
  },
  { name: "count", status: "warning", value: 3, canonical_units: "unspecified" },
];
export const DEFECTS = [
  { id: "d1", type: "dent", region_2d: { file: "x.png", bbox: [1, 2, 3, 4] }, confidence: 0.9, severity: "low" },
  { region_3d: { location: [1, 2, 3], extents: [1, 1, 1], orientation: [0, 0, 0, 1], frame: "scan" } },
];
