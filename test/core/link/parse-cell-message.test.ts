import { encode } from "@msgpack/msgpack";
import t from "tap";
import { parseCellMessage } from "../../../core/link/parse-cell-message.js";
import { RefusedError } from "../../../core/link/refusal.js";
import { TIME_LIMIT_US } from "../../../core/timestamps.js";
import { decodeBody } from "../../../workers/cell-link/strict-message-pack.js";

type Fields = Record<string, unknown>;
/** Values that a field takes, and values that it does not, written down from the contract. */
interface Kind {
  good: unknown[];
  bad: unknown[];
}

const ID = "0197a3b2-0000-7abc-8def-000000000001";
const notText = [0, true, [], {}];
const text = (longest: number): Kind => ({
  good: ["", "Größe µm 😀", "x".repeat(longest), "😀".repeat(longest)],
  bad: [...notText, null, "x".repeat(longest + 1), "😀".repeat(longest + 1)],
});
const name: Kind = { good: ["a", "x".repeat(255), "__proto__"], bad: [...text(255).bad, ""] };
const longText = text(16_384);
const orNull = (kind: Kind): Kind => ({ good: [...kind.good, null], bad: kind.bad.filter((value) => value !== null) });
const oneOf = (...values: unknown[]): Kind => ({ good: values, bad: ["", "x", `${values[0]} `, 1, null, [values[0]]] });
const bool: Kind = { good: [true, false], bad: [0, 1, "true", null, []] };
const uuid: Kind = {
  good: [ID, "00000000-0000-7000-8000-000000000000", "082f79cd-8fff-7fff-bfff-ffffffffffff"],
  bad: [
    ...[1, null, {}, "", "x", ID.toUpperCase(), ID.replaceAll("-", ""), ID.replace("-7", "-4"), `${ID}\n`],
    // Beyond what a timestamp can show: such a frame would have no created_at.
    ...["082f79cd-9000-7000-8000-000000000000", "ffffffff-ffff-7fff-bfff-ffffffffffff"],
  ],
};
const integer = (least: number, most: number): Kind => ({
  good: [least, most],
  bad: [
    least - 1,
    most + 1,
    least + 0.5,
    String(least),
    null,
    true,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    1e300,
    2 ** 60,
  ],
});
const number: Kind = {
  good: [0, -0, 1.5, -1e308, 5e-324, Number.MAX_SAFE_INTEGER, 2 ** 60],
  bad: [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, "1", null, true, [1]],
};
const positive: Kind = { good: [5e-324, 0.01, 100], bad: [...number.bad, 0, -0, -1] };
const time: Kind = {
  good: ["2026-11-20T19:07:00Z", "2026-11-20T19:07:00.123456Z", "1970-01-01T00:00:00Z", "2255-03-14T15:59:59.999999Z"],
  bad: [
    ...[0, null, new Date(0), "", "2026-11-20", "2026-11-20T19:07:00", "2026-11-20T19:07:00+00:00"],
    ...["2026-11-20T19:07:00.1234567Z", "2026-02-29T00:00:00Z", "1969-12-31T23:59:59Z", "2255-03-14T16:00:00Z"],
    ...["0070-01-01T00:00:00Z"],
  ],
};
const object: Kind = {
  good: [{}, { a: [1, null, { b: "c" }], constructor: 1, toString: "x", "": 0, "a/b~c": -0 }],
  bad: [null, [], "x", 1],
};
const listOf = (item: Kind, longest: number): Kind => ({
  good: [[], item.good, Array(longest).fill(item.good[0])],
  bad: [null, {}, "x", ...item.bad.map((value) => [item.good[0], value]), Array(longest + 1).fill(item.good[0])],
});
const record = (required: Record<string, Kind>, optional: Record<string, Kind>): Kind => {
  const [minimal, complete] = examples(required, optional);
  return { good: [minimal, complete], bad: [null, [], "x", ...badRecords(required, optional).map(([bad]) => bad)] };
};

function examples(required: Record<string, Kind>, optional: Record<string, Kind>): [Fields, Fields] {
  const first = (kinds: Record<string, Kind>): Fields =>
    Object.fromEntries(Object.entries(kinds).map(([field, kind]) => [field, kind.good[0]]));
  return [first(required), { ...first(required), ...first(optional) }];
}

