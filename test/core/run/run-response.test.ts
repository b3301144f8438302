import t from "tap";
import { frameFilesResponse, frameResponse } from "../../../core/capture/frame-response.js";
import type { CellMessage } from "../../../core/link/cell-message-schema.js";
import { programResponse } from "../../../core/run/program-response.js";
import { endRun, openWork } from "../../../core/run/run-end.js";
import {
  defectsResponse,
  manifestResponse,
  qualityReportResponse,
  runResponse,
  runSummaryResponse,
} from "../../../core/run/run-response.js";
import { type RunState, summarizeRun } from "../../../core/run/run-state.js";
import {
  FRAME_ID,
  frameBegin,
  idOf,
  JOB_ID,
  PROGRAM,
  PROGRAM_ID,
  RUN_ID,
  worldWithRun,
} from "../../helpers/link/cell-messages.js";
import { listOf } from "../../helpers/list-of.js";
import { PlainWorld } from "../../helpers/recorder/plain-world.js";

/** The plain world's n-th second: its first message is decided at 1. */
const at = (second: number): string =>
  `${new Date(1_795_200_000_000 + second * 1000).toISOString().slice(0, 19)}.000000Z`;
const BASE = "https://cell.example:8000";

function runOf(world: PlainWorld, id = RUN_ID): RunState {
  return world.runs.get(id) as RunState;
}

function send(world: PlainWorld, message: CellMessage, payloadBytes = 0): void {
  const decision = world.send(message, payloadBytes);
  if ("refusal" in decision) throw new Error(decision.refusal.message);
}

/** One run with something in every field, second by second. */
function fullRun(): PlainWorld {
  const world = new PlainWorld();
  send(world, PROGRAM); // 1
  send(world, {
    ...{ type: "run.create", id: RUN_ID, program_id: PROGRAM_ID, serial_number: "SN/1 ü", trace_id: "trace-1" },
    metadata: { lot: 7 },
  }); // 2
  send(world, { type: "run.start", id: RUN_ID }); // 3
  send(world, { type: "step.start", run_id: RUN_ID, index: 1 }); // 4
  send(world, frameBegin({ height: 0, joint_positions: [0, -1.5], tcp_position: { x: 1 }, metadata: { gain: 2 } })); // 5
  send(world, { type: "frame.lines", id: FRAME_ID, first_line: 0, line_count: 4 }, 36); // 6
  send(world, { type: "frame.end", id: FRAME_ID }); // 7
  const check = { name: "gap", status: "warning" as const, value: 0.1, nominal: 0.2, message: null };
  const result = {
    frame_id: FRAME_ID,
    checks: [check],
    defects: [{ type: "dent", region_2d: { bbox: [1, 2, 3, 4] } }],
  };
  send(world, { type: "step.finish", run_id: RUN_ID, index: 1, status: "completed", result }); // 8
  send(world, { type: "step.start", run_id: RUN_ID, index: 2 }); // 9
  send(world, { type: "step.finish", run_id: RUN_ID, index: 2, status: "failed", error: "no signal" }); // 10
  send(
    world,
    { type: "file.put", run_id: RUN_ID, name: "Prüf bericht?.pdf", content_type: "application/pdf", description: "d" },
    5,
  ); // 11
  const event = { type: "event.add" as const, run_id: RUN_ID, event_type: "note", data: { a: [1] } };
  send(world, { ...event, timestamp: "2026-11-20T19:07:00.25Z" }); // 12
  send(world, { ...event, data: {} }); // 13
  send(world, { type: "step.start", run_id: RUN_ID, index: 3 }); // 14
  return world;
}

