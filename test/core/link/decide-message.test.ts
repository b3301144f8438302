import t from "tap";
import { LIMITS } from "../../../core/limits.js";
import type { CellMessage } from "../../../core/link/cell-message-schema.js";
import { MESSAGE_REFUSAL_CODES, type Refusal } from "../../../core/link/refusal.js";
import type { RunState } from "../../../core/run/run-state.js";
import {
  type FixtureStatus,
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

const seen = new Set<string>();

function refusalOf(world: PlainWorld, message: CellMessage, payloadBytes = 0): Refusal | undefined {
  const before = JSON.stringify([...world.runs, ...world.programs, ...world.components, world.identity]);
  const decision = world.send(message, payloadBytes);
  if (!("refusal" in decision)) return undefined;
  const after = JSON.stringify([...world.runs, ...world.programs, ...world.components, world.identity]);
  if (before !== after) throw new Error(`${message.type} was refused and changed something`);
  seen.add(decision.refusal.code);
  return decision.refusal;
}

function runOf(world: PlainWorld): RunState {
  return world.runs.get(RUN_ID) as RunState;
}

/** One message of each type about the run, which the fixture's running run accepts. */
const ABOUT_RUN: [CellMessage, payloadBytes: number][] = [
  [{ type: "run.create", id: RUN_ID, program_id: PROGRAM_ID }, 0],
  [{ type: "run.start", id: RUN_ID }, 0],
  [{ type: "step.start", run_id: RUN_ID, index: 2 }, 0],
  [{ type: "step.finish", run_id: RUN_ID, index: 1, status: "completed" }, 0],
  [frameBegin({ id: idOf(21) }), 0],
  [{ type: "frame.lines", id: FRAME_ID, first_line: 1, line_count: 3 }, 27],
  [{ type: "frame.end", id: FRAME_ID }, 0],
  [
    {
      type: "series.append",
      run_id: RUN_ID,
      step_index: 2,
      channels: 2,
      first_timestamp: "2026-11-20T19:07:00Z",
      sample_period_us: 100,
      dtype: "f32",
    },
    16,
  ],
  [{ type: "check.add", run_id: RUN_ID, check: { name: "gap", status: "passed" } }, 0],
  [{ type: "defect.add", run_id: RUN_ID, defect: { type: "dent" } }, 0],
  [{ type: "job.start", run_id: RUN_ID, id: idOf(31), name: "measure" }, 0],
  [{ type: "job.finish", run_id: RUN_ID, id: JOB_ID, status: "completed" }, 0],
  [{ type: "file.put", run_id: RUN_ID, name: "report.pdf", content_type: "application/pdf" }, 12],
  [{ type: "event.add", run_id: RUN_ID, event_type: "note", data: {} }, 0],
  [{ type: "run.finish", id: RUN_ID }, 0],
  [{ type: "run.fail", id: RUN_ID, error_message: "collision" }, 0],
  [{ type: "run.cancel", id: RUN_ID }, 0],
];

/** What may follow what, as workers/cell-link/README.md has it. */
const ACCEPTED: Record<FixtureStatus, readonly string[]> = {
  pending: ["run.start", "run.cancel", "run.fail", "event.add", "file.put"],
  running: ABOUT_RUN.map(([message]) => message.type).filter((type) => type !== "run.create" && type !== "run.start"),
  finalizing: ["frame.lines", "frame.end", "job.finish", "file.put", "event.add", "run.fail"],
  completed: [],
  failed: [],
  cancelled: [],
};

t.test("what may follow what: every message about a run in every status", async (t) => {
  for (const [status, accepted] of Object.entries(ACCEPTED) as [FixtureStatus, string[]][]) {
    for (const [message, payloadBytes] of ABOUT_RUN) {
      // All of its lines are there, so that frame.end has nothing else against it.
      const world = worldWithRun(status, message.type === "frame.end" ? { height: 1 } : {});
      const refusal = refusalOf(world, message, payloadBytes);
      let expected: string | undefined = accepted.includes(message.type) ? undefined : "illegal_transition";
      if (message.type === "run.create") expected = "already_exists";
      // A pending run has no frames, and a frame is found before its run is.
      if (status === "pending" && (message.type === "frame.lines" || message.type === "frame.end"))
        expected = "not_found";
      t.equal(refusal?.code, expected, `${status}: ${message.type}`);
      if (expected === "illegal_transition") {
        const where = Object.keys(ACCEPTED).filter((one) => ACCEPTED[one as FixtureStatus].includes(message.type));
        t.same(refusal?.params.allowed, where, "params say where it is allowed");
        t.match(refusal?.params, { path: "run_id" in message ? "/run_id" : "/id", status: String });
      }
    }
  }
});

t.test("a run that is not there", async (t) => {
  const unknown = idOf(99);
  for (const [message, payloadBytes] of ABOUT_RUN) {
    if (message.type === "run.create") continue;
    const field = "run_id" in message ? "run_id" : "id";
    const refusal = refusalOf(worldWithRun("running"), { ...message, [field]: unknown } as CellMessage, payloadBytes);
    t.match(refusal, { code: "not_found", params: { path: `/${field}`, value: unknown } }, message.type);
  }
});

t.test("a step: pending → running → completed or failed, or pending → skipped", async (t) => {
  type Status = "pending" | "running" | "completed" | "failed" | "skipped";
  const moves = { start: "running", completed: "completed", failed: "failed", skipped: "skipped" } as const;
  const legal: Record<Status, readonly (keyof typeof moves)[]> = {
    pending: ["start", "skipped"],
    running: ["completed", "failed"],
    completed: [],
    failed: [],
    skipped: [],
  };
  const path: Record<Status, readonly (keyof typeof moves)[]> = {
    pending: [],
    running: ["start"],
    completed: ["start", "completed"],
    failed: ["start", "failed"],
    skipped: ["skipped"],
  };
  const message = (move: keyof typeof moves): CellMessage =>
    move === "start"
      ? { type: "step.start", run_id: RUN_ID, index: 3 }
      : { type: "step.finish", run_id: RUN_ID, index: 3, status: move };
  for (const from of Object.keys(path) as Status[]) {
    for (const move of Object.keys(moves) as (keyof typeof moves)[]) {
      const world = worldWithRun("running");
      for (const before of path[from]) world.send(message(before));
      t.equal(runOf(world).steps[2]?.status, from);
      const refusal = refusalOf(world, message(move));
      if (legal[from].includes(move)) {
        t.equal(runOf(world).steps[2]?.status, moves[move], `${from}: ${move}`);
      } else {
        t.match(
          refusal,
          { code: "illegal_transition", params: { path: "/index", value: 3, status: from } },
          `${from}: ${move}`,
        );
      }
    }
  }
  const refusal = refusalOf(worldWithRun("running"), { type: "step.start", run_id: RUN_ID, index: 4 });
  t.match(refusal, { code: "not_found", params: { path: "/index", value: 4, allowed: "1 to 3" } });
});

t.test("several steps run at once", async (t) => {
  const world = worldWithRun("running");
  t.equal(refusalOf(world, { type: "step.start", run_id: RUN_ID, index: 3 }), undefined);
  t.equal(refusalOf(world, { type: "step.start", run_id: RUN_ID, index: 2 }), undefined);
  t.same(
    runOf(world).steps.map((step) => step.status),
    ["running", "running", "running"],
  );
});

t.test("run.create", async (t) => {
  const world = worldWithRun("running");
  const create = (n: number, more: object = {}): CellMessage => ({
    type: "run.create",
    id: idOf(n),
    program_id: PROGRAM_ID,
    ...more,
  });
  t.match(refusalOf(world, create(9)), {
    code: "id_out_of_order",
    params: { path: "/id", value: idOf(9), last_run_id: RUN_ID, allowed: `above ${RUN_ID}` },
  });
  t.match(refusalOf(world, create(11, { program_id: idOf(2) })), {
    code: "not_found",
    params: { path: "/program_id", value: idOf(2) },
  });
  t.equal(refusalOf(world, create(11, { serial_number: "SN1", trace_id: "t", metadata: { a: 1 } })), undefined);
  t.match(world.runs.get(idOf(11)), { revision: 2, serialNumber: "SN1", traceId: "t", metadata: { a: 1 } });
  t.match(world.runs.get(idOf(11)), {
    programName: "Gearbox cover",
    robotId: "r1",
    status: "pending",
    startedAtUs: null,
  });
  t.same(
    world.runs.get(idOf(11))?.steps.map((step) => step.definition.type),
    ["capture_frame", "cl_sweep", "gripper"],
    "the program's enabled steps, in order",
  );
  world.send(create(12, { steps: [{ type: "wait", enabled: false }], serial_number: null }));
  t.same(
    world.runs.get(idOf(12))?.steps.map((step) => step.definition),
    [{ type: "wait", enabled: false }],
    "its own steps",
  );
  t.equal(world.runs.get(idOf(12))?.revision, 1, "without a serial number");
  world.send(create(13, { steps: [] }));
  t.match(refusalOf(world, { type: "run.start", id: idOf(13) }), undefined);
  t.match(refusalOf(world, { type: "step.start", run_id: idOf(13), index: 1 }), {
    params: { allowed: "none: the run has no steps" },
  });
  world.send(create(14, { serial_number: "SN1" }));
  t.equal(
    world.runs.get(idOf(14))?.revision,
    3,
    "revisions count per serial number, over runs that have not ended too",
  );
  world.moreActiveRuns = LIMITS.activeRuns - world.activeRunCount;
  t.match(refusalOf(world, create(15)), { code: "too_large", params: { path: "/id", allowed: LIMITS.activeRuns } });
  world.moreActiveRuns -= 1;
  t.equal(refusalOf(world, create(15)), undefined);
});

t.test("a deleted or replaced program", async (t) => {
  const world = worldWithRun("running");
  world.send({ type: "program.put", program: { ...PROGRAM.program, name: "Other", steps: [] } });
  t.match(runOf(world), { programName: "Gearbox cover" }, "a run keeps the name it was created under");
  t.equal(runOf(world).steps.length, 3);
  t.equal(refusalOf(world, { type: "program.delete", id: PROGRAM_ID }), undefined);
  t.match(refusalOf(world, { type: "program.delete", id: PROGRAM_ID }), { code: "not_found", params: { path: "/id" } });
  t.match(refusalOf(world, { type: "run.create", id: idOf(11), program_id: PROGRAM_ID }), { code: "not_found" });
  t.equal(
    refusalOf(world, { type: "event.add", run_id: RUN_ID, event_type: "x", data: {} }),
    undefined,
    "its runs stay",
  );
});

t.test("cell.put: omitted fields stay, a null is a value", async (t) => {
  const world = new PlainWorld();
  world.send({ type: "cell.put", kiosk_serial_number: "K1" });
  t.same(world.identity, { kioskSerialNumber: "K1", unitSystem: "metric" });
  world.send({ type: "cell.put", unit_system: "imperial" });
  t.same(world.identity, { kioskSerialNumber: "K1", unitSystem: "imperial" });
  world.send({ type: "cell.put" });
  t.same(world.identity, { kioskSerialNumber: "K1", unitSystem: "imperial" });
  world.send({ type: "cell.put", kiosk_serial_number: null });
  t.same(world.identity, { kioskSerialNumber: null, unitSystem: "imperial" });
});

t.test("components", async (t) => {
  const world = new PlainWorld();
  const put = (key: string, more: object = {}): CellMessage => ({
    type: "component.put",
    key,
    status: "healthy",
    ...more,
  });
  t.match(refusalOf(world, { type: "component.delete", key: "plc" }), { code: "not_found", params: { path: "/key" } });
  t.equal(refusalOf(world, put("plc", { id: "p1", detail: "d", enabled: true, required: true })), undefined);
  world.send(put("plc"));
  t.same(
    world.components.get("plc"),
    { key: "plc", status: "healthy", id: null, detail: null, enabled: null, required: false },
    "a put replaces the whole; what it omits is absent",
  );
  for (const key of ["log", "disk", "recorder", "dispatcher", "artefacts"]) {
    t.match(refusalOf(world, put(key)), { code: "name_taken", params: { path: "/key", value: key } }, key);
  }
  t.match(refusalOf(world, put("__proto__")), { code: "invalid_message", params: { path: "/key" } });
  t.equal(refusalOf(world, put("constructor")), undefined);
  world.moreComponents = LIMITS.components - world.componentCount;
  t.match(refusalOf(world, put("one more")), {
    code: "too_large",
    params: { path: "/key", allowed: LIMITS.components },
  });
  t.equal(refusalOf(world, put("plc")), undefined, "one that is there may still change");
  t.equal(refusalOf(world, { type: "component.delete", key: "plc" }), undefined);
  world.morePrograms = LIMITS.programs;
  t.match(refusalOf(world, PROGRAM), { code: "too_large", params: { path: "/program/id", allowed: LIMITS.programs } });
});

t.test("payloads: exact where they are due, none where they are not", async (t) => {
  for (const [message, payloadBytes] of ABOUT_RUN) {
    const world = worldWithRun(
      message.type === "run.start" ? "pending" : "running",
      message.type === "frame.end" ? { height: 1 } : {},
    );
    if (message.type === "run.create") world.runs.clear();
    if (payloadBytes === 0) {
      t.match(
        refusalOf(world, message, 1),
        { code: "size_mismatch", params: { path: "payload", value: 1, allowed: 0 } },
        message.type,
      );
    } else if (message.type === "file.put") {
      t.equal(refusalOf(world, message, 0), undefined, "a file may be empty");
    } else {
      for (const wrong of [0, payloadBytes - 1, payloadBytes + 1]) {
        t.match(
          refusalOf(world, message, wrong),
          { code: "size_mismatch", params: { path: "payload", value: wrong } },
          message.type,
        );
      }
      t.equal(refusalOf(world, message, payloadBytes), undefined);
    }
  }
});

t.test("frames", async (t) => {
  const lines = (first: number, count: number): CellMessage => ({
    type: "frame.lines",
    id: FRAME_ID,
    first_line: first,
    line_count: count,
  });
  const world = worldWithRun("running");
  t.match(refusalOf(world, frameBegin()), { code: "already_exists", params: { path: "/id", value: FRAME_ID } });
  t.match(refusalOf(world, frameBegin({ id: idOf(21), step_index: 9 })), {
    code: "not_found",
    params: { path: "/step_index", value: 9, allowed: "1 to 3" },
  });
  t.match(refusalOf(world, lines(0, 1), 9), {
    code: "out_of_sequence",
    params: { path: "/first_line", value: 0, allowed: 1 },
  });
  t.match(refusalOf(world, lines(2, 1), 9), { code: "out_of_sequence", params: { allowed: 1 } });
  t.match(refusalOf(world, lines(1, 4), 36), {
    code: "too_large",
    params: { path: "/line_count", value: 4, allowed: 3 },
  });
  t.match(refusalOf(world, { type: "frame.end", id: FRAME_ID }), {
    code: "size_mismatch",
    params: { value: 1, allowed: 4 },
  });
  t.equal(refusalOf(world, lines(1, 3), 27), undefined);
  t.match(refusalOf(world, lines(4, 1), 9), { code: "too_large", params: { allowed: 0 } });
  t.equal(refusalOf(world, { type: "frame.end", id: FRAME_ID }), undefined);
  t.match(refusalOf(world, { type: "frame.end", id: FRAME_ID }), {
    code: "illegal_transition",
    params: { status: "complete" },
  });
  t.match(refusalOf(world, lines(4, 1), 9), {
    code: "illegal_transition",
    params: { path: "/id", allowed: listOf("open") },
  });
  t.match(refusalOf(world, { type: "frame.end", id: idOf(22) }), { code: "not_found", params: { path: "/id" } });

  world.send(frameBegin({ id: idOf(21), height: 0, sequence_number: null }));
  world.send({ ...lines(0, 700), id: idOf(21) } as CellMessage, 6300);
  t.equal(refusalOf(world, { type: "frame.end", id: idOf(21) }), undefined, "lines not known at the beginning");
  world.send(frameBegin({ id: idOf(22), sequence_number: 77 }));
  world.send(frameBegin({ id: idOf(23) }));
  t.same(
    runOf(world).frames.map((frame) => frame.sequenceNumber),
    [1, 2, 77, 4],
    "position in the run, from 1",
  );
  t.same(runOf(world).frameIds, [FRAME_ID, idOf(21)], "in order of frame.end");

  const many = worldWithRun("running", { height: 0 });
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
    t.match(refusalOf(worldWithRun("running"), begin(more)), { code: "invalid_message", params: { path, value } });
  }
  for (const more of [
    { x_pitch_mm: 1.7e38, y_pitch_mm: 3.4e38 },
    { height: 0, y_pitch_mm: 1.2e33 },
    { x_origin_mm: -3e38, x_pitch_mm: 3e38 },
    { x_origin_mm: null, x_pitch_mm: 5e-324 },
  ]) {
    t.equal(refusalOf(worldWithRun("running"), begin(more)), undefined, JSON.stringify(more));
  }
});