/** Each way to break a record by one field, with the path of that field. */
function badRecords(required: Record<string, Kind>, optional: Record<string, Kind>): [Fields, string][] {
  const [minimal, complete] = examples(required, optional);
  const broken: [Fields, string][] = [[{ ...complete, "un/kn~own": 1 }, "un~1kn~0own"]];
  for (const [field, kind] of [...Object.entries(required), ...Object.entries(optional)]) {
    for (const bad of kind.bad) broken.push([{ ...complete, [field]: bad }, field]);
  }
  for (const field of Object.keys(required)) {
    const { [field]: _, ...rest } = minimal;
    broken.push([rest, field]);
  }
  return broken;
}

const numbers = listOf(number, 64);
const step = record(
  {
    type: oneOf(
      ...["start_session", "move_robot", "capture_frame", "end_session", "wait", "cl_sweep", "move_motor"],
      ...["iv4_program", "srl_read", "ljx_stream_start", "ljx_stream_stop", "safety_gate", "gripper"],
    ),
  },
  {
    name: orNull(text(255)),
    params: object,
    enabled: bool,
    group_id: orNull(text(255)),
    group_name: orNull(text(255)),
    section_id: orNull(text(255)),
    section_name: orNull(text(255)),
  },
);
const check = record(
  { name, status: oneOf("passed", "failed", "warning", "not_evaluated", "error") },
  {
    message: orNull(longText),
    value: orNull(number),
    nominal: orNull(number),
    delta: orNull(number),
    threshold: orNull(number),
    canonical_units: oneOf("mm", "unspecified"),
    metadata: object,
  },
);
const region2d = record({}, { file: orNull(text(255)), bbox: orNull(numbers) });
const region3d = record(
  {},
  {
    file: orNull(text(255)),
    location: orNull(numbers),
    extents: orNull(numbers),
    orientation: orNull(numbers),
    frame: orNull(text(255)),
  },
);
const defect = record(
  {},
  {
    id: orNull(text(255)),
    type: text(255),
    description: orNull(longText),
    region_2d: orNull(region2d),
    region_3d: orNull(region3d),
    confidence: orNull(number),
    severity: orNull(text(255)),
    metadata: object,
  },
);
const program = record(
  { id: uuid, name, status: oneOf("draft", "active", "archived"), steps: listOf(step, 1_000) },
  {
    description: orNull(longText),
    robot_ids: listOf(name, 64),
    sensor_id: orNull(text(255)),
    co_processor: orNull(text(255)),
    pre_hook: orNull(longText),
    post_hook: orNull(longText),
    run_configs: listOf(record({ name }, { metadata: object }), 1_000),
    metadata: orNull(object),
  },
);
program.bad.push(
  ...["run_count", "links", "created_at", "updated_at"].map((field) => ({
    ...(program.good[0] as Fields),
    [field]: null,
  })),
);
const planes = record(
  {
    height: record(
      { dtype: oneOf("u16", "i16", "i32", "f32"), scale_mm: number, offset_mm: number, invalid: listOf(number, 64) },
      {},
    ),
  },
  {
    luminance: orNull(
      record({ dtype: oneOf("u8", "u16"), bits: { good: [8, 10, 12, 16], bad: [0, 9, 8.5, "8", null] } }, {}),
    ),
  },
);
const stepIndex = integer(1, 1_000);