const STEPS = {
  completed: [
    {
      ...{ index: 1, type: "capture_frame", name: "top", status: "completed", started_at: at(4), completed_at: at(8) },
      result: {
        frame_id: FRAME_ID,
        checks: [{ name: "gap", status: "warning", value: 0.1, nominal: 0.2, message: null }],
        defects: [{ type: "dent", region_2d: { bbox: [1, 2, 3, 4] } }],
      },
      error: null,
    },
    {
      ...{ index: 2, type: "cl_sweep", name: null, status: "failed", started_at: at(9), completed_at: at(10) },
      ...{ result: null, error: "no signal" },
    },
  ],
  in_progress: {
    ...{ index: 3, type: "gripper", name: null, status: "running", started_at: at(14), completed_at: null },
    ...{ result: null, error: null },
  },
  pending: [],
};
const FILES = [
  {
    ...{ name: `frame-${FRAME_ID}.npy`, type: "array", content_type: "application/octet-stream" },
    ...{ size_in_bytes: 128 + 24, description: null, href: `${BASE}/runs/${RUN_ID}/files/frame-${FRAME_ID}.npy` },
    ...{ step_index: 1, frame_id: FRAME_ID, created_at: at(7), updated_at: at(7), deleted_at: null },
  },
  {
    ...{
      name: "Prüf bericht?.pdf",
      type: "report",
      content_type: "application/pdf",
      size_in_bytes: 5,
      description: "d",
    },
    href: `${BASE}/runs/${RUN_ID}/files/Pr%C3%BCf%20bericht%3F.pdf`,
    ...{ step_index: null, frame_id: null, created_at: at(11), updated_at: at(11), deleted_at: null },
  },
];
const LINKS = {
  self: { href: `${BASE}/runs/${RUN_ID}`, method: "GET" },
  program: { href: `${BASE}/programs/${PROGRAM_ID}`, method: "GET" },
  cancel: null,
  websocket: { href: `wss://cell.example:8000/runs/${RUN_ID}/live`, method: "GET" },
};
const DETAIL = {
  ...{
    id: RUN_ID,
    program_id: PROGRAM_ID,
    status: "running",
    quality_status: "passed",
    trace_id: "trace-1",
    serial_number: "SN/1 ü",
    revision: 1,
  },
  metadata: { lot: 7 },
  progress: { total_steps: 3, completed_steps: 2, current_step: 3 },
  steps: STEPS,
  ...{ started_at: at(3), completed_at: null, error_message: null },
  results: { frame_ids: [FRAME_ID] },
  event_log: [
    { timestamp: "2026-11-20T19:07:00.250000Z", event_type: "note", data: { a: [1] } },
    { timestamp: at(13), event_type: "note", data: {} },
  ],
  webhook_deliveries: [],
  webhook_delivery: { delivered: 0, failed: 0, pending: 0, all_ok: true },
  files: FILES,
  ...{ created_at: at(2), updated_at: at(14) },
  links: LINKS,
};

t.test("run detail: every field of ProgramRunResponse", async (t) => {
  const world = fullRun();
  t.strictSame(runResponse(runOf(world), BASE), DETAIL);
  send(world, { type: "run.finish", id: RUN_ID, summary: "fine", results: { score: 1, constructor: "c" } }); // 15
  const finalizing = runResponse(runOf(world), BASE);
  t.match(finalizing, { status: "finalizing", completed_at: null, updated_at: at(15) });
  t.strictSame(finalizing.results, { score: 1, constructor: "c", frame_ids: [FRAME_ID] });
  world.complete(RUN_ID); // 16
  t.strictSame(runResponse(runOf(world), BASE), {
    ...DETAIL,
    ...{ status: "completed", completed_at: at(16), updated_at: at(16), links: { ...LINKS, websocket: null } },
    progress: { total_steps: 3, completed_steps: 2, current_step: null },
    // A step that was still running when its run ended is under neither of the others.
    steps: {
      ...STEPS,
      in_progress: null,
      pending: [{ ...STEPS.in_progress, status: "cancelled", completed_at: at(16) }],
    },
    results: { score: 1, constructor: "c", frame_ids: [FRAME_ID] },
  });
});

