import { crc32 } from "node:zlib";
import type { RunChange } from "../../core/change.js";
import type { ProgramStep } from "../../core/program.js";
import { RecordedCell } from "./recorded-cell.js";

const T0_US = Date.UTC(2026, 0, 31, 12) * 1000;
const us = (second: number) => T0_US + second * 1_000_000;

/** A UUIDv7 of second `n` after the cell's start. */
function id(second: number, kind: number): string {
  const hex = (T0_US / 1000 + second * 1000).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7${kind.toString(16).padStart(3, "0")}-8000-00000000000${kind}`;
}

export const EXAMPLE_PROGRAM = id(1, 1);
export const EXAMPLE_RUN = id(10, 2);
export const EXAMPLE_FRAME = id(12, 3);

const STEPS: ProgramStep[] = [
  { type: "move_robot", name: "approach" },
  { type: "capture_frame", name: "top face", params: { exposure_us: 40 } },
];

/** A cell with one program and one run of it: what the interface's document shows as examples. */
export function exampleCell(): RecordedCell {
  const cell = new RecordedCell();
  const runId = EXAMPLE_RUN;
  cell.apply(us(1), {
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
  });
  const heights = Buffer.alloc(12);
  for (let at = 0; at < 6; at++) heights.writeUInt16LE(500 + at, at * 2);
  const changes: [second: number, change: RunChange][] = [
    [
      10,
      {
        kind: "run_created",
        runId,
        programId: EXAMPLE_PROGRAM,
        programName: "Housing top",
        robotId: "r1",
        serialNumber: "SN-0042",
        revision: 1,
        metadata: { lot: "A7" },
        traceId: null,
        steps: STEPS,
      },
    ],
    [10, { kind: "run_started", runId }],
    [11, { kind: "step_started", runId, index: 1 }],
    [12, { kind: "step_finished", runId, index: 1, status: "completed", result: null, error: null }],
    [12, { kind: "step_started", runId, index: 2 }],
    [
      12,
      {
        kind: "frame_begun",
        runId,
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
        runId,
        frameId: EXAMPLE_FRAME,
        batch: { offset: 64, lengthBytes: 12, crc32: crc32(heights), lineCount: 2, heightCrc32: crc32(heights) },
      },
    ],
    [14, { kind: "frame_ended", runId, frameId: EXAMPLE_FRAME }],
    [
      14,
      {
        kind: "step_finished",
        runId,
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
    [15, { kind: "run_finalizing", runId, summary: "1 of 1 checks passed", results: null }],
  ];
  for (const [second, change] of changes) cell.apply(us(second), change);
  cell.end(us(16), runId, { status: "completed", errorMessage: null, notes: [] });
  cell.files.set(`${runId}/capture`, Buffer.concat([Buffer.alloc(64), heights]));
  cell.healthRows = [
    { key: "log", status: "healthy", id: null, detail: null, enabled: null, required: true },
    { key: "recorder", status: "healthy", id: null, detail: null, enabled: null, required: true },
  ];
  return cell;
}

/** The path behind each example, by the operation's id. */
export const EXAMPLE_PATHS: Readonly<Record<string, string>> = {
  listRuns: "/runs?limit=1",
  getActiveRun: "/runs/active",
  getRun: `/runs/${EXAMPLE_RUN}`,
  listProgramRuns: `/programs/${EXAMPLE_PROGRAM}/runs?limit=1`,
  listPrograms: "/programs?limit=1",
  getProgram: `/programs/${EXAMPLE_PROGRAM}`,
  getQualityReport: `/runs/${EXAMPLE_RUN}/quality-report`,
  getDefects: `/runs/${EXAMPLE_RUN}/defects`,
  listRunFiles: `/runs/${EXAMPLE_RUN}/files`,
  getFrame: `/sensor/frames/${EXAMPLE_FRAME}`,
  listFrameFiles: `/sensor/frames/${EXAMPLE_FRAME}/files`,
  getHealth: "/health",
  getVersion: "/system/version",
  getLiveness: "/livez",
};