const MESSAGES: Record<string, [required: Record<string, Kind>, optional: Record<string, Kind>]> = {
  "cell.put": [{}, { kiosk_serial_number: orNull(name), unit_system: oneOf("metric", "imperial") }],
  "component.put": [
    { key: name, status: oneOf("healthy", "degraded", "down", "estopped") },
    { id: orNull(name), detail: orNull(longText), enabled: orNull(bool), required: bool },
  ],
  "component.delete": [{ key: name }, {}],
  "program.put": [{ program }, {}],
  "program.delete": [{ id: uuid }, {}],
  "run.create": [
    { id: uuid, program_id: uuid },
    {
      serial_number: orNull(name),
      metadata: orNull(object),
      trace_id: orNull({ good: ["a", "x".repeat(128)], bad: [...notText, "", "x".repeat(129)] }),
      steps: orNull(listOf(step, 1_000)),
    },
  ],
  "run.start": [{ id: uuid }, {}],
  "step.start": [{ run_id: uuid, index: stepIndex }, {}],
  "step.finish": [
    { run_id: uuid, index: stepIndex, status: oneOf("completed", "failed", "skipped") },
    {
      result: orNull({
        good: [
          ...object.good,
          ...uuid.good.map((id) => ({ frame_id: id, free: [1] })),
          { checks: check.good, defects: defect.good },
        ],
        bad: [
          ...object.bad,
          ...uuid.bad.filter((bad) => bad !== null).map((bad) => ({ frame_id: bad })),
          ...check.bad.map((bad) => ({ checks: [bad] })),
          ...defect.bad.map((bad) => ({ defects: [bad] })),
        ],
      }),
      error: orNull(longText),
    },
  ],
  "frame.begin": [
    {
      id: uuid,
      run_id: uuid,
      step_index: stepIndex,
      session_id: name,
      frame_type: name,
      width: integer(1, 16_384),
      height: integer(0, 262_144),
      planes,
      x_pitch_mm: positive,
      y_pitch_mm: positive,
      capture_timestamp: time,
    },
    {
      x_origin_mm: orNull(number),
      y_origin_mm: orNull(number),
      sequence_number: orNull(integer(0, Number.MAX_SAFE_INTEGER)),
      sensor_id: orNull(name),
      joint_positions: orNull(numbers),
      tcp_position: orNull(object),
      metadata: orNull(object),
    },
  ],
  "frame.lines": [{ id: uuid, first_line: integer(0, 262_144), line_count: integer(1, 262_144) }, {}],
  "frame.end": [{ id: uuid }, {}],
  "series.append": [
    {
      run_id: uuid,
      step_index: stepIndex,
      channels: integer(1, 64),
      first_timestamp: time,
      sample_period_us: positive,
      dtype: oneOf("f32", "f64", "i32"),
    },
    { scale: orNull(number), offset: orNull(number), invalid: orNull(numbers) },
  ],
  "check.add": [{ run_id: uuid, check }, {}],
  "defect.add": [{ run_id: uuid, defect }, {}],
  "job.start": [{ run_id: uuid, id: uuid, name }, {}],
  "job.finish": [
    { run_id: uuid, id: uuid, status: oneOf("completed", "failed") },
    { checks: orNull(listOf(check, 10_000)), defects: orNull(listOf(defect, 10_000)), error: orNull(longText) },
  ],
  "file.put": [
    {
      run_id: uuid,
      // What a name may hold is told when the message is decided.
      name: { good: ["a.pdf", "", "../x", "x".repeat(300)], bad: [...notText, null] },
      content_type: {
        good: ["application/pdf", "text/plain; charset=utf-8", "image/svg+xml"],
        bad: [...notText, null, "", "pdf", "a/b\r\nX: y", "a/b; ü", "a b/c", `a/${"x".repeat(254)}`],
      },
    },
    {
      file_type: orNull(oneOf("pointcloud", "image", "array", "measurement", "report")),
      description: orNull(longText),
      step_index: orNull(stepIndex),
      frame_id: orNull(uuid),
    },
  ],
  "event.add": [{ run_id: uuid, event_type: name, data: object }, { timestamp: orNull(time) }],
  "run.finish": [{ id: uuid }, { summary: orNull(longText), results: orNull(object) }],
  "run.fail": [{ id: uuid, error_message: longText }, {}],
  "run.cancel": [{ id: uuid }, { error_message: orNull(longText) }],
};

function refusalOf(body: unknown): { code: string; message: string; params: Fields } | undefined {
  try {
    parseCellMessage(body);
    return undefined;
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    return error.refusal;
  }
}

for (const [type, [required, optional]] of Object.entries(MESSAGES)) {
  t.test(type, async (t) => {
    const [minimal, complete] = examples(required, optional);
    t.same(parseCellMessage({ type, ...minimal }), { type, ...minimal }, "without its optional fields");
    let taken = 0;
    for (const [field, kind] of Object.entries({ ...required, ...optional })) {
      for (const good of kind.good) {
        const refusal = refusalOf({ type, ...complete, [field]: good });
        if (refusal !== undefined)
          t.fail(`${field} should take ${JSON.stringify(good)?.slice(0, 80)}: ${refusal.message}`);
        taken++;
      }
    }
    let refused = 0;
    for (const [bad, field] of badRecords(required, optional)) {
      const refusal = refusalOf({ type, ...bad });
      const what = `${field} ${String(bad[field]).slice(0, 60)}`;
      if (refusal === undefined) {
        t.fail(`should be refused: ${what}`);
        continue;
      }
      const { path, allowed } = refusal.params;
      if (refusal.code !== "invalid_message") t.fail(`${what}: ${refusal.code}`);
      if (typeof path !== "string" || !(path === `/${field}` || path.startsWith(`/${field}/`)))
        t.fail(`${what}: ${path}`);
      if (!("value" in refusal.params) || allowed === undefined || allowed === null) t.fail(`${what}: params`);
      if (!refusal.message.startsWith(path as string)) t.fail(`${what}: ${refusal.message}`);
      if (JSON.stringify(refusal).length > 2_000)
        t.fail(`${what}: a refusal of ${JSON.stringify(refusal).length} characters`);
      // A refusal is a record of the log: it must survive the way there.
      encode(refusal);
      refused++;
    }
    t.ok(refused > 0, `takes ${taken} values, refuses ${refused}`);
  });
}