t.test("a run that has nothing yet: nulls, empty lists and maps, nothing absent", async (t) => {
  const world = new PlainWorld();
  send(world, PROGRAM);
  send(world, { type: "run.create", id: RUN_ID, program_id: PROGRAM_ID, steps: [{ type: "wait" }] });
  const pending = { index: 1, type: "wait", name: null, status: "pending", started_at: null, completed_at: null };
  t.strictSame(runResponse(runOf(world), ""), {
    ...{ id: RUN_ID, program_id: PROGRAM_ID, status: "pending", quality_status: null },
    ...{ trace_id: null, serial_number: null, revision: 1 },
    metadata: {},
    progress: { total_steps: 1, completed_steps: 0, current_step: null },
    steps: { completed: [], in_progress: null, pending: [{ ...pending, result: null, error: null }] },
    ...{ started_at: null, completed_at: null, error_message: null },
    results: { frame_ids: [] },
    event_log: [],
    webhook_deliveries: [],
    webhook_delivery: { delivered: 0, failed: 0, pending: 0, all_ok: true },
    files: [],
    ...{ created_at: at(2), updated_at: at(2) },
    links: {
      self: { href: `/runs/${RUN_ID}`, method: "GET" },
      program: { href: `/programs/${PROGRAM_ID}`, method: "GET" },
      ...{ cancel: null, websocket: { href: `/runs/${RUN_ID}/live`, method: "GET" } },
    },
  });
});

t.test("list item: every field of ProgramRunSummaryResponse, and none of the detail's own", async (t) => {
  const world = fullRun();
  send(world, { type: "run.fail", id: RUN_ID, error_message: "collision" }); // 15
  t.strictSame(runSummaryResponse(summarizeRun(runOf(world)), BASE), {
    ...{ id: RUN_ID, program_id: PROGRAM_ID, program_name: "Gearbox cover", status: "failed", quality_status: null },
    progress: { total_steps: 3, completed_steps: 3, current_step: null },
    ...{ serial_number: "SN/1 ü", revision: 1, metadata: { lot: 7 }, started_at: at(3), completed_at: at(15) },
    ...{ error_message: "collision", created_at: at(2), updated_at: at(15) },
    links: { ...LINKS, websocket: null },
  });
});

t.test("steps: several running, skipped and cancelled ones are all somewhere, once", async (t) => {
  const world = worldWithRun("running");
  send(world, { type: "step.start", run_id: RUN_ID, index: 3 });
  send(world, { type: "step.finish", run_id: RUN_ID, index: 2, status: "skipped" });
  const { steps, progress } = runResponse(runOf(world), "");
  t.strictSame(
    steps.completed.map((step) => [step.index, step.status, step.started_at === null]),
    [[2, "skipped", true]],
  );
  t.equal(steps.in_progress?.index, 1);
  t.strictSame(
    steps.pending.map((step) => [step.index, step.status]),
    [[3, "running"]],
  );
  t.strictSame(progress, { total_steps: 3, completed_steps: 1, current_step: 1 });
});

t.test("quality report", async (t) => {
  const world = fullRun();
  const check = { name: "gap", status: "warning", value: 0.1, nominal: 0.2, message: null, canonical_units: "mm" };
  const defects = [{ type: "dent", region_2d: { bbox: [1, 2, 3, 4] } }];
  const report = { status: "passed", final: false, checks: [check], defects, summary: null };
  t.strictSame(qualityReportResponse(runOf(world)), { run_id: RUN_ID, quality_report: report }, "while it runs");
  t.strictSame(defectsResponse(runOf(world)), { run_id: RUN_ID, defects });
  const angle = { name: "angle", status: "error" as const, value: 12, canonical_units: "unspecified" as const };
  send(world, { type: "check.add", run_id: RUN_ID, check: angle });
  send(world, { type: "run.finish", id: RUN_ID, summary: "hm" });
  t.match(qualityReportResponse(runOf(world)), { quality_report: { status: "indeterminate", final: false } });
  world.complete(RUN_ID);
  t.strictSame(qualityReportResponse(runOf(world)), {
    run_id: RUN_ID,
    quality_report: { ...report, status: "indeterminate", final: true, checks: [check, angle], summary: "hm" },
  });
  for (const status of ["failed", "cancelled"] as const) {
    const ended = endRun(runOf(fullRun()), { status, errorMessage: null, notes: [] }, 1);
    t.strictSame(qualityReportResponse(ended), { run_id: RUN_ID, quality_report: null }, status);
    t.strictSame(defectsResponse(ended), { run_id: RUN_ID, defects }, "its defects stay readable");
  }
  t.strictSame(
    qualityReportResponse(runOf(worldWithRun("completed"))),
    { run_id: RUN_ID, quality_report: null },
    "no checks",
  );
  t.strictSame(defectsResponse(runOf(worldWithRun("pending"))), { run_id: RUN_ID, defects: [] });
});

