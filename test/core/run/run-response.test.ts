import t from "tap";
import { frameFilesResponse, frameResponse } from "../../../core/capture/frame-response.js";
import type { CellMessage } from "../../../core/link/cell-message-schema.js";
import { endRun, openWork } from "../../../core/run/run-end.js";
import { manifestResponse, runResponse } from "../../../core/run/run-response.js";
import type { RunState } from "../../../core/run/run-state.js";
import { formatTimeUs } from "../../../core/timestamps.js";
import { FRAME_ID, idOf, JOB_ID, PROGRAM, PROGRAM_ID, RUN_ID, stateWithRun } from "../../helpers/link/cell-messages.js";
import { listOf } from "../../helpers/list-of.js";
import { PlainState } from "../../helpers/recorder/plain-state.js";

function runOf(state: PlainState, id = RUN_ID): RunState {
  return state.runs.get(id) as RunState;
}

function send(state: PlainState, message: CellMessage, payloadBytes = 0): void {
  const decision = state.send(message, payloadBytes);
  if ("refusal" in decision) throw new Error(decision.refusal.message);
}

t.test("a run that has nothing yet: nulls, empty lists and maps, nothing absent", async (t) => {
  const state = new PlainState();
  send(state, PROGRAM);
  send(state, { type: "run.create", id: RUN_ID, program_id: PROGRAM_ID, steps: [{ type: "wait" }] });
  const pending = { index: 1, type: "wait", name: null, status: "pending", started_at: null, completed_at: null };
  t.strictSame(runResponse(runOf(state), ""), {
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
    ...{ created_at: formatTimeUs(state.timeUs), updated_at: formatTimeUs(state.timeUs) },
    links: {
      self: { href: `/runs/${RUN_ID}`, method: "GET" },
      program: { href: `/programs/${PROGRAM_ID}`, method: "GET" },
      ...{ cancel: null, websocket: { href: `/runs/${RUN_ID}/live`, method: "GET" } },
    },
  });
  t.equal(runResponse(runOf(state), "https://cell").links.websocket?.href, `wss://cell/runs/${RUN_ID}/live`);
});

t.test("steps: several running, skipped and cancelled ones are all somewhere, once", async (t) => {
  const state = stateWithRun("running");
  send(state, { type: "step.start", run_id: RUN_ID, index: 3 });
  send(state, { type: "step.finish", run_id: RUN_ID, index: 2, status: "skipped" });
  const { steps, progress } = runResponse(runOf(state), "");
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

t.test("an event has its own time, or that of its record", async (t) => {
  const state = stateWithRun("running");
  const event = { type: "event.add", run_id: RUN_ID, event_type: "note", data: {} } as const;
  send(state, { ...event, timestamp: "2026-11-20T19:07:00.25Z" });
  send(state, event);
  t.strictSame(
    runResponse(runOf(state), "").event_log.map(({ timestamp }) => timestamp),
    ["2026-11-20T19:07:00.250000Z", formatTimeUs(state.timeUs)],
  );
});

t.test("frames: open and incomplete", async (t) => {
  for (const [declared, height] of [
    [4, 4],
    [0, null],
  ] as const) {
    const more = { sensor_id: "head-1", x_origin_mm: -40, y_origin_mm: 7.5 };
    const open = stateWithRun("running", { height: declared, ...more });
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

t.test("endRun: what is open is closed as the status asks, and the run it came from stays as it was", async (t) => {
  const cases = [
    ["failed", ["failed", "cancelled", "cancelled"]],
    ["cancelled", ["cancelled", "cancelled", "cancelled"]],
    ["completed", ["cancelled", "cancelled", "cancelled"]],
  ] as const;
  for (const [status, steps] of cases) {
    const state = stateWithRun("running");
    const append = { type: "series.append", run_id: RUN_ID, step_index: 2, channels: 1, dtype: "f32" } as const;
    send(state, { ...append, first_timestamp: "2026-11-20T19:07:00Z", sample_period_us: 1 }, 4);
    const run = runOf(state);
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
  const state = stateWithRun("running");
  let last = runOf(state).updatedAtUs;
  for (const message of [
    { type: "event.add", run_id: RUN_ID, event_type: "x", data: {} },
    { type: "check.add", run_id: RUN_ID, check: { name: "c", status: "passed" } },
    { type: "job.start", run_id: RUN_ID, id: idOf(31), name: "j" },
    { type: "step.start", run_id: RUN_ID, index: 2 },
    { type: "run.finish", id: RUN_ID },
    { type: "file.put", run_id: RUN_ID, name: "late.pdf", content_type: "a/b" },
  ] satisfies CellMessage[]) {
    send(state, message);
    t.ok(runOf(state).updatedAtUs > last && runOf(state).updatedAtUs === state.timeUs, message.type);
    last = runOf(state).updatedAtUs;
  }
});
