import { crc32 } from "node:zlib";
import t from "tap";
import type { Change } from "../../../core/link/change.js";
import type { ProgramDocument, ProgramStep } from "../../../core/run/program.js";
import { formatTimeUs } from "../../../core/timestamps.js";
import type { components, operations } from "../../../http/client/interface-types.js";
import { FIXTURE_VERSION, RecordedCell } from "../../helpers/captures/recorded-cell.js";
import { type Assert, ContractClient } from "../../helpers/http/contract-client.js";
import { rawRequest } from "../../helpers/http/raw-http.js";
import { listOf } from "../../helpers/list-of.js";

const BASE = "http://cell:8000";
const T0 = Date.UTC(2026, 0, 31, 12) * 1000;
const at = (second: number) => formatTimeUs(T0 + second * 1_000_000);
const us = (second: number) => T0 + second * 1_000_000;

/** A UUIDv7 of second `n` after T0. */
function id(n: number, kind = 0): string {
  const hex = (T0 / 1000 + n * 1000).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7${kind.toString(16).padStart(3, "0")}-8000-0000000000${(n % 256).toString(16).padStart(2, "0")}`;
}

const PROGRAM = id(1);
const GONE_PROGRAM = id(2);
const RUN = id(10);
const FRAME = id(11, 1);
const FAILED_RUN = id(20);
const CANCELLED_RUN = id(30);
const REMOVED_RUN = id(40);
const REMOVED_FRAME = id(41, 1);
const ACTIVE_RUN = id(50);
const OPEN_FRAME = id(51, 1);
const UNKNOWN = id(99);

const STEPS: ProgramStep[] = [
  { type: "move_robot", name: "approach" },
  { type: "capture_frame", name: "top", params: { exposure_us: 40 }, enabled: true, group_id: "g", section_name: null },
  { type: "wait" },
  { type: "gripper" },
];

const FULL_PROGRAM: ProgramDocument = {
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

const REPORT_BYTES = Buffer.from("%PDF report é\n".repeat(100_000));
const ODD_NAME = "Messprotokoll 100% (é).pdf";
const BATCHES = [batch(0, 3), batch(3, 1), batch(4, 60_000)];
const NPY_BODY = Buffer.concat(BATCHES.map(({ height }) => height));

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

async function filled(t: Tap): Promise<{ cell: RecordedCell; client: ContractClient; port: number }> {
  const cell = new RecordedCell();
  fill(cell);
  const port = await cell.listen();
  t.teardown(() => cell.close());
  return { cell, client: new ContractClient(t, port), port };
}

type Tap = Assert & { teardown(undo: () => Promise<void>): unknown };

const links = (runId: string, programId: string) => ({
  self: { href: `${BASE}/runs/${runId}`, method: "GET" },
  program: { href: `${BASE}/programs/${programId}`, method: "GET" },
  cancel: null,
  websocket: null,
});

const NPY_BYTES = 128 + NPY_BODY.length;

const FILES = [
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

const CHECKS = [
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
const DEFECTS = [
  { id: "d1", type: "dent", region_2d: { file: "x.png", bbox: [1, 2, 3, 4] }, confidence: 0.9, severity: "low" },
  { region_3d: { location: [1, 2, 3], extents: [1, 1, 1], orientation: [0, 0, 0, 1], frame: "scan" } },
];

t.test("GET /runs/{run_id}: every field of a completed run", async (t) => {
  const { client } = await filled(t);
  const wanted = {
    id: RUN,
    program_id: PROGRAM,
    status: "completed",
    quality_status: "passed",
    trace_id: "trace-1",
    serial_number: "SN+1 é",
    revision: 3,
    metadata: { lot: "A" },
    progress: { total_steps: 4, completed_steps: 4, current_step: null },
    steps: {
      completed: [
        {
          index: 1,
          type: "move_robot",
          name: "approach",
          status: "completed",
          started_at: at(12),
          completed_at: at(13),
          result: null,
          error: null,
        },
        {
          index: 2,
          type: "capture_frame",
          name: "top",
          status: "completed",
          started_at: at(14),
          completed_at: at(18),
          result: { frame_id: FRAME, checks: [{ ...CHECKS[0], canonical_units: undefined }], defects: [DEFECTS[0]] },
          error: null,
        },
        {
          index: 3,
          type: "wait",
          name: null,
          status: "skipped",
          started_at: null,
          completed_at: at(19),
          result: null,
          error: null,
        },
        {
          index: 4,
          type: "gripper",
          name: null,
          status: "failed",
          started_at: null,
          completed_at: at(20),
          result: null,
          error: "gripper stuck",
        },
      ],
      in_progress: null,
      pending: [],
    },
    started_at: at(11),
    completed_at: at(28),
    error_message: null,
    results: { score: 1, frame_ids: [FRAME] },
    event_log: [
      { timestamp: at(5), event_type: "operator_note", data: { text: "hi" } },
      { timestamp: at(28), event_type: "finalize_timeout", data: { jobs: [] } },
    ],
    webhook_deliveries: [],
    webhook_delivery: { delivered: 0, failed: 0, pending: 0, all_ok: true },
    files: FILES,
    created_at: at(10),
    updated_at: at(28),
    links: links(RUN, PROGRAM),
  };
  const expected = JSON.parse(JSON.stringify(wanted));
  t.strictSame(await client.get("/runs/{run_id}", { path: { run_id: RUN } }), expected);
  t.strictSame(await client.get("/runs/{run_id}", { path: { run_id: RUN } }), expected, "the kept one is the same");
  const other = await rawRequest(client.port, `GET /runs/${RUN} HTTP/1.1\r\nHost: other\r\n\r\n`);
  t.match(other?.json(), { links: { self: { href: `http://other/runs/${RUN}` } } }, "but for another base address");
});

