import { UUID_V7_PATTERN } from "./identifiers.js";
import { FILE_TYPES } from "./manifest.js";
import { CHECK_STATUSES, REPORT_STATUSES } from "./quality.js";
import { REGION_2D, REGION_3D, THRESHOLD } from "./quality-conventions.js";
import { EVENT_NAMES } from "./webhook.js";
import { EVENT_SCHEMA_VERSION } from "./webhook-event.js";

/**
 * JSON Schema (2020-12) of what receivers get, one for each event name: for the OpenAPI document, and for receivers to generate readers
 * from. Objects are open: fields may be added without a new schema_version.
 */
type Schema = Record<string, unknown>;

const STRING: Schema = { type: "string" };
const NULLABLE_STRING: Schema = { type: ["string", "null"] };
const NULLABLE_NUMBER: Schema = { type: ["number", "null"] };
const NULLABLE_INTEGER: Schema = { type: ["integer", "null"] };
const UUID: Schema = { type: "string", pattern: UUID_V7_PATTERN };
const TIME_PATTERN = "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{6}Z$";
const TIME: Schema = { type: "string", format: "date-time", pattern: TIME_PATTERN };
const NULLABLE_TIME: Schema = { ...TIME, type: ["string", "null"] };

function object(required: Record<string, Schema>, optional: Record<string, Schema> = {}): Schema {
  return { type: "object", properties: { ...required, ...optional }, required: Object.keys(required) };
}

const RUN_DATA: Record<string, Schema> = {
  run_id: UUID,
  program_id: UUID,
  program_name: NULLABLE_STRING,
  robot_id: NULLABLE_STRING,
  serial_number: NULLABLE_STRING,
  revision: { type: "integer", minimum: 1 },
  quality_status: {
    enum: [...REPORT_STATUSES, null],
    description:
      "Status of the quality report as it stands; null without one. Of a run that failed or was cancelled it is null.",
  },
  created_at: TIME,
  updated_at: {
    ...TIME,
    description:
      "The run's updated_at in the state that the event tells of, as its detail shows it. Keep the newest per run, and ignore an event whose " +
      "updated_at is older: it was delivered late.",
  },
  started_at: NULLABLE_TIME,
  completed_at: NULLABLE_TIME,
};

const CHECK = object(
  {
    name: STRING,
    status: { enum: [...CHECK_STATUSES] },
    value: NULLABLE_NUMBER,
    nominal: NULLABLE_NUMBER,
    delta: NULLABLE_NUMBER,
    threshold: { ...NULLABLE_NUMBER, description: THRESHOLD },
    unit: { enum: ["mm", "in", null] },
  },
  { message: NULLABLE_STRING, metadata: { type: "object" } },
);

const NULLABLE_NUMBERS: Schema = { type: ["array", "null"], items: { type: "number" } };
const LENGTH_UNIT = "`unit`";

const DEFECT = object(
  {},
  {
    id: NULLABLE_STRING,
    type: STRING,
    description: NULLABLE_STRING,
    region_2d: {
      ...object(
        {},
        {
          file: { ...NULLABLE_STRING, description: REGION_2D.file },
          bbox: { ...NULLABLE_NUMBERS, description: REGION_2D.bbox },
        },
      ),
      type: ["object", "null"],
    },
    region_3d: {
      ...object(
        {
          unit: {
            enum: ["mm", "in"],
            description: "Of location and extents: inches when the cell's unit_system is imperial.",
          },
        },
        {
          file: { ...NULLABLE_STRING, description: REGION_3D.file },
          location: { ...NULLABLE_NUMBERS, description: REGION_3D.location(LENGTH_UNIT) },
          extents: { ...NULLABLE_NUMBERS, description: REGION_3D.extents(LENGTH_UNIT) },
          orientation: { ...NULLABLE_NUMBERS, description: REGION_3D.orientation },
          frame: { ...NULLABLE_STRING, description: REGION_3D.frame },
        },
      ),
      type: ["object", "null"],
    },
    confidence: NULLABLE_NUMBER,
    severity: NULLABLE_STRING,
    metadata: { type: "object" },
  },
);

const FILE = object({
  name: STRING,
  type: { enum: [...FILE_TYPES] },
  content_type: STRING,
  size_in_bytes: NULLABLE_INTEGER,
  description: NULLABLE_STRING,
  href: { type: "string", pattern: "^/runs/", description: "Relative to the base address." },
  step_index: NULLABLE_INTEGER,
  frame_id: NULLABLE_STRING,
  created_at: TIME,
  updated_at: TIME,
  deleted_at: NULLABLE_TIME,
});

const DATA: Record<(typeof EVENT_NAMES)[number], Schema> = {
  ProgramStarted: object({ ...RUN_DATA, status: { const: "running" } }),
  ProgramCompleted: object(
    {
      ...RUN_DATA,
      status: { const: "completed" },
      completed_at: TIME,
      passed: { type: "boolean" },
      unit_system: { enum: ["metric", "imperial"] },
      qc_checks: { type: "array", items: CHECK },
      defects: { type: "array", items: DEFECT },
      files: { type: "array", items: FILE },
    },
    { truncated: { const: true, description: "The lists were too large for an event: read them from the run." } },
  ),
  ProgramFailed: object({
    ...RUN_DATA,
    status: { const: "failed" },
    completed_at: TIME,
    error_message: NULLABLE_STRING,
  }),
  ProgramCancelled: object({
    ...RUN_DATA,
    status: { const: "cancelled" },
    completed_at: TIME,
    error_message: NULLABLE_STRING,
  }),
  WebhookTest: object({ webhook_id: UUID, webhook_name: STRING, message: STRING }),
};

export const EVENT_SCHEMAS = Object.fromEntries(
  EVENT_NAMES.map((eventName) => [
    eventName,
    object({
      event_id: { ...UUID, description: "Deduplication key: the same in every attempt and at every receiver." },
      event_name: { const: eventName },
      timestamp: { ...TIME, description: "When the event was emitted." },
      schema_version: { const: EVENT_SCHEMA_VERSION },
      service_version: STRING,
      kiosk_serial_number: NULLABLE_STRING,
      data: DATA[eventName],
    }),
  ]),
) as Record<(typeof EVENT_NAMES)[number], Schema>;
