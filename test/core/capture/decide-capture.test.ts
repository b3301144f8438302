import t from "tap";
import { LIMITS } from "../../../core/limits.js";
import type { CellMessage } from "../../../core/link/cell-message-schema.js";
import {
  FRAME_ID,
  frameBegin,
  idOf,
  RUN_ID,
  refusalOf,
  runOf,
  stateWithRun,
} from "../../helpers/link/cell-messages.js";
import { listOf } from "../../helpers/list-of.js";

t.test("frames", async (t) => {
  const lines = (first: number, count: number): CellMessage => ({
    type: "frame.lines",
    id: FRAME_ID,
    first_line: first,
    line_count: count,
  });
  const state = stateWithRun("running");
  t.match(refusalOf(state, frameBegin()), { code: "already_exists", params: { path: "/id", value: FRAME_ID } });
  t.match(refusalOf(state, frameBegin({ id: idOf(21), step_index: 9 })), {
    code: "not_found",
    params: { path: "/step_index", value: 9, allowed: "1 to 3" },
  });
  t.match(refusalOf(state, lines(0, 1), 9), {
    code: "out_of_sequence",
    params: { path: "/first_line", value: 0, allowed: 1 },
  });
  t.match(refusalOf(state, lines(2, 1), 9), { code: "out_of_sequence", params: { allowed: 1 } });
  t.match(refusalOf(state, lines(1, 4), 36), {
    code: "too_large",
    params: { path: "/line_count", value: 4, allowed: 3 },
  });
  t.match(refusalOf(state, { type: "frame.end", id: FRAME_ID }), {
    code: "size_mismatch",
    params: { value: 1, allowed: 4 },
  });
  t.equal(refusalOf(state, lines(1, 3), 27), undefined);
  t.match(refusalOf(state, lines(4, 1), 9), { code: "too_large", params: { allowed: 0 } });
  t.equal(refusalOf(state, { type: "frame.end", id: FRAME_ID }), undefined);
  t.match(refusalOf(state, { type: "frame.end", id: FRAME_ID }), {
    code: "illegal_transition",
    params: { status: "complete" },
  });
  t.match(refusalOf(state, lines(4, 1), 9), {
    code: "illegal_transition",
    params: { path: "/id", allowed: listOf("open") },
  });
  t.match(refusalOf(state, { type: "frame.end", id: idOf(22) }), { code: "not_found", params: { path: "/id" } });

  state.send(frameBegin({ id: idOf(21), height: 0, sequence_number: null }));
  state.send({ ...lines(0, 700), id: idOf(21) } as CellMessage, 6300);
  t.equal(refusalOf(state, { type: "frame.end", id: idOf(21) }), undefined, "lines not known at the beginning");
  state.send(frameBegin({ id: idOf(22), sequence_number: 77 }));
  state.send(frameBegin({ id: idOf(23) }));
  t.same(
    runOf(state).frames.map((frame) => frame.sequenceNumber),
    [1, 2, 77, 4],
    "position in the run, from 1",
  );
  t.same(runOf(state).frameIds, [FRAME_ID, idOf(21)], "in order of frame.end");

  const many = stateWithRun("running", { height: 0 });
  const frame = runOf(many).frames[0];
  if (frame !== undefined) frame.lines = LIMITS.frameLines;
  t.match(refusalOf(many, lines(LIMITS.frameLines, 1), 9), { code: "too_large", params: { allowed: 0 } });
});

