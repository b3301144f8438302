import { HEIGHT_DTYPES, LUMINANCE_DTYPES, SERIES_DTYPES } from "../capture/capture.js";
import { COMPONENT_STATUSES } from "../health.js";
import { UUID_V7_PATTERN } from "../identifiers.js";
import type { JsonObject } from "../json/json.js";
import { LIMITS } from "../limits.js";
import { FILE_TYPES } from "../run/manifest.js";
import { PROGRAM_STATUSES, STEP_TYPES } from "../run/program.js";
import { CANONICAL_UNITS, CHECK_STATUSES } from "../run/quality.js";
import { UNIT_SYSTEMS } from "./change.js";

declare const FITS: unique symbol;
/**
 * JSON Schemas of the messages of the cell link, in the protocol's own field names. Unknown fields are refused; free-form values hold what JSON has,
 * because only that is decoded. `T` is the type of what fits the schema.
 */
type Schema<T = unknown> = Record<string, unknown> & { readonly [FITS]?: T };
type Fields = Readonly<Record<string, Schema>>;
type None = Readonly<Record<never, never>>;
type Fits<S> = S extends { readonly [FITS]?: infer T } ? T : never;
type ObjectOf<Required, Optional> = { [Name in keyof Required]: Fits<Required[Name]> } & {
  [Name in keyof Optional]?: Fits<Optional[Name]>;
};

const uuid: Schema<string> = { type: "string", pattern: UUID_V7_PATTERN, format: "uuid-time" };
const text = (maxLength: number, minLength = 0): Schema<string> => ({ type: "string", minLength, maxLength });
const nullable = <T>(schema: Schema<T>): Schema<T | null> => {
  const allowsNull = { ...schema, type: [schema.type, "null"] };
  return "enum" in schema ? { ...allowsNull, enum: [...(schema.enum as unknown[]), null] } : allowsNull;
};
const oneOf = <const Value extends string>(values: readonly Value[]): Schema<Value> => ({
  type: "string",
  enum: [...values],
});
const integer = (minimum: number, maximum: number): Schema<number> => ({ type: "integer", minimum, maximum });
const list = <T>(items: Schema<T>, maxItems: number): Schema<T[]> => ({ type: "array", items, maxItems });
const object = <Required extends Fields, Optional extends Fields = None>(
  required: Required,
  optional?: Optional,
): Schema<ObjectOf<Required, Optional>> => ({
  type: "object",
  properties: { ...required, ...optional },
  required: Object.keys(required),
  additionalProperties: false,
});

const name = text(LIMITS.nameCharacters, 1);
const message = text(LIMITS.messageCharacters);
const number: Schema<number> = { type: "number" };
const positive: Schema<number> = { type: "number", exclusiveMinimum: 0 };
const flag: Schema<boolean> = { type: "boolean" };
const free: Schema<JsonObject> = { type: "object" };
const timestamp: Schema<string> = { type: "string", format: "utc-timestamp" };
const stepIndex = integer(1, LIMITS.stepsPerProgram);
const numbers = list(number, 64);

const programStep = object(
  { type: oneOf(STEP_TYPES) },
  {
    name: nullable(text(LIMITS.nameCharacters)),
    params: free,
    enabled: flag,
    group_id: nullable(text(LIMITS.nameCharacters)),
    group_name: nullable(text(LIMITS.nameCharacters)),
    section_id: nullable(text(LIMITS.nameCharacters)),
    section_name: nullable(text(LIMITS.nameCharacters)),
  },
);
const steps = list(programStep, LIMITS.stepsPerProgram);

const check = object(
  { name, status: oneOf(CHECK_STATUSES) },
  {
    message: nullable(message),
    value: nullable(number),
    nominal: nullable(number),
    delta: nullable(number),
    threshold: nullable(number),
    canonical_units: oneOf(CANONICAL_UNITS),
    metadata: free,
  },
);
const checks = list(check, LIMITS.checksPerRun);

const defect = object(
  {},
  {
    id: nullable(text(LIMITS.nameCharacters)),
    type: text(LIMITS.nameCharacters),
    description: nullable(message),
    region_2d: nullable(object({}, { file: nullable(text(LIMITS.nameCharacters)), bbox: nullable(numbers) })),
    region_3d: nullable(
      object(
        {},
        {
          file: nullable(text(LIMITS.nameCharacters)),
          location: nullable(numbers),
          extents: nullable(numbers),
          orientation: nullable(numbers),
          frame: nullable(text(LIMITS.nameCharacters)),
        },
      ),
    ),
    confidence: nullable(number),
    severity: nullable(text(LIMITS.nameCharacters)),
    metadata: free,
  },
);
const defects = list(defect, LIMITS.defectsPerRun);

const program = object(
  { id: uuid, name, status: oneOf(PROGRAM_STATUSES), steps },
  {
    description: nullable(message),
    robot_ids: list(name, LIMITS.robotsPerProgram),
    sensor_id: nullable(text(LIMITS.nameCharacters)),
    co_processor: nullable(text(LIMITS.nameCharacters)),
    pre_hook: nullable(message),
    post_hook: nullable(message),
    run_configs: list(object({ name }, { metadata: free }), LIMITS.runConfigsPerProgram),
    metadata: nullable(free),
  },
);

const bits: Schema<number> = { type: "integer", enum: [8, 10, 12, 16] };
const planes = object(
  {
    height: object({
      dtype: oneOf(HEIGHT_DTYPES),
      scale_mm: number,
      offset_mm: number,
      invalid: list(number, LIMITS.invalidCodes),
    }),
  },
  { luminance: nullable(object({ dtype: oneOf(LUMINANCE_DTYPES), bits })) },
);