t.test("every message of workers/cell-link/README.md is in the table above", async (t) => {
  t.equal(Object.keys(MESSAGES).length, 22);
  const refusal = refusalOf({ type: "x" });
  t.same(refusal?.params.allowed, Object.keys(MESSAGES));
});

t.test("what is no message at all", async (t) => {
  for (const body of [
    null,
    undefined,
    1,
    "run.start",
    [],
    [1n],
    1n,
    new Map(),
    new Date(0),
    new Uint8Array(3),
    Symbol("x"),
  ]) {
    t.match(refusalOf(body), { code: "invalid_message", params: { path: "", allowed: "a map with string keys" } });
  }
  for (const type of [
    undefined,
    null,
    1,
    "",
    "run",
    "run.start ",
    "__proto__",
    "constructor",
    "toString",
    ["run.start"],
  ]) {
    t.match(refusalOf({ type, id: ID }), { code: "invalid_message", params: { path: "/type" } }, String(type));
  }
  t.match(refusalOf({ id: ID }), { params: { path: "/type", value: null } });
});

t.test("a refusal names the field, what came and what is allowed, in bounds", async (t) => {
  const key = "k".repeat(1 << 20);
  for (const body of [
    { type: "run.start", id: ID, [key]: 1 },
    { type: "event.add", run_id: ID, event_type: key, data: {} },
    { type: key },
  ]) {
    const refusal = refusalOf(body);
    t.equal(refusal?.code, "invalid_message");
    t.ok(JSON.stringify(refusal).length < 4_000, `${JSON.stringify(refusal).length} characters`);
  }
  t.same(refusalOf({ type: "step.start", run_id: ID, index: 0 }), {
    code: "invalid_message",
    message: "/index must be >= 1",
    params: { path: "/index", value: 0, allowed: ">= 1" },
  });
  t.same(refusalOf({ type: "run.start", id: "R1" })?.params, {
    path: "/id",
    value: "R1",
    allowed: "a UUIDv7 in lower case",
  });
  t.same(refusalOf({ type: "run.start" })?.params, {
    path: "/id",
    value: null,
    allowed: "present: the field is required",
  });
  t.same(refusalOf({ type: "cell.put", unit_system: "SI" })?.params, {
    path: "/unit_system",
    value: "SI",
    allowed: ["metric", "imperial"],
  });
  t.match(refusalOf({ type: "program.delete", id: "ffffffff-ffff-7fff-bfff-ffffffffffff" })?.params, {
    allowed: /before 2255-03-14T16:00:00.000000Z/,
  });
  t.ok(TIME_LIMIT_US < Number.MAX_SAFE_INTEGER);
});

t.test("hostile keys over the link: never stored, never a prototype", async (t) => {
  // {"type": "event.add", …, "data": {"__proto__": {"polluted": true}}} as MessagePack, which no JavaScript encoder writes.
  const body = encode({ type: "event.add", run_id: ID, event_type: "x", data: { __prot0__: { polluted: true } } });
  const at = Buffer.from(body.buffer, body.byteOffset, body.length).indexOf("__prot0__");
  body[at + 6] = "o".charCodeAt(0);
  const decoded = decodeBody(body);
  t.notOk(decoded.ok, "__proto__ stops at the reader of bodies");
  t.equal(({} as Fields).polluted, undefined);
  for (const key of ["constructor", "prototype", "hasOwnProperty", "toJSON", "valueOf", "length", "then"]) {
    const message = { type: "event.add", run_id: ID, event_type: "x", data: { [key]: { [key]: key } } };
    const read = decodeBody(encode(message));
    t.same(read, { ok: true, body: message }, key);
    t.same(read.ok && parseCellMessage(read.body), message);
  }
});

t.test("an unknown field is refused with the value that came", async (t) => {
  const id = "01a1fab0-9446-7269-a9a8-e9146513270e";
  t.match(refusalOf({ type: "run.start", id, speed: 5 }), {
    params: { path: "/speed", value: 5, allowed: /type, id/ },
  });
});