t.test("manifest: oldest first, relative below an empty base, removed captures stay listed", async (t) => {
  const world = fullRun();
  t.strictSame(manifestResponse(runOf(world), BASE), FILES);
  t.equal(manifestResponse(runOf(world), "")[0]?.href, `/runs/${RUN_ID}/files/frame-${FRAME_ID}.npy`);
  const removed = { ...runOf(world), capturesRemovedAtUs: (1_795_200_000 + 99) * 1_000_000 };
  t.strictSame(manifestResponse(removed, BASE), [{ ...FILES[0], updated_at: at(99), deleted_at: at(99) }, FILES[1]]);
});

t.test("frames: open, complete, incomplete, removed", async (t) => {
  const world = fullRun();
  const [frame] = runOf(world).frames;
  if (frame === undefined) throw new Error("no frame");
  const complete = {
    ...{ id: FRAME_ID, session_id: "s1", sequence_number: 1, frame_type: "profile" },
    ...{ file_path: `/sensor/frames/${FRAME_ID}/file.npy`, file_size_bytes: 152, width: 3, height: 4 },
    ...{ joint_positions: [0, -1.5], tcp_position: { x: 1 }, capture_timestamp: "2026-11-20T19:07:00.500000Z" },
    // From the id: its milliseconds.
    ...{ metadata: { gain: 2 }, created_at: `${new Date(1_795_200_000_020).toISOString().slice(0, 23)}000Z` },
    ...{ run_id: RUN_ID, step_index: 1, sensor_id: null },
    geometry: {
      ...{ x_pitch_mm: 0.1, y_pitch_mm: 0.2, x_origin_mm: 0, y_origin_mm: 0 },
      height: { dtype: "u16", scale_mm: 0.01, offset_mm: -5, invalid: [0] },
      luminance: { dtype: "u8", bits: 8 },
    },
  };
  t.strictSame(frameResponse(runOf(world), frame), complete);
  t.strictSame(frameFilesResponse(runOf(world), frame, BASE), {
    ...{ frame_id: FRAME_ID, session_id: "s1", available_formats: ["npy"] },
    files: {
      npy: {
        href: `${BASE}/sensor/frames/${FRAME_ID}/file.npy`,
        ...{ content_type: "application/octet-stream", size_in_bytes: 152 },
      },
    },
  });
  const removed = { ...runOf(world), capturesRemovedAtUs: 1 };
  t.strictSame(frameFilesResponse(removed, frame, BASE).available_formats, []);
  t.strictSame(frameFilesResponse(removed, frame, BASE).files, {});

  for (const [declared, height] of [
    [4, 4],
    [0, null],
  ] as const) {
    const more = { sensor_id: "head-1", x_origin_mm: -40, y_origin_mm: 7.5 };
    const open = worldWithRun("running", { height: declared, ...more });
    const [openFrame] = runOf(open).frames;
    if (openFrame === undefined) throw new Error("no frame");
    t.match(frameResponse(runOf(open), openFrame), {
      file_size_bytes: null,
      height,
      joint_positions: null,
      tcp_position: null,
      metadata: null,
    });
    t.strictSame(frameFilesResponse(runOf(open), openFrame, "").available_formats, []);
    t.match(frameResponse(runOf(open), openFrame), {
      sensor_id: "head-1",
      geometry: { x_origin_mm: -40, y_origin_mm: 7.5 },
    });
    send(open, { type: "run.fail", id: RUN_ID, error_message: "x" });
    const [incomplete] = runOf(open).frames;
    if (incomplete === undefined) throw new Error("no frame");
    t.match(frameResponse(runOf(open), incomplete), { file_size_bytes: null, height });
    t.strictSame(frameFilesResponse(runOf(open), incomplete, "").available_formats, []);
    t.strictSame(runResponse(runOf(open), "").results, { frame_ids: [FRAME_ID] }, "an incomplete frame is listed");
    t.strictSame(manifestResponse(runOf(open), ""), [], "without formats");
  }
});