t.test("GET /runs/{run_id}: failed, cancelled and active runs", async (t) => {
  const { client, cell } = await filled(t);
  const failed = await client.get("/runs/{run_id}", { path: { run_id: FAILED_RUN } });
  t.strictSame(failed.metadata, {});
  t.match(failed, {
    status: "failed",
    error_message: "robot fault",
    completed_at: at(30),
    steps: {
      completed: listOf({ index: 1, status: "failed", completed_at: at(30) }),
      in_progress: null,
      pending: listOf({ index: 2, status: "cancelled" }),
    },
    results: { frame_ids: { length: 0 } },
  });
  t.match(await client.get("/runs/{run_id}", { path: { run_id: CANCELLED_RUN } }), {
    status: "cancelled",
    completed_at: at(32),
    started_at: null,
  });
  t.match(await client.get("/runs/{run_id}", { path: { run_id: ACTIVE_RUN } }), {
    status: "running",
    completed_at: null,
    progress: { total_steps: 4, completed_steps: 0, current_step: 2 },
    steps: { completed: { length: 0 }, in_progress: { index: 2, status: "running", started_at: at(52) } },
    updated_at: at(53),
  });
  cell.apply(us(60), {
    kind: "step_finished",
    runId: ACTIVE_RUN,
    index: 2,
    status: "completed",
    result: null,
    error: null,
  });
  t.match(await client.get("/runs/{run_id}", { path: { run_id: ACTIVE_RUN } }), {
    progress: { completed_steps: 1 },
    updated_at: at(60),
  });
});

t.test("an ended run that changes is shown changed", async (t) => {
  const { client, cell } = await filled(t);
  await client.get("/runs/{run_id}", { path: { run_id: RUN } });
  cell.apply(us(70), {
    kind: "run_ended",
    runId: RUN,
    run: { ...cell.state(RUN), capturesRemovedAtUs: us(70), updatedAtUs: us(70) },
  });
  const { updated_at, files } = await client.get("/runs/{run_id}", { path: { run_id: RUN } });
  t.equal(updated_at, at(70));
  t.same(
    files?.map(({ name, deleted_at }) => [name, deleted_at]),
    [
      [`frame-${FRAME}.npy`, at(70)],
      ["Messprotokoll 100% (é).pdf", null],
      ["empty.txt", null],
      ["damaged.bin", null],
    ],
    "its captures, and nothing else",
  );
});

t.test("GET /runs/active: the newest running or finalizing run, or none", async (t) => {
  const { client, cell } = await filled(t);
  const active = (await client.get("/runs/active")) as { active: boolean; run: { id: string } };
  t.equal(active.active, true);
  t.strictSame(active.run, await client.get("/runs/{run_id}", { path: { run_id: ACTIVE_RUN } }));
  cell.apply(us(60), { kind: "run_finalizing", runId: ACTIVE_RUN, summary: null, results: null });
  t.match(await client.get("/runs/active"), { active: true, run: { status: "finalizing" } });
  cell.end(us(61), ACTIVE_RUN, { status: "completed", errorMessage: null, notes: [] });
  t.strictSame(await client.get("/runs/active"), { active: false, run: null });
});

