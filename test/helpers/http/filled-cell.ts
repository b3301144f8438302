import { crc32 } from "node:zlib";
import type { Change } from "../../../core/link/change.js";
import type { ProgramDocument, ProgramStep } from "../../../core/run/program.js";
import { formatTimeUs } from "../../../core/timestamps.js";
import { RecordedCell } from "../captures/recorded-cell.js";
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

/** The states that the tests below read; nothing changes them. */
function fill(cell: RecordedCell): void {
  cell.apply(us(1), { kind: "program_put", program: FULL_PROGRAM });
  cell.apply(us(2), { kind: "program_put", program: { id: GONE_PROGRAM, name: "Old", status: "archived", steps: [] } });

  cell.apply(
    us(10),
    created(RUN, PROGRAM, {
      serialNumber: "SN+1 é",
      revision: 3,
      metadata: { lot: "A" },
      traceId: "trace-1",
      steps: STEPS,
    }),
  );
  cell.apply(us(11), { kind: "run_started", runId: RUN });
  cell.apply(us(12), { kind: "step_started", runId: RUN, index: 1 });
  cell.apply(us(13), { kind: "step_finished", runId: RUN, index: 1, status: "completed", result: null, error: null });
  cell.apply(us(14), { kind: "step_started", runId: RUN, index: 2 });
  cell.apply(us(15), begun(RUN, FRAME));
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
    offset += stored.length + 8;
  }
  const captures = Buffer.alloc(offset, 0xff);
  offset = 64;
  for (const { stored } of BATCHES) {
    stored.copy(captures, offset);
    offset += stored.length + 8;
  }
  cell.files.set(`${RUN}/capture`, captures);
  cell.apply(us(17), { kind: "frame_ended", runId: RUN, frameId: FRAME });
  cell.apply(us(18), {
    kind: "step_finished",
    runId: RUN,
    index: 2,
    status: "completed",
    result: {
      frame_id: FRAME,
      checks: [
        {
          name: "flatness",
          status: "passed",
          value: 0.12,
          nominal: 0,
          delta: 0.12,
          threshold: 0.2,
          message: "ok",
          metadata: { n: 1 },
        },
      ],
      defects: [
        { id: "d1", type: "dent", region_2d: { file: "x.png", bbox: [1, 2, 3, 4] }, confidence: 0.9, severity: "low" },
      ],
    },
    error: null,
  });
  cell.apply(us(19), { kind: "step_finished", runId: RUN, index: 3, status: "skipped", result: null, error: null });
  cell.apply(us(20), {
    kind: "step_finished",
    runId: RUN,
    index: 4,
    status: "failed",
    result: null,
    error: "gripper stuck",
  });
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
  cell.files.set(`${RUN}/report`, Buffer.concat([Buffer.alloc(8), REPORT_BYTES, Buffer.from("damaged")]));
  const file = { stepIndex: null, frameId: null, description: null };
  cell.apply(us(23), {
    kind: "file_stored",
    runId: RUN,
    file: {
      ...file,
      name: ODD_NAME,
      type: "report",
      contentType: "application/pdf",
      offset: 8,
      lengthBytes: REPORT_BYTES.length,
      crc32: crc32(REPORT_BYTES),
    },
  });
  cell.apply(us(24), {
    kind: "file_stored",
    runId: RUN,
    file: {
      ...file,
      name: "empty.txt",
      type: "report",
      contentType: "text/plain",
      description: "nothing",
      stepIndex: 2,
      frameId: FRAME,
      offset: 8,
      lengthBytes: 0,
      crc32: 0,
    },
  });
  cell.apply(us(25), {
    kind: "file_stored",
    runId: RUN,
    file: {
      ...file,
      name: "damaged.bin",
      type: "report",
      contentType: "a/b",
      offset: 8 + REPORT_BYTES.length,
      lengthBytes: 7,
      crc32: crc32("correct"),
    },
  });
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

  cell.apply(us(29), created(FAILED_RUN, GONE_PROGRAM, { steps: STEPS.slice(0, 2) }));
  cell.apply(us(29) + 1, { kind: "run_started", runId: FAILED_RUN });
  cell.apply(us(29) + 2, { kind: "step_started", runId: FAILED_RUN, index: 1 });
  cell.apply(us(29) + 3, { kind: "check_added", runId: FAILED_RUN, check: { name: "c", status: "passed" } });
  cell.end(us(30), FAILED_RUN, { status: "failed", errorMessage: "robot fault", notes: [] });
  cell.apply(us(31), created(CANCELLED_RUN, PROGRAM, { serialNumber: "SN-2" }));
  cell.end(us(32), CANCELLED_RUN, { status: "cancelled", errorMessage: null, notes: [] });
  cell.apply(us(33), { kind: "program_deleted", id: GONE_PROGRAM });

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

  cell.apply(us(50), created(ACTIVE_RUN, PROGRAM, { steps: STEPS }));
  cell.apply(us(51), { kind: "run_started", runId: ACTIVE_RUN });
  cell.apply(us(52), { kind: "step_started", runId: ACTIVE_RUN, index: 2 });
  cell.apply(
    us(53),
    begun(ACTIVE_RUN, OPEN_FRAME, { declaredLines: 0, jointPositions: null, tcpPosition: null, metadata: null }),
  );
}

export async function filled(t: Tap): Promise<{ cell: RecordedCell; client: ContractClient; port: number }> {
  const cell = new RecordedCell();
  fill(cell);
  const port = await cell.listen();
  t.teardown(() => cell.close());
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

export const FILES = [
  {
    name: `frame-${FRAME}.npy`,
    type: "array",
    content_type: "application/octet-stream",
    size_in_bytes: NPY_BYTES,
    description: null,
    href: `${BASE}/runs/${RUN}/files/frame-${FRAME}.npy`,
    step_index: 2,
    frame_id: FRAME,
    created_at: at(17),
    updated_at: at(17),
    deleted_at: null,
  },
  {
    name: ODD_NAME,
    type: "report",
    content_type: "application/pdf",
    size_in_bytes: REPORT_BYTES.length,
    description: null,
    href: `${BASE}/runs/${RUN}/files/Messprotokoll%20100%25%20(%C3%A9).pdf`,
    step_index: null,
    frame_id: null,
    created_at: at(23),
    updated_at: at(23),
    deleted_at: null,
  },
  {
    name: "empty.txt",
    type: "report",
    content_type: "text/plain",
    size_in_bytes: 0,
    description: "nothing",
    href: `${BASE}/runs/${RUN}/files/empty.txt`,
    step_index: 2,
    frame_id: FRAME,
    created_at: at(24),
    updated_at: at(24),
    deleted_at: null,
  },
  {
    name: "damaged.bin",
    type: "report",
    content_type: "a/b",
    size_in_bytes: 7,
    description: null,
    href: `${BASE}/runs/${RUN}/files/damaged.bin`,
    step_index: null,
    frame_id: null,
    created_at: at(25),
    updated_at: at(25),
    deleted_at: null,
  },
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