t.test("coordinates: all of a frame are finite as f32", async (t) => {
  const begin = (more: object): CellMessage => frameBegin({ id: idOf(21), width: 3, height: 2, ...more });
  const refused: [more: object, path: string, value: number][] = [
    [{ x_pitch_mm: 1.8e38 }, "/x_pitch_mm", 1.8e38],
    [{ x_pitch_mm: 1e308 }, "/x_pitch_mm", 1e308],
    [{ y_pitch_mm: 3.5e38 }, "/y_pitch_mm", 3.5e38],
    [{ height: 0, y_pitch_mm: 1.3e33 }, "/y_pitch_mm", 1.3e33],
    [{ x_origin_mm: 1e39 }, "/x_origin_mm", 1e39],
    [{ y_origin_mm: -1e300 }, "/y_origin_mm", -1e300],
    [{ y_origin_mm: 3e38, y_pitch_mm: 1e38 }, "/y_pitch_mm", 1e38],
  ];
  for (const [more, path, value] of refused) {
    t.match(refusalOf(stateWithRun("running"), begin(more)), { code: "invalid_message", params: { path, value } });
  }
  for (const more of [
    { x_pitch_mm: 1.7e38, y_pitch_mm: 3.4e38 },
    { height: 0, y_pitch_mm: 1.2e33 },
    { x_origin_mm: -3e38, x_pitch_mm: 3e38 },
    { x_origin_mm: null, x_pitch_mm: 5e-324 },
  ]) {
    t.equal(refusalOf(stateWithRun("running"), begin(more)), undefined, JSON.stringify(more));
  }
});

t.test("planes: codes that the dtype cannot hold, bits that it has not", async (t) => {
  const planes = (dtype: "u16" | "i16" | "i32" | "f32", invalid: number[]): CellMessage =>
    frameBegin({ id: idOf(21), planes: { height: { dtype, scale_mm: 1, offset_mm: 0, invalid } } });
  const ranges = { u16: [0, 65_535], i16: [-32_768, 32_767], i32: [-(2 ** 31), 2 ** 31 - 1] } as const;
  for (const [dtype, [least, most]] of Object.entries(ranges) as ["u16", readonly [number, number]][]) {
    t.equal(refusalOf(stateWithRun("running"), planes(dtype, [least, most])), undefined, dtype);
    for (const code of [least - 1, most + 1, 0.5]) {
      t.match(refusalOf(stateWithRun("running"), planes(dtype, [1, code])), {
        code: "invalid_message",
        params: { path: "/planes/height/invalid/1", value: code, allowed: `an integer from ${least} to ${most}` },
      });
    }
  }
  t.equal(refusalOf(stateWithRun("running"), planes("f32", [-99.5, 1e300])), undefined);
  const luminance = (dtype: "u8" | "u16", bits: number): CellMessage =>
    frameBegin({ id: idOf(21), planes: { ...frameBegin().planes, luminance: { dtype, bits } } });
  t.match(refusalOf(stateWithRun("running"), luminance("u8", 10)), {
    code: "invalid_message",
    params: { path: "/planes/luminance/bits", value: 10, allowed: 8 },
  });
  for (const bits of [8, 10, 12, 16]) t.equal(refusalOf(stateWithRun("running"), luminance("u16", bits)), undefined);
  const state = stateWithRun("running");
  state.send(frameBegin({ id: idOf(21), planes: { ...frameBegin().planes, luminance: null } }));
  t.notOk("luminance" in (runOf(state).frames[1]?.planes ?? {}), "null is none");
});