t.test("GET /runs: every field of an entry, newest first, exact totals", async (t) => {
  const { client } = await filled(t);
  const list = (await client.get("/runs")) as { runs: { id: string }[] };
  t.match(list, { total: 5, limit: 50, offset: 0 });
  t.strictSame(Object.keys(list), ["runs", "total", "limit", "offset"]);
  t.strictSame(
    list.runs.map((run) => run.id),
    [ACTIVE_RUN, REMOVED_RUN, CANCELLED_RUN, FAILED_RUN, RUN],
  );
  t.strictSame(list.runs[4], {
    id: RUN,
    program_id: PROGRAM,
    program_name: "Housing top",
    status: "completed",
    quality_status: "passed",
    progress: { total_steps: 4, completed_steps: 4, current_step: null },
    serial_number: "SN+1 é",
    revision: 3,
    metadata: { lot: "A" },
    started_at: at(11),
    completed_at: at(28),
    error_message: null,
    created_at: at(10),
    updated_at: at(28),
    links: links(RUN, PROGRAM),
  });
  t.match(list.runs[0], {
    status: "running",
    progress: { total_steps: 4, current_step: 2 },
    serial_number: null,
    revision: 1,
  });
});

t.test("GET /runs: filters, alone and together, and pages", async (t) => {
  const { client } = await filled(t);
  type List = components["schemas"]["ProgramRunSummaryListResponse"];
  const found = ({ total, runs }: List) => [total, ...runs.map((run) => run.id)];
  const ids = async (query: NonNullable<operations["listRuns"]["parameters"]["query"]>) =>
    found(await client.get("/runs", { query }));
  t.strictSame(await ids({ status: "completed" }), [2, REMOVED_RUN, RUN]);
  const nonsense = await client.raw("GET", "/runs?status=nonsense");
  t.strictSame(found(nonsense.json() as List), [0], "a state that no run can have matches none");
  t.strictSame(await ids({ quality_status: "passed" }), [1, RUN]);
  t.strictSame(await ids({ quality_status: "failed" }), [0]);
  t.strictSame(
    await ids({ quality_status: "none", limit: 3, offset: 1 }),
    [4, REMOVED_RUN, CANCELLED_RUN, FAILED_RUN],
    "runs without a report, whatever their status",
  );
  t.strictSame(await ids({ quality_status: "none", status: "completed" }), [1, REMOVED_RUN]);
  t.strictSame(await ids({ quality_status: "passed", status: "failed" }), [0]);
  for (const other of ["nonsense", "null", "PASSED"]) {
    const none = await client.raw("GET", `/runs?quality_status=${other}`);
    t.strictSame(found(none.json() as List), [0], other);
  }
  t.strictSame(await ids({ program_id: GONE_PROGRAM }), [1, FAILED_RUN], "a deleted program's runs stay listed");
  t.strictSame(await ids({ program_id: UNKNOWN }), [0]);
  t.strictSame(await ids({ serial_number: "SN+1 é" }), [1, RUN]);
  t.strictSame(await ids({ serial_number: "SN-2" }), [2, REMOVED_RUN, CANCELLED_RUN]);
  t.strictSame(await ids({ serial_number: "SN-2", status: "cancelled" }), [1, CANCELLED_RUN]);
  t.strictSame(await ids({ serial_number: "SN-2", program_id: GONE_PROGRAM }), [0]);
  t.strictSame(await ids({ updated_since: at(32) }), [2, ACTIVE_RUN, REMOVED_RUN], "strictly after");
  t.strictSame(await ids({ updated_since: at(32), status: "running" }), [1, ACTIVE_RUN]);
  t.strictSame(await ids({ limit: 2 }), [5, ACTIVE_RUN, REMOVED_RUN]);
  t.strictSame(await ids({ limit: 2, offset: 3 }), [5, FAILED_RUN, RUN]);
  t.strictSame(await ids({ limit: 1000, offset: 5 }), [5]);
  t.strictSame(await ids({ offset: 9007199254740991 }), [5]);

  /** With a query as it is written here. */
  const rawIds = async (query: string) => {
    const response = await client.raw("GET", `/runs?${query}`);
    t.equal(response.status, 200, query);
    return found(response.json() as List);
  };
  t.strictSame(await rawIds("serial_number=SN%2B1%20%C3%A9"), [1, RUN]);
  t.strictSame(await rawIds("serial_number=SN%2B1+%C3%A9"), [1, RUN]);
  t.strictSame(await rawIds(`updated_since=${at(32)}`), [2, ACTIVE_RUN, REMOVED_RUN]);
  t.strictSame(await rawIds("updated_since=2026-01-31T13:00:31%2B01:00"), [3, ACTIVE_RUN, REMOVED_RUN, CANCELLED_RUN]);
  t.strictSame(await rawIds("status=&limit=&unknown=x&unknown=y"), [
    5,
    ACTIVE_RUN,
    REMOVED_RUN,
    CANCELLED_RUN,
    FAILED_RUN,
    RUN,
  ]);
});

