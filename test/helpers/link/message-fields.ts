export type Fields = Record<string, unknown>;
/** Values that a field takes, and values that it does not, written down from the contract. */
interface Kind {
  good: unknown[];
  bad: unknown[];
}

export const EXAMPLE_ID = "0197a3b2-0000-7abc-8def-000000000001";
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
  good: [EXAMPLE_ID, "00000000-0000-7000-8000-000000000000", "082f79cd-8fff-7fff-bfff-ffffffffffff"],
  bad: [
    ...[
      1,
      null,
      {},
      "",
      "x",
      EXAMPLE_ID.toUpperCase(),
      EXAMPLE_ID.replaceAll("-", ""),
      EXAMPLE_ID.replace("-7", "-4"),
      `${EXAMPLE_ID}\n`,
    ],
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

export function examples(required: Record<string, Kind>, optional: Record<string, Kind>): [Fields, Fields] {
  const first = (kinds: Record<string, Kind>): Fields =>
    Object.fromEntries(Object.entries(kinds).map(([field, kind]) => [field, kind.good[0]]));
  return [first(required), { ...first(required), ...first(optional) }];
}

/** Each way to break a record by one field, with the path of that field. */
export function badRecords(required: Record<string, Kind>, optional: Record<string, Kind>): [Fields, string][] {
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

/** The fields of each message of the cell link, with values that it takes and values that it refuses. */
export const MESSAGES: Record<string, [required: Record<string, Kind>, optional: Record<string, Kind>]> = {
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