t.test("program: as it was put, with counts, times and links", async (t) => {
  const state = {
    document: PROGRAM.program,
    createdAtUs: 1_795_200_000_001_000,
    updatedAtUs: 1_795_200_007_000_000,
    deleted: false,
  };
  t.strictSame(programResponse(state, 3, BASE), {
    ...PROGRAM.program,
    ...{ run_count: 3, created_at: `${new Date(1_795_200_000_001).toISOString().slice(0, 23)}000Z`, updated_at: at(7) },
    links: {
      self: { href: `${BASE}/programs/${PROGRAM_ID}`, method: "GET" },
      runs: { href: `${BASE}/programs/${PROGRAM_ID}/runs`, method: "GET" },
    },
  });
});

t.test("endRun: what is open is closed as the status asks, and the run it came from stays as it was", async (t) => {
  const cases = [
    ["failed", ["failed", "cancelled", "cancelled"]],
    ["cancelled", ["cancelled", "cancelled", "cancelled"]],
    ["completed", ["cancelled", "cancelled", "cancelled"]],
  ] as const;
  for (const [status, steps] of cases) {
    const world = worldWithRun("running");
    const append = { type: "series.append", run_id: RUN_ID, step_index: 2, channels: 1, dtype: "f32" } as const;
    send(world, { ...append, first_timestamp: "2026-11-20T19:07:00Z", sample_period_us: 1 }, 4);
    const run = runOf(world);
    const before = JSON.stringify(run);
    const note = { eventType: "finalize_timeout", data: { jobs: [JOB_ID] } };
    const ended = endRun(run, { status, errorMessage: status === "failed" ? "e" : null, notes: [note] }, 77);
    t.equal(JSON.stringify(run), before);
    t.match(ended, {
      status,
      completedAtUs: 77,
      updatedAtUs: 77,
      errorMessage: status === "failed" ? "e" : null,
      report: null,
    });
    t.strictSame(
      ended.steps.map((step) => step.status),
      steps,
    );
    t.strictSame(
      ended.steps.map((step) => step.completedAtUs),
      [77, null, null],
      "one that never ran ended at no time",
    );
    t.match(ended.frames, listOf({ id: FRAME_ID, status: "incomplete", lines: 1, completedAtUs: null }));
    t.strictSame(ended.frameIds, [FRAME_ID]);
    t.equal(ended.series[0]?.completedAtUs, 77);
    t.strictSame(ended.eventLog, [{ ...note, timestampUs: 77 }]);
    t.strictSame(openWork(run, true), { files: [], jobs: [JOB_ID], frames: [FRAME_ID] });
    t.strictSame(openWork(ended, false), { files: [], jobs: [JOB_ID], frames: [] });
  }
});

t.test("updated_at moves with every change of the run", async (t) => {
  const world = worldWithRun("running");
  let last = runOf(world).updatedAtUs;
  for (const message of [
    { type: "event.add", run_id: RUN_ID, event_type: "x", data: {} },
    { type: "check.add", run_id: RUN_ID, check: { name: "c", status: "passed" } },
    { type: "job.start", run_id: RUN_ID, id: idOf(31), name: "j" },
    { type: "step.start", run_id: RUN_ID, index: 2 },
    { type: "run.finish", id: RUN_ID },
    { type: "file.put", run_id: RUN_ID, name: "late.pdf", content_type: "a/b" },
  ] satisfies CellMessage[]) {
    send(world, message);
    t.ok(runOf(world).updatedAtUs > last && runOf(world).updatedAtUs === world.timeUs, message.type);
    last = runOf(world).updatedAtUs;
  }
});