t.test("GET /programs/{program_id}/runs", async (t) => {
  const { client } = await filled(t);
  const path = { program_id: PROGRAM };
  const list = await client.get("/programs/{program_id}/runs", { path });
  t.match(list, { total: 4, limit: 100, offset: 0 });
  t.strictSame(
    list.runs.map((run) => run.id),
    [ACTIVE_RUN, REMOVED_RUN, CANCELLED_RUN, RUN],
  );
  const page = { serial_number: "SN-2", limit: 1, offset: 1 };
  t.match(await client.get("/programs/{program_id}/runs", { path, query: page }), {
    total: 2,
    limit: 1,
    offset: 1,
    runs: listOf({ id: CANCELLED_RUN }),
  });
  t.match(await client.get("/programs/{program_id}/runs", { path, query: { updated_since: at(46) } }), {
    total: 1,
    runs: listOf({ id: ACTIVE_RUN }),
  });
  const unfiltered = await client.raw("GET", `/programs/${PROGRAM}/runs?status=failed`);
  t.match([unfiltered.status, unfiltered.json()], listOf(200, { total: 4 }), "status is no parameter here");
  t.match(await client.get("/programs/{program_id}/runs", { path: { program_id: GONE_PROGRAM } }), { total: 1 });
  await client.refusal("get", "/programs/{program_id}/runs", 404, "program_not_found", {
    path: { program_id: UNKNOWN },
  });
});

t.test("GET /programs and /programs/{program_id}: every field", async (t) => {
  const { client, cell } = await filled(t);
  const wanted = {
    ...FULL_PROGRAM,
    run_count: 4,
    created_at: at(1),
    updated_at: at(1),
    links: {
      self: { href: `${BASE}/programs/${PROGRAM}`, method: "GET" },
      runs: { href: `${BASE}/programs/${PROGRAM}/runs`, method: "GET" },
    },
  };
  t.strictSame(await client.get("/programs/{program_id}", { path: { program_id: PROGRAM } }), wanted);
  t.strictSame(await client.get("/programs"), {
    programs: [wanted],
    total: 1,
    limit: 100,
    offset: 0,
  });
  await client.refusal("get", "/programs/{program_id}", 404, "program_not_found", {
    path: { program_id: GONE_PROGRAM },
  });
  await client.refusal("get", "/programs/{program_id}", 404, "program_not_found", { path: { program_id: UNKNOWN } });
  cell.apply(us(80), {
    kind: "program_put",
    program: { id: id(3), name: "B", status: "draft", steps: [], robot_ids: ["r2"] },
  });
  t.match(await client.get("/programs"), {
    total: 2,
    programs: listOf({ id: id(3), run_count: 0 }, { id: PROGRAM }),
  });
  t.match(await client.get("/programs", { query: { robot_id: "r1" } }), {
    total: 1,
    programs: listOf({ id: PROGRAM }),
  });
  t.match(await client.get("/programs", { query: { robot_id: "none" } }), { total: 0 });
  t.match(await client.get("/programs", { query: { limit: 1, offset: 1 } }), {
    total: 2,
    limit: 1,
    offset: 1,
    programs: listOf({ id: PROGRAM }),
  });
});