t.test("planes: codes that the dtype cannot hold, bits that it has not", async (t) => {
  const planes = (dtype: "u16" | "i16" | "i32" | "f32", invalid: number[]): CellMessage =>
    frameBegin({ id: idOf(21), planes: { height: { dtype, scale_mm: 1, offset_mm: 0, invalid } } });
  const ranges = { u16: [0, 65_535], i16: [-32_768, 32_767], i32: [-(2 ** 31), 2 ** 31 - 1] } as const;
  for (const [dtype, [least, most]] of Object.entries(ranges) as ["u16", readonly [number, number]][]) {
    t.equal(refusalOf(worldWithRun("running"), planes(dtype, [least, most])), undefined, dtype);
    for (const code of [least - 1, most + 1, 0.5]) {
      t.match(refusalOf(worldWithRun("running"), planes(dtype, [1, code])), {
        code: "invalid_message",
        params: { path: "/planes/height/invalid/1", value: code, allowed: `an integer from ${least} to ${most}` },
      });
    }
  }
  t.equal(refusalOf(worldWithRun("running"), planes("f32", [-99.5, 1e300])), undefined);
  const luminance = (dtype: "u8" | "u16", bits: number): CellMessage =>
    frameBegin({ id: idOf(21), planes: { ...frameBegin().planes, luminance: { dtype, bits } } });
  t.match(refusalOf(worldWithRun("running"), luminance("u8", 10)), {
    code: "invalid_message",
    params: { path: "/planes/luminance/bits", value: 10, allowed: 8 },
  });
  for (const bits of [8, 10, 12, 16]) t.equal(refusalOf(worldWithRun("running"), luminance("u16", bits)), undefined);
  const world = worldWithRun("running");
  world.send(frameBegin({ id: idOf(21), planes: { ...frameBegin().planes, luminance: null } }));
  t.notOk("luminance" in (runOf(world).frames[1]?.planes ?? {}), "null is none");
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
  const world = worldWithRun("running");
  t.equal(refusalOf(world, append(2), 24), undefined, "to a step that is pending");
  t.match(refusalOf(world, append(2, { channels: 2 }), 24), {
    code: "size_mismatch",
    params: { path: "/channels", value: 2, allowed: 3 },
  });
  t.match(refusalOf(world, append(2), 13), {
    code: "size_mismatch",
    params: { path: "payload", allowed: "a multiple of 12" },
  });
  t.match(refusalOf(world, append(2, { invalid: [2 ** 31] }), 12), {
    code: "invalid_message",
    params: { path: "/invalid/0" },
  });
  t.match(refusalOf(world, append(9), 12), { code: "not_found", params: { path: "/step_index" } });
  // The last time that there is lies 72 days and 16 hours behind.
  const late = { first_timestamp: "2255-01-01T00:00:00Z", sample_period_us: 86_400_000_000 };
  t.match(refusalOf(worldWithRun("running"), append(2, late), 12 * 74), {
    code: "invalid_message",
    params: {
      path: "/sample_period_us",
      value: 86_400_000_000,
      allowed: "rows of times before 2255-03-14T16:00:00.000000Z",
    },
  });
  t.equal(refusalOf(worldWithRun("running"), append(2, late), 12 * 73), undefined, "up to the last");
  t.equal(
    refusalOf(world, append(2, { dtype: "f64", scale: 2, offset: 1, invalid: [-1] }), 48),
    undefined,
    "in another dtype",
  );
  t.same(
    runOf(world).series.map(({ stepIndex, channels, completedAtUs, appends }) => ({
      stepIndex,
      channels,
      completedAtUs,
      appends,
    })),
    [
      {
        stepIndex: 2,
        channels: 3,
        completedAtUs: null,
        appends: [
          {
            ...{
              offset: 9,
              lengthBytes: 24,
              crc32: 10,
              rows: 2,
              dtype: "i32",
              valueScale: null,
              valueOffset: null,
              invalid: [],
            },
            ...{ firstTimestampUs: Date.parse("2026-11-20T19:07:00Z") * 1000 + 1, samplePeriodUs: 62.5 },
          },
          {
            ...{
              offset: 33,
              lengthBytes: 48,
              crc32: 34,
              rows: 2,
              dtype: "f64",
              valueScale: 2,
              valueOffset: 1,
              invalid: [-1],
            },
            ...{ firstTimestampUs: Date.parse("2026-11-20T19:07:00Z") * 1000 + 1, samplePeriodUs: 62.5 },
          },
        ],
      },
    ],
  );
  world.send({ type: "step.start", run_id: RUN_ID, index: 2 });
  t.equal(refusalOf(world, append(2), 12), undefined);
  world.send({ type: "step.finish", run_id: RUN_ID, index: 2, status: "failed" });
  t.equal(runOf(world).series[0]?.completedAtUs, world.timeUs, "whole at step.finish");
  t.match(refusalOf(world, append(2), 12), {
    code: "illegal_transition",
    params: { path: "/step_index", status: "failed" },
  });
  world.send(append(3), 12);
  world.send({ type: "step.finish", run_id: RUN_ID, index: 3, status: "skipped" });
  t.match(refusalOf(world, append(3), 12), { code: "illegal_transition", params: { status: "skipped" } });
});