/** Free-form, except for the fields that the service reads itself. */
const stepResult: Schema<JsonObject> = { type: "object", properties: { frame_id: nullable(uuid), checks, defects } };
/** It becomes a response header: visible ASCII only. */
const contentType: Schema<string> = {
  type: "string",
  maxLength: LIMITS.contentTypeCharacters,
  pattern: "^[!#$&^_.+A-Za-z0-9-]+/[!#$&^_.+A-Za-z0-9-]+(?: *;[ -~]*)?$",
};
/** `fileNameFault` checks what a name may hold: some of its faults have another code. */
const fileName: Schema<string> = { type: "string" };
const period: Schema<number> = { ...positive, maximum: 86_400_000_000 };

/** The fields of each message: those that it needs, and those that it may have. For the latter null is the same as absent. */
const MESSAGE_FIELDS = {
  "cell.put": [{}, { kiosk_serial_number: nullable(name), unit_system: oneOf(UNIT_SYSTEMS) }],
  "component.put": [
    { key: name, status: oneOf(COMPONENT_STATUSES) },
    {
      id: nullable(name),
      detail: nullable(message),
      enabled: nullable(flag),
      required: flag,
    },
  ],
  "component.delete": [{ key: name }],
  "program.put": [{ program }],
  "program.delete": [{ id: uuid }],
  "run.create": [
    { id: uuid, program_id: uuid },
    {
      serial_number: nullable(text(LIMITS.serialNumberCharacters, 1)),
      metadata: nullable(free),
      trace_id: nullable(text(LIMITS.traceIdCharacters, 1)),
      steps: nullable(steps),
    },
  ],
  "run.start": [{ id: uuid }],
  "step.start": [{ run_id: uuid, index: stepIndex }],
  "step.finish": [
    { run_id: uuid, index: stepIndex, status: oneOf(["completed", "failed", "skipped"]) },
    {
      result: nullable(stepResult),
      error: nullable(message),
    },
  ],
  "frame.begin": [
    {
      id: uuid,
      run_id: uuid,
      step_index: stepIndex,
      session_id: name,
      frame_type: name,
      width: integer(1, LIMITS.frameWidth),
      height: integer(0, LIMITS.frameLines),
      planes,
      x_pitch_mm: positive,
      y_pitch_mm: positive,
      capture_timestamp: timestamp,
    },
    {
      x_origin_mm: nullable(number),
      y_origin_mm: nullable(number),
      sequence_number: nullable(integer(0, Number.MAX_SAFE_INTEGER)),
      sensor_id: nullable(name),
      joint_positions: nullable(numbers),
      tcp_position: nullable(free),
      metadata: nullable(free),
    },
  ],
  "frame.lines": [{ id: uuid, first_line: integer(0, LIMITS.frameLines), line_count: integer(1, LIMITS.frameLines) }],
  "frame.end": [{ id: uuid }],
  "series.append": [
    {
      run_id: uuid,
      step_index: stepIndex,
      channels: integer(1, LIMITS.channelsPerSeries),
      first_timestamp: timestamp,
      sample_period_us: period,
      dtype: oneOf(SERIES_DTYPES),
    },
    { scale: nullable(number), offset: nullable(number), invalid: nullable(list(number, LIMITS.invalidCodes)) },
  ],
  "check.add": [{ run_id: uuid, check }],
  "defect.add": [{ run_id: uuid, defect }],
  "job.start": [{ run_id: uuid, id: uuid, name }],
  "job.finish": [
    { run_id: uuid, id: uuid, status: oneOf(["completed", "failed"]) },
    { checks: nullable(checks), defects: nullable(defects), error: nullable(message) },
  ],
  "file.put": [
    { run_id: uuid, name: fileName, content_type: contentType },
    {
      // The type in the manifest; `type` is already the message's own type. If absent, it follows from the content type.
      file_type: nullable(oneOf(FILE_TYPES)),
      description: nullable(message),
      step_index: nullable(stepIndex),
      frame_id: nullable(uuid),
    },
  ],
  "event.add": [{ run_id: uuid, event_type: name, data: free }, { timestamp: nullable(timestamp) }],
  "run.finish": [{ id: uuid }, { summary: nullable(message), results: nullable(free) }],
  "run.fail": [{ id: uuid, error_message: message }],
  "run.cancel": [{ id: uuid }, { error_message: nullable(message) }],
} as const satisfies Record<string, readonly [required: Fields, optional?: Fields]>;

type MessageFields = typeof MESSAGE_FIELDS;
export type CellMessageType = keyof MessageFields;
type OptionalOf<F> = F extends readonly [unknown, infer Optional] ? Optional : None;
type CellMessages = {
  [Type in CellMessageType]: { type: Type } & ObjectOf<MessageFields[Type][0], OptionalOf<MessageFields[Type]>>;
};
/** The messages of these types. */
export type CellMessageOf<Type extends CellMessageType> = CellMessages[Type];
export type CellMessage = CellMessageOf<CellMessageType>;

export const CELL_MESSAGE_SCHEMAS = Object.fromEntries(
  Object.entries<readonly [required: Fields, optional?: Fields]>(MESSAGE_FIELDS).map(([type, [required, optional]]) => [
    type,
    object({ type: { type: "string", const: type }, ...required }, optional),
  ]),
) as Record<CellMessageType, Schema>;