t.test("bad parameters of lists are 422, naming the parameter and what is allowed", async (t) => {
  const { client } = await filled(t);
  for (const list of ["/runs", `/programs/${PROGRAM}/runs`, "/programs"]) {
    for (const value of ["0", "1001", "-1", "1.5", "abc", "%zz"]) {
      const { message, params, retryable } = await client.rawRefusal(
        `${list}?limit=${value}`,
        422,
        "invalid_parameter",
      );
      t.match(message, /limit/);
      t.match(params, { field: "limit", in: "query", value: /./, allowed: /./ });
      t.equal(retryable, false);
    }
    t.match((await client.rawRefusal(`${list}?offset=-1`, 422, "invalid_parameter")).params, {
      field: "offset",
      allowed: /at least 0/,
    });
    t.match((await client.rawRefusal(`${list}?limit=1&limit=1`, 422, "invalid_parameter")).params, {
      field: "limit",
      value: listOf("1", "1"),
    });
  }
  for (const list of ["/runs", `/programs/${PROGRAM}/runs`]) {
    for (const value of ["x", "2026-13-01T00:00:00Z", "2026-01-31"]) {
      t.match((await client.rawRefusal(`${list}?updated_since=${value}`, 422, "invalid_parameter")).params, {
        field: "updated_since",
        allowed: /date-time/,
      });
    }
  }
  await client.refusal("get", "/programs/{program_id}/runs", 422, "invalid_parameter", {
    path: { program_id: UNKNOWN },
    query: { limit: 0 },
  });
});

t.test("GET /runs/{run_id}/quality-report and /defects", async (t) => {
  const { client, cell } = await filled(t);
  t.strictSame(await client.get("/runs/{run_id}/quality-report", { path: { run_id: RUN } }), {
    run_id: RUN,
    quality_report: { status: "passed", final: true, checks: CHECKS, defects: DEFECTS, summary: "all good" },
  });
  t.strictSame(await client.get("/runs/{run_id}/defects", { path: { run_id: RUN } }), {
    run_id: RUN,
    defects: DEFECTS,
  });
  for (const run of [ACTIVE_RUN, FAILED_RUN, CANCELLED_RUN, REMOVED_RUN]) {
    t.strictSame(await client.get("/runs/{run_id}/quality-report", { path: { run_id: run } }), {
      run_id: run,
      quality_report: null,
    });
    t.strictSame(await client.get("/runs/{run_id}/defects", { path: { run_id: run } }), { run_id: run, defects: [] });
  }
  const [path, limit] = [{ run_id: ACTIVE_RUN }, 1];
  const statuses = ["passed", "failed", "indeterminate", "none"] as const;
  /** Report, detail, lists and their totals say the same. */
  const isEverywhere = async (wanted: "failed" | "indeterminate" | null, final: boolean, label: string) => {
    const { quality_report: report } = await client.get("/runs/{run_id}/quality-report", { path });
    t.strictSame(report && [report.status, report.final], wanted && [wanted, final], label);
    t.equal((await client.get("/runs/{run_id}", { path })).quality_status, wanted, label);
    t.equal((await client.get("/runs", { query: { limit } })).runs[0]?.quality_status, wanted, label);
    for (const status of statuses) {
      const ofCell = await client.get("/runs", { query: { quality_status: status, limit } });
      const query = { quality_status: status, limit };
      const ofProgram = await client.get("/programs/{program_id}/runs", { path: { program_id: PROGRAM }, query });
      const isOfRun = status === (wanted ?? "none");
      for (const { total, runs } of [ofCell, ofProgram]) {
        t.equal(runs[0]?.id === ACTIVE_RUN, isOfRun, `${label}: ${status}`);
        t.equal(total > 0, runs.length > 0, `${label}: ${status}`);
      }
    }
  };
  await isEverywhere(null, false, "no checks");
  cell.apply(us(60), { kind: "check_added", runId: ACTIVE_RUN, check: { name: "c", status: "not_evaluated" } });
  await isEverywhere("indeterminate", false, "one that was not evaluated");
  cell.apply(us(61), { kind: "job_started", runId: ACTIVE_RUN, jobId: RUN, name: "j" });
  const checks = [{ name: "d", status: "failed" as const }];
  const job = { runId: ACTIVE_RUN, jobId: RUN, checks, defects: [], error: null };
  cell.apply(us(62), { kind: "run_finalizing", runId: ACTIVE_RUN, summary: null, results: null });
  await isEverywhere("indeterminate", false, "finalizing");
  cell.apply(us(63), { kind: "job_finished", ...job, status: "completed" });
  await isEverywhere("failed", false, "a job's check while it is finalized");
  cell.apply(us(64), {
    kind: "event_added",
    runId: ACTIVE_RUN,
    entry: { eventType: "e", data: {}, timestampUs: null },
  });
  await isEverywhere("failed", false, "nothing of quality");
  cell.end(us(65), ACTIVE_RUN, { status: "completed", errorMessage: null, notes: [] });
  await isEverywhere("failed", true, "completed");
});