t.test("files", async (t) => {
  const put = (name: string, more: object = {}): CellMessage => ({
    type: "file.put",
    run_id: RUN_ID,
    name,
    content_type: "application/pdf",
    ...more,
  });
  const world = worldWithRun("finalizing");
  t.equal(refusalOf(world, put("a.pdf", { description: "d", step_index: 3, frame_id: FRAME_ID }), 5), undefined);
  t.match(refusalOf(world, put("a.pdf"), 5), { code: "name_taken", params: { path: "/name", value: "a.pdf" } });
  t.match(refusalOf(world, put(`frame-${FRAME_ID}.npy`), 5), { code: "name_taken", params: { path: "/name" } });
  t.match(refusalOf(world, put("step-7-cl_sweep.csv"), 5), { code: "name_taken", params: { path: "/name" } });
  for (const name of ["", "..", "a/b", "x".repeat(256), "a\tb"]) {
    t.match(refusalOf(world, put(name), 5), { code: "invalid_message", params: { path: "/name", value: name } });
  }
  t.match(refusalOf(world, put("b.pdf", { step_index: 9 }), 5), {
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
    world.send(put(`${type}.x`, { content_type: contentType }), 1);
    const file = runOf(world).files.at(-1);
    t.equal(file?.type, type, `type follows ${contentType}`);
    t.equal(file?.storedIn, type === "report" ? undefined : "captures", "reports lie apart");
  }
  world.send(put("c.x", { file_type: "array", content_type: "image/png" }), 1);
  t.match(runOf(world).files.at(-1), {
    name: "c.x",
    type: "array",
    stepIndex: null,
    frameId: null,
    storedIn: "captures",
    offset: 12,
    lengthBytes: 1,
  });
});

t.test("jobs", async (t) => {
  const world = worldWithRun("running");
  const check = { name: "gap", status: "failed" as const };
  t.match(refusalOf(world, { type: "job.start", run_id: RUN_ID, id: JOB_ID, name: "x" }), {
    code: "already_exists",
    params: { path: "/id", value: JOB_ID },
  });
  t.match(refusalOf(world, { type: "job.finish", run_id: RUN_ID, id: idOf(31), status: "failed" }), {
    code: "not_found",
    params: { path: "/id" },
  });
  world.send({ type: "job.start", run_id: RUN_ID, id: idOf(31), name: "x" });
  world.send({
    type: "job.finish",
    run_id: RUN_ID,
    id: JOB_ID,
    status: "failed",
    checks: [check],
    defects: [{}],
    error: "e",
  });
  t.match(
    runOf(world),
    { checks: { length: 0 }, defects: { length: 0 } },
    "checks and defects of a failed job do not count",
  );
  t.match(runOf(world).jobs[0], { status: "failed", error: "e" });
  t.match(refusalOf(world, { type: "job.finish", run_id: RUN_ID, id: JOB_ID, status: "completed" }), {
    code: "illegal_transition",
    params: { path: "/id", status: "failed", allowed: listOf("running") },
  });
  world.send({ type: "run.finish", id: RUN_ID });
  world.send({ type: "job.finish", run_id: RUN_ID, id: idOf(31), status: "completed", checks: [check], defects: [{}] });
  t.match(
    runOf(world),
    { checks: listOf(check), defects: { length: 1 } },
    "those of one that finishes while finalizing do",
  );
});

t.test("limits of a run", async (t) => {
  const check = { name: "c", status: "passed" as const };
  const cases: [string, (run: RunState) => void, CellMessage, string, number][] = [
    [
      "events",
      (run) => fill(run.eventLog, LIMITS.eventsPerRun),
      { type: "event.add", run_id: RUN_ID, event_type: "x", data: {} },
      "/run_id",
      LIMITS.eventsPerRun,
    ],
    [
      "checks",
      (run) => fill(run.checks, LIMITS.checksPerRun),
      { type: "check.add", run_id: RUN_ID, check },
      "/check",
      LIMITS.checksPerRun,
    ],
    [
      "defects",
      (run) => fill(run.defects, LIMITS.defectsPerRun),
      { type: "defect.add", run_id: RUN_ID, defect: {} },
      "/defect",
      LIMITS.defectsPerRun,
    ],
    [
      "checks of a step",
      (run) => fill(run.checks, LIMITS.checksPerRun - 1),
      {
        type: "step.finish",
        run_id: RUN_ID,
        index: 1,
        status: "completed",
        result: { checks: [check, check] } as never,
      },
      "/result/checks",
      LIMITS.checksPerRun,
    ],
    [
      "defects of a job",
      (run) => fill(run.defects, LIMITS.defectsPerRun),
      { type: "job.finish", run_id: RUN_ID, id: JOB_ID, status: "completed", defects: [{}] },
      "/defects",
      LIMITS.defectsPerRun,
    ],
    [
      "jobs",
      (run) => fill(run.jobs, LIMITS.jobsPerRun),
      { type: "job.start", run_id: RUN_ID, id: idOf(31), name: "x" },
      "/id",
      LIMITS.jobsPerRun,
    ],
    [
      "frames",
      (run) => fill(run.frames, LIMITS.framesPerRun),
      frameBegin({ id: idOf(21) }),
      "/id",
      LIMITS.framesPerRun,
    ],
    [
      "files",
      (run) => fill(run.files, LIMITS.filesPerRun),
      { type: "file.put", run_id: RUN_ID, name: "x", content_type: "a/b" },
      "/name",
      LIMITS.filesPerRun,
    ],
  ];
  for (const [what, prepare, message, path, limit] of cases) {
    const world = worldWithRun("running");
    prepare(runOf(world));
    t.match(refusalOf(world, message), { code: "too_large", params: { path, value: limit + 1, allowed: limit } }, what);
  }
  const world = worldWithRun("running");
  fill(runOf(world).checks, LIMITS.checksPerRun);
  const failed: CellMessage = { type: "job.finish", run_id: RUN_ID, id: JOB_ID, status: "failed", checks: [check] };
  t.equal(refusalOf(world, failed), undefined, "a failed job's checks need no room");

  const batches = worldWithRun("running", { height: 0 });
  fill(runOf(batches).frames[0]?.batches ?? [], LIMITS.batchesPerFrame);
  t.match(refusalOf(batches, { type: "frame.lines", id: FRAME_ID, first_line: 1, line_count: 1 }, 9), {
    code: "too_large",
    params: { path: "/id", allowed: LIMITS.batchesPerFrame },
  });
});

function fill<T>(list: T[], length: number): void {
  const template = (list[0] ?? {}) as T;
  while (list.length < length) list.push(template);
}

t.test("a document that is full takes nothing more, but the run can be brought to its end", async (t) => {
  const world = worldWithRun("running", { height: 1 });
  const data = { text: "x".repeat(1_000_000) };
  let events = 0;
  while (refusalOf(world, { type: "event.add", run_id: RUN_ID, event_type: "x", data }) === undefined) events++;
  t.equal(events, 16, "16 events of a megabyte");
  t.match(refusalOf(world, { type: "event.add", run_id: RUN_ID, event_type: "x", data }), {
    code: "too_large",
    params: { allowed: LIMITS.runDocumentBytes },
  });
  runOf(world).documentBytes = LIMITS.runDocumentBytes;
  for (const [message, payloadBytes] of ABOUT_RUN) {
    if (
      [
        "run.create",
        "run.start",
        "step.start",
        "step.finish",
        "frame.end",
        "run.finish",
        "run.fail",
        "run.cancel",
      ].includes(message.type)
    )
      continue;
    if (message.type === "job.finish") continue;
    // Its one line is there: it would be too large in its lines.
    if (message.type === "frame.lines") continue;
    t.match(refusalOf(world, message, payloadBytes), { code: "too_large" }, message.type);
  }
  t.match(
    refusalOf(world, {
      type: "job.finish",
      run_id: RUN_ID,
      id: JOB_ID,
      status: "completed",
      checks: [{ name: "c", status: "passed" }],
    }),
    { code: "too_large" },
  );
  for (const message of [
    { type: "step.start", run_id: RUN_ID, index: 2 },
    { type: "step.finish", run_id: RUN_ID, index: 1, status: "completed" },
    { type: "frame.end", id: FRAME_ID },
    { type: "job.finish", run_id: RUN_ID, id: JOB_ID, status: "failed" },
    { type: "run.finish", id: RUN_ID },
    { type: "run.fail", id: RUN_ID, error_message: "too much" },
  ] satisfies CellMessage[]) {
    t.equal(refusalOf(world, message), undefined, message.type);
  }
  const lines = worldWithRun("running", { height: 0 });
  runOf(lines).documentBytes = LIMITS.runDocumentBytes;
  t.match(refusalOf(lines, { type: "frame.lines", id: FRAME_ID, first_line: 1, line_count: 1 }, 9), {
    code: "too_large",
  });
});

t.test("run.finish: frame_ids is the service's own", async (t) => {
  t.match(refusalOf(worldWithRun("running"), { type: "run.finish", id: RUN_ID, results: { frame_ids: [] } }), {
    code: "invalid_message",
    params: { path: "/results/frame_ids", allowed: "absent" },
  });
  const world = worldWithRun("running");
  t.equal(refusalOf(world, { type: "run.finish", id: RUN_ID, summary: "s", results: { score: 1 } }), undefined);
  t.match(runOf(world), { status: "finalizing", summary: "s", results: { score: 1 }, finalizingAtUs: world.timeUs });
});

t.test("every refusal code of a message was seen above", async (t) => {
  t.same([...seen].sort(), [...MESSAGE_REFUSAL_CODES].sort());
});

t.test("a run's metadata, which its list entry shows, is bounded by itself", (t) => {
  const world = new PlainWorld();
  world.send(PROGRAM);
  const create = (last: number, characters: number): CellMessage => ({
    type: "run.create",
    id: idOf(last),
    program_id: PROGRAM_ID,
    metadata: { order: "x".repeat(characters) },
  });
  // Heads of the map, of the key and of the text have at most five bytes each, and the key has five.
  const characters = LIMITS.runMetadataBytes - 20;
  t.match(refusalOf(world, create(900, characters + 1)), {
    code: "too_large",
    params: { path: "/metadata", value: LIMITS.runMetadataBytes + 1, allowed: LIMITS.runMetadataBytes },
  });
  t.equal(refusalOf(world, create(901, characters)), undefined);
  t.end();
});