t.test("series", async (t) => {
  const append = (index: number, more: object = {}): CellMessage => ({
    type: "series.append",
    run_id: RUN_ID,
    step_index: index,
    channels: 3,
    first_timestamp: "2026-11-20T19:07:00.000001Z",
    sample_period_us: 62.5,
    dtype: "i32",
    ...more,
  });
  const state = stateWithRun("running");
  t.equal(refusalOf(state, append(2), 24), undefined, "to a step that is pending");
  t.match(refusalOf(state, append(2, { channels: 2 }), 24), {
    code: "size_mismatch",
    params: { path: "/channels", value: 2, allowed: 3 },
  });
  t.match(refusalOf(state, append(2), 13), {
    code: "size_mismatch",
    params: { path: "payload", allowed: "a multiple of 12" },
  });
  t.match(refusalOf(state, append(2, { invalid: [2 ** 31] }), 12), {
    code: "invalid_message",
    params: { path: "/invalid/0" },
  });
  t.match(refusalOf(state, append(9), 12), { code: "not_found", params: { path: "/step_index" } });
  // The latest time that can be given is 72 days and 16 hours later.
  const late = { first_timestamp: "2255-01-01T00:00:00Z", sample_period_us: 86_400_000_000 };
  t.match(refusalOf(stateWithRun("running"), append(2, late), 12 * 74), {
    code: "invalid_message",
    params: {
      path: "/sample_period_us",
      value: 86_400_000_000,
      allowed: "a period with which all 74 rows are before 2255-03-14T16:00:00.000000Z",
    },
  });
  t.equal(refusalOf(stateWithRun("running"), append(2, late), 12 * 73), undefined, "up to the last");
  t.equal(
    refusalOf(state, append(2, { dtype: "f64", scale: 2, offset: 1, invalid: [-1] }), 48),
    undefined,
    "in another dtype",
  );
  const firstTimestampUs = Date.parse("2026-11-20T19:07:00Z") * 1000 + 1;
  const rows = { rows: 2, firstTimestampUs, samplePeriodUs: 62.5 };
  const plain = { dtype: "i32", valueScale: null, valueOffset: null, invalid: [] };
  const scaled = { dtype: "f64", valueScale: 2, valueOffset: 1, invalid: [-1] };
  const appends = [
    { ...rows, ...plain, offset: 9, lengthBytes: 24, crc32: 10 },
    { ...rows, ...scaled, offset: 33, lengthBytes: 48, crc32: 34 },
  ];
  t.same(
    runOf(state).series.map((one) => [one.stepIndex, one.channels, one.completedAtUs, one.appends]),
    [[2, 3, null, appends]],
  );
  state.send({ type: "step.start", run_id: RUN_ID, index: 2 });
  t.equal(refusalOf(state, append(2), 12), undefined);
  state.send({ type: "step.finish", run_id: RUN_ID, index: 2, status: "failed" });
  t.equal(runOf(state).series[0]?.completedAtUs, state.timeUs, "whole at step.finish");
  t.match(refusalOf(state, append(2), 12), {
    code: "illegal_transition",
    params: { path: "/step_index", status: "failed" },
  });
  state.send(append(3), 12);
  state.send({ type: "step.finish", run_id: RUN_ID, index: 3, status: "skipped" });
  t.match(refusalOf(state, append(3), 12), { code: "illegal_transition", params: { status: "skipped" } });
});

t.test("files", async (t) => {
  const put = (name: string, more: object = {}): CellMessage => ({
    type: "file.put",
    run_id: RUN_ID,
    name,
    content_type: "application/pdf",
    ...more,
  });
  const state = stateWithRun("finalizing");
  t.equal(refusalOf(state, put("a.pdf", { description: "d", step_index: 3, frame_id: FRAME_ID }), 5), undefined);
  t.match(refusalOf(state, put("a.pdf"), 5), { code: "name_taken", params: { path: "/name", value: "a.pdf" } });
  t.match(refusalOf(state, put(`frame-${FRAME_ID}.npy`), 5), { code: "name_taken", params: { path: "/name" } });
  t.match(refusalOf(state, put("step-7-cl_sweep.csv"), 5), { code: "name_taken", params: { path: "/name" } });
  for (const name of ["", "..", "a/b", "x".repeat(256), "a\tb"]) {
    t.match(refusalOf(state, put(name), 5), { code: "invalid_message", params: { path: "/name", value: name } });
  }
  t.match(refusalOf(state, put("b.pdf", { step_index: 9 }), 5), {
    code: "not_found",
    params: { path: "/step_index", value: 9 },
  });
  const types = {
    "image/png": "image",
    "text/csv; header=present": "measurement",
    "application/x-ply": "pointcloud",
    "a/b": "report",
  };
  for (const [contentType, type] of Object.entries(types)) {
    state.send(put(`${type}.x`, { content_type: contentType }), 1);
    const file = runOf(state).files.at(-1);
    t.equal(file?.type, type, `type follows ${contentType}`);
    t.equal(file?.storedIn, type === "report" ? undefined : "captures", "reports lie apart");
  }
  state.send(put("c.x", { file_type: "array", content_type: "image/png" }), 1);
  t.match(runOf(state).files.at(-1), {
    name: "c.x",
    type: "array",
    stepIndex: null,
    frameId: null,
    storedIn: "captures",
    offset: 12,
    lengthBytes: 1,
  });
});