t.test("a run that fails has no report any more, whatever its checks said", async (t) => {
  const { client, cell } = await filled(t);
  cell.apply(us(60), { kind: "check_added", runId: ACTIVE_RUN, check: { name: "c", status: "passed" } });
  const found = async (status: "passed" | "none") =>
    (await client.get("/runs", { query: { quality_status: status } })).total;
  t.same([await found("passed"), await found("none")], [2, 3]);
  cell.end(us(61), ACTIVE_RUN, { status: "failed", errorMessage: "broke", notes: [] });
  t.same([await found("passed"), await found("none")], [1, 4]);
  const path = { run_id: ACTIVE_RUN };
  t.equal((await client.get("/runs/{run_id}", { path })).quality_status, null);
  t.equal((await client.get("/runs/{run_id}/quality-report", { path })).quality_report, null);
});

t.test("unknown runs are 404 on every path below them", async (t) => {
  const { client } = await filled(t);
  for (const run of [UNKNOWN, `${RUN}0`, "nonsense", "..", "%00", "%2e%2e", "%zz", `${RUN}%20`]) {
    for (const path of ["", "/quality-report", "/defects", "/files", "/files/x"]) {
      // As it stands here: a client would encode it.
      const { params } = await client.rawRefusal(`/runs/${run}${path}`, 404, "run_not_found");
      t.match(params, { field: "run_id", in: "path" });
    }
  }
});

t.test("GET /runs/{run_id}/files: the manifest, removed entries among it", async (t) => {
  const { client } = await filled(t);
  t.strictSame(await client.get("/runs/{run_id}/files", { path: { run_id: RUN } }), FILES);
  t.match(
    await client.get("/runs/{run_id}/files", { path: { run_id: REMOVED_RUN } }),
    listOf({ name: `frame-${REMOVED_FRAME}.npy`, created_at: at(44), updated_at: at(46), deleted_at: at(46) }),
  );
  t.strictSame(await client.get("/runs/{run_id}/files", { path: { run_id: CANCELLED_RUN } }), []);
  t.strictSame(await client.get("/runs/{run_id}/files", { path: { run_id: ACTIVE_RUN } }), []);
});

t.test("GET /runs/{run_id}/files/{name}: the bytes under each href, and nothing else", async (t) => {
  const { client, cell } = await filled(t);
  const expected = [undefined, REPORT_BYTES, Buffer.alloc(0)];
  for (const [at, wanted] of expected.entries()) {
    const file = FILES[at] as (typeof FILES)[number];
    const response = await client.raw("GET", file.href.slice(BASE.length));
    t.equal(response.status, 200);
    t.equal(response.headers["content-type"], "application/octet-stream");
    t.equal(response.headers["content-length"], String(file.size_in_bytes));
    t.match(response.headers["content-disposition"], /^attachment; filename="/);
    if (wanted !== undefined) t.ok(response.body.equals(wanted), file.name);
  }
  t.equal(
    (await client.raw("GET", `/runs/${RUN}/files/${encodeURIComponent(ODD_NAME)}`)).headers["content-disposition"],
    "attachment; filename=\"Messprotokoll 100_ (_).pdf\"; filename*=UTF-8''Messprotokoll%20100%25%20%28%C3%A9%29.pdf",
  );
  const names = [
    "x",
    "..",
    "%2e%2e",
    "..%2f..%2fetc%2fpasswd",
    "%00",
    "empty.txt%00",
    "empty.txt%20",
    "EMPTY.TXT",
    "%zz",
    "%C0%AE",
    `frame-${FRAME}.ply`,
    `frame-${REMOVED_FRAME}.npy`,
    "__proto__",
  ];
  for (const name of names) {
    t.match((await client.rawRefusal(`/runs/${RUN}/files/${name}`, 404, "file_not_found")).params, {
      field: "name",
      in: "path",
    });
  }
  for (const path of ["../files", "a/b", "", "..//", "./empty.txt"]) {
    await client.rawRefusal(
      `/runs/${RUN}/files/${path}`,
      404,
      path === "" || path.includes("/") ? "route_not_found" : "file_not_found",
    );
  }
  const gone = await client.rawRefusal(`/runs/${REMOVED_RUN}/files/frame-${REMOVED_FRAME}.npy`, 410, "file_removed");
  t.match(gone.params, { value: `frame-${REMOVED_FRAME}.npy` });
  const damaged = await client.rawRefusal(`/runs/${RUN}/files/damaged.bin`, 500, "internal_error");
  t.equal(damaged.retryable, true, "bytes that are not what was stored are never sent");
  t.equal(cell.openFiles, 0, "every file is closed again");
});

t.test("GET /sensor/frames/{frame_id}: every field", async (t) => {
  const { client } = await filled(t);
  t.strictSame(await client.get("/sensor/frames/{frame_id}", { path: { frame_id: FRAME } }), {
    id: FRAME,
    session_id: "session-1",
    sequence_number: 1,
    frame_type: "heightmap",
    file_path: `/sensor/frames/${FRAME}/file.npy`,
    file_size_bytes: NPY_BYTES,
    width: 5,
    height: 60_004,
    joint_positions: [0, 1.5, -2],
    tcp_position: { x: 1 },
    capture_timestamp: "2026-01-31T12:00:11.123456Z",
    metadata: { gain: 2 },
    created_at: at(11),
    run_id: RUN,
    step_index: 2,
    sensor_id: "ljx",
    geometry: {
      ...{ x_pitch_mm: 0.1, y_pitch_mm: 0.2, x_origin_mm: 0, y_origin_mm: 0 },
      height: { dtype: "u16", scale_mm: 0.01, offset_mm: -5, invalid: [0] },
      luminance: { dtype: "u8", bits: 8 },
    },
  });
  t.match(await client.get("/sensor/frames/{frame_id}", { path: { frame_id: OPEN_FRAME } }), {
    file_size_bytes: null,
    height: null,
    joint_positions: null,
    tcp_position: null,
    metadata: null,
  });
  for (const frame of [UNKNOWN, "x", "%zz", RUN]) {
    for (const path of ["", "/files", "/file.npy"])
      await client.rawRefusal(`/sensor/frames/${frame}${path}`, 404, "frame_not_found");
  }
});

t.test("GET /sensor/frames/{frame_id}/files and file.npy", async (t) => {
  const { client, cell } = await filled(t);
  t.strictSame(await client.get("/sensor/frames/{frame_id}/files", { path: { frame_id: FRAME } }), {
    frame_id: FRAME,
    session_id: "session-1",
    available_formats: ["npy"],
    files: {
      npy: {
        href: `${BASE}/sensor/frames/${FRAME}/file.npy`,
        content_type: "application/octet-stream",
        size_in_bytes: NPY_BYTES,
      },
    },
  });
  const npy = await client.raw("GET", `/sensor/frames/${FRAME}/file.npy`);
  t.equal(npy.headers["content-type"], "application/octet-stream");
  t.equal(npy.headers["content-disposition"], `attachment; filename="frame-${FRAME}.npy"`);
  t.equal(
    npy.body.subarray(0, 128).toString("latin1"),
    `${`\x93NUMPY\x01\0\x76\0{'descr': '<u2', 'fortran_order': False, 'shape': (60004, 5), }`.padEnd(127)}\n`,
  );
  t.ok(npy.body.subarray(128).equals(NPY_BODY), "height rows only, in order, untouched");
  t.ok(
    npy.body.equals((await client.raw("GET", `/runs/${RUN}/files/frame-${FRAME}.npy`)).body),
    "the manifest's file is the same",
  );
  const captures = cell.files.get(`${RUN}/capture`) as Uint8Array;
  // The last height row but one; the batch that it lies in begins with the first bytes that are read.
  const at = 64 + (BATCHES[0]?.stored.length ?? 0) + 8 + (BATCHES[1]?.stored.length ?? 0) + 8 + 59_998 * 10;
  captures[at] = (captures[at] ?? 0) ^ 1;
  const damaged = await client.refusal("get", "/sensor/frames/{frame_id}/file.npy", 500, "internal_error", {
    path: { frame_id: FRAME },
  });
  t.match(damaged.params, { cause: "capture_damaged" }, "nothing of a damaged batch is sent");
  captures[at] = (captures[at] ?? 0) ^ 1;
  t.equal((await client.raw("GET", `/sensor/frames/${FRAME}/file.npy`)).body.length, NPY_BYTES);
  for (const frame of [OPEN_FRAME, REMOVED_FRAME]) {
    const listed = await client.get("/sensor/frames/{frame_id}/files", { path: { frame_id: frame } });
    t.strictSame([listed.available_formats, listed.files], [[], {}]);
    const { params, retryable } = await client.refusal(
      "get",
      "/sensor/frames/{frame_id}/file.npy",
      404,
      "format_not_available",
      { path: { frame_id: frame } },
    );
    t.strictSame(params, { frame_id: frame, format: "npy", available_formats: [] });
    t.equal(retryable, frame === OPEN_FRAME, "what was removed does not come back");
  }
  await client.rawRefusal(`/sensor/frames/${FRAME}/file.stl`, 404, "format_not_available");
  await client.rawRefusal(`/sensor/frames/${FRAME}/stl`, 404, "route_not_found");
  t.equal(cell.openFiles, 0);
});

t.test("GET /health: the rollup and its status", async (t) => {
  const { client, cell } = await filled(t);
  const row = { id: null, detail: null, enabled: null, required: true };
  cell.healthRows = [{ ...row, key: "log", status: "healthy" }];
  t.strictSame(await client.get("/health"), {
    status: "healthy",
    components: { log: { status: "healthy", id: null, detail: null, enabled: null } },
  });
  const robot = { key: "robot-1", id: "r1", detail: "homed", enabled: true, required: false };
  cell.apply(us(80), { kind: "component_put", row: { ...robot, status: "healthy" } });
  t.match(await client.get("/health"), {
    status: "healthy",
    components: { "robot-1": { status: "healthy", id: "r1", detail: "homed", enabled: true } },
  });
  for (const status of ["degraded", "down", "estopped"] as const) {
    cell.apply(us(81), { kind: "component_put", row: { ...robot, status } });
    t.match(await client.get("/health"), {
      status: "degraded",
      components: { "robot-1": { status } },
    });
  }
  for (const status of ["degraded", "estopped"] as const) {
    cell.apply(us(82), { kind: "component_put", row: { ...robot, status, required: true } });
    t.match(await client.get("/health"), { status: "degraded" });
  }
  cell.apply(us(83), { kind: "component_put", row: { ...robot, status: "down", required: true } });
  const robotDown = await client.answer("get", "/health");
  t.equal(robotDown.status, 503);
  t.match(robotDown.error, { status: "down", components: { "robot-1": { status: "down" } } });
  cell.apply(us(84), { kind: "component_deleted", key: "robot-1" });
  t.match(await client.get("/health"), { status: "healthy" });
  cell.healthRows = [{ ...row, key: "log", status: "down", detail: "disk failed" }];
  const logDown = await client.answer("get", "/health");
  t.equal(logDown.status, 503);
  t.match(logDown.error, { status: "down", components: { log: { detail: "disk failed" } } });
});

t.test("GET /system/version and /livez", async (t) => {
  const { client } = await filled(t);
  t.strictSame(await client.get("/system/version"), { "service-version": FIXTURE_VERSION });
  t.strictSame(await client.get("/livez"), { status: "alive" });
});

t.test("an empty store", async (t) => {
  const cell = new RecordedCell();
  const client = new ContractClient(t, await cell.listen());
  t.teardown(() => cell.close());
  t.strictSame(await client.get("/runs"), {
    runs: [],
    total: 0,
    limit: 50,
    offset: 0,
  });
  t.strictSame(await client.get("/programs"), {
    programs: [],
    total: 0,
    limit: 100,
    offset: 0,
  });
  t.strictSame(await client.get("/runs/active"), { active: false, run: null });
});

t.test("every path answers HEAD as GET, and 405 to all else", async (t) => {
  const { client, port } = await filled(t);
  const paths = [
    "/runs",
    "/runs/active",
    `/runs/${RUN}`,
    `/programs/${PROGRAM}/runs`,
    "/programs",
    `/programs/${PROGRAM}`,
    `/runs/${RUN}/quality-report`,
    `/runs/${RUN}/defects`,
    `/runs/${RUN}/files`,
    `/runs/${RUN}/files/empty.txt`,
    `/sensor/frames/${FRAME}`,
    `/sensor/frames/${FRAME}/files`,
    `/sensor/frames/${FRAME}/file.npy`,
    "/health",
    "/system/version",
    "/openapi.json",
    "/livez",
  ];
  for (const path of paths) {
    const get = await client.raw("GET", path);
    const head = await rawRequest(port, `HEAD ${path} HTTP/1.1\r\nHost: cell:8000\r\n\r\n`, "HEAD");
    t.equal(head?.status, 200, path);
    t.equal(head?.headers["content-length"], String(get.body.length), path);
    t.equal(head?.headers["content-type"], get.headers["content-type"], path);
    for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
      const response = await rawRequest(port, `${method} ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n`);
      t.equal(response?.status, 405, `${method} ${path}`);
      t.equal(response?.headers.allow, "GET, HEAD, OPTIONS");
      t.match(response?.json(), { code: "method_not_allowed", params: { method } });
    }
  }
});
