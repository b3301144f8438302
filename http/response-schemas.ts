import { HEIGHT_DTYPES, LUMINANCE_DTYPES } from "../core/capture.js";
import { DELIVERY_STATUSES } from "../core/delivery.js";
import { COMPONENT_STATUSES } from "../core/health.js";
import { UUID_V7_PATTERN } from "../core/identifiers.js";
import { LIMITS } from "../core/limits.js";
import { FILE_TYPES, FRAME_FORMATS } from "../core/manifest.js";
import { PROGRAM_STATUSES, STEP_TYPES } from "../core/program.js";
import { CANONICAL_UNITS, CHECK_STATUSES, REPORT_STATUSES } from "../core/quality.js";
import { REGION_2D, REGION_3D, THRESHOLD } from "../core/quality-conventions.js";
import { RUN_STATUSES, STEP_STATUSES } from "../core/run-state.js";
import { ERROR_CATALOGUE } from "../core/service-errors.js";
import { EVENT_NAMES, ON_FAILURE_MODES } from "../core/webhook.js";
import { FRAME_GEOMETRY } from "./frame-millimetres.js";
import type { JsonSchema } from "./route.js";

/**
 * The answers of interface.md as JSON Schemas (2020-12), one for each named resource: the components of the OpenAPI document. Objects
 * are open, as the interface may add fields; the contract tests close them.
 */
const STRING = { type: "string" };
const INTEGER = { type: "integer" };
const COUNT = { type: "integer", minimum: 0 };
const NUMBER = { type: "number" };
const BOOLEAN = { type: "boolean" };
const FREE_FORM = { type: "object" };
const UUID = { type: "string", pattern: UUID_V7_PATTERN };
/** UTC with six decimals and Z, so that times sort as text. */
const TIME = {
  type: "string",
  format: "date-time",
  pattern: "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{6}Z$",
};

function nullable(schema: JsonSchema): JsonSchema {
  if (typeof schema.type === "string") {
    const allowed = Array.isArray(schema.enum) ? { enum: [...schema.enum, null] } : {};
    return { ...schema, ...allowed, type: [schema.type, "null"] };
  }
  return { anyOf: [schema, { type: "null" }] };
}

function arrayOf(items: JsonSchema): JsonSchema {
  return { type: "array", items };
}

function oneOf(values: readonly string[]): JsonSchema {
  return { type: "string", enum: [...values] };
}

function object(required: Record<string, JsonSchema>, optional: Record<string, JsonSchema> = {}): JsonSchema {
  return { type: "object", properties: { ...required, ...optional }, required: Object.keys(required) };
}

export function schemaRef(name: keyof typeof RESPONSE_SCHEMAS): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}

/** Within the table itself, whose type is not known yet. */
function ref(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}

function described(schema: JsonSchema, description: string): JsonSchema {
  return { ...schema, description };
}

const QUALITY_STATUS = described(
  nullable(oneOf(REPORT_STATUSES)),
  "Status of the run's quality report as it stands; null without a report: no checks yet, or the run failed or was cancelled.",
);

const PAGE = { total: COUNT, limit: { type: "integer", minimum: 1, maximum: 1000 }, offset: COUNT };

const DELIVERY = {
  id: UUID,
  webhook_id: UUID,
  program_run_id: nullable(UUID),
  event_name: oneOf(EVENT_NAMES),
  on_failure_mode: oneOf(ON_FAILURE_MODES),
  status: oneOf(DELIVERY_STATUSES),
  attempts: COUNT,
  last_status_code: nullable(INTEGER),
  last_error: nullable(STRING),
  next_retry_at: nullable(TIME),
  delivered_at: nullable(TIME),
  payload: { type: "object", description: "The envelope as it is posted, whatever the attempt." },
  created_at: TIME,
  updated_at: TIME,
};

export const RESPONSE_SCHEMAS = {
  Link: object({ href: { type: "string", description: "URL" } }, { method: STRING }),

  ProgramStep: object(
    { type: oneOf(STEP_TYPES) },
    {
      name: nullable(STRING),
      params: FREE_FORM,
      enabled: BOOLEAN,
      group_id: nullable(STRING),
      group_name: nullable(STRING),
      section_id: nullable(STRING),
      section_name: nullable(STRING),
    },
  ),
  RunConfig: object({ name: STRING }, { metadata: FREE_FORM }),
  ProgramLinks: object({ self: ref("Link"), runs: ref("Link") }),
  ProgramResponse: object(
    {
      id: UUID,
      name: STRING,
      status: oneOf(PROGRAM_STATUSES),
      steps: arrayOf(ref("ProgramStep")),
      created_at: TIME,
      updated_at: TIME,
    },
    {
      description: nullable(STRING),
      robot_ids: arrayOf(STRING),
      sensor_id: nullable(STRING),
      co_processor: nullable(STRING),
      pre_hook: nullable(STRING),
      post_hook: nullable(STRING),
      run_configs: arrayOf(ref("RunConfig")),
      run_count: COUNT,
      metadata: nullable(FREE_FORM),
      links: nullable(ref("ProgramLinks")),
    },
  ),
  ProgramListResponse: object({ programs: arrayOf(ref("ProgramResponse")), ...PAGE }),

  RunProgressResponse: object({ total_steps: COUNT, completed_steps: COUNT }, { current_step: nullable(INTEGER) }),
  StepStatusResponse: object(
    { index: { type: "integer", minimum: 1 }, type: STRING, status: oneOf(STEP_STATUSES) },
    {
      name: nullable(STRING),
      started_at: nullable(TIME),
      completed_at: nullable(TIME),
      result: nullable(FREE_FORM),
      error: nullable(STRING),
    },
  ),
  StepsDetailResponse: object(
    { completed: arrayOf(ref("StepStatusResponse")), pending: arrayOf(ref("StepStatusResponse")) },
    { in_progress: nullable(ref("StepStatusResponse")) },
  ),
  RunEventLogEntry: object({ timestamp: TIME, event_type: STRING, data: FREE_FORM }),
  RunLinks: object(
    { self: ref("Link"), program: ref("Link") },
    { cancel: nullable(ref("Link")), websocket: nullable(ref("Link")) },
  ),
  WebhookDeliveryRollup: object({ delivered: COUNT, failed: COUNT, pending: COUNT, all_ok: BOOLEAN }),
  WebhookDeliverySummary: object(
    {
      id: UUID,
      webhook_id: UUID,
      webhook_name: STRING,
      event_name: STRING,
      status: oneOf(DELIVERY_STATUSES),
      on_failure_mode: oneOf(ON_FAILURE_MODES),
      attempts: COUNT,
    },
    { last_error: nullable(STRING) },
  ),
  WebhookResponse: object({
    id: UUID,
    name: STRING,
    url: STRING,
    subscribed_events: arrayOf(oneOf(EVENT_NAMES)),
    on_failure_mode: oneOf(ON_FAILURE_MODES),
    enabled: BOOLEAN,
    has_secret: BOOLEAN,
    delivery_timeout_seconds: NUMBER,
    retry_backoff_seconds: NUMBER,
    max_retries: COUNT,
    created_at: TIME,
    updated_at: TIME,
  }),
  WebhookResponseList: arrayOf(ref("WebhookResponse")),
  WebhookDeliveryResponse: object(DELIVERY),
  WebhookDeliveryResponseList: arrayOf(ref("WebhookDeliveryResponse")),
  WebhookDeliveryAttemptResponse: object({
    attempt_number: { type: "integer", minimum: 1 },
    started_at: TIME,
    completed_at: nullable(TIME),
    status_code: nullable(INTEGER),
    response_body: nullable(STRING),
    response_headers: nullable({ type: "object", additionalProperties: STRING }),
    error: nullable(STRING),
  }),
  WebhookDeliveryDetailResponse: object({
    ...DELIVERY,
    attempt_history: {
      ...arrayOf(ref("WebhookDeliveryAttemptResponse")),
      description: `The latest attempts, newest first; of the ${LIMITS.attemptsPerDelivery} that are kept a manual retry beyond them drops the oldest.`,
    },
  }),
  TestWebhookResponse: object({
    delivered: BOOLEAN,
    status_code: nullable(INTEGER),
    error: nullable(STRING),
    delivery_id: UUID,
  }),
  FileMetadata: object(
    { name: STRING, type: oneOf(FILE_TYPES), content_type: STRING, href: STRING, created_at: TIME, updated_at: TIME },
    {
      size_in_bytes: nullable(COUNT),
      description: nullable(STRING),
      step_index: nullable(INTEGER),
      frame_id: nullable(STRING),
      deleted_at: nullable(TIME),
    },
  ),
  FileMetadataList: arrayOf(ref("FileMetadata")),
  ProgramRunResponse: object(
    {
      id: UUID,
      program_id: UUID,
      status: oneOf(RUN_STATUSES),
      quality_status: QUALITY_STATUS,
      progress: ref("RunProgressResponse"),
      created_at: TIME,
      updated_at: TIME,
    },
    {
      trace_id: nullable(STRING),
      serial_number: nullable(STRING),
      revision: { type: "integer", minimum: 1 },
      metadata: FREE_FORM,
      steps: nullable(ref("StepsDetailResponse")),
      started_at: nullable(TIME),
      completed_at: nullable(TIME),
      error_message: nullable(STRING),
      results: {
        type: ["object", "null"],
        description: "Free-form, with the ids of every captured frame.",
        properties: { frame_ids: arrayOf(UUID) },
        additionalProperties: true,
      },
      event_log: nullable(arrayOf(ref("RunEventLogEntry"))),
      webhook_deliveries: nullable(arrayOf(ref("WebhookDeliverySummary"))),
      webhook_delivery: nullable(ref("WebhookDeliveryRollup")),
      files: nullable(arrayOf(ref("FileMetadata"))),
      links: nullable(ref("RunLinks")),
    },
  ),
  ProgramRunSummaryResponse: object(
    {
      id: UUID,
      program_id: UUID,
      program_name: STRING,
      status: oneOf(RUN_STATUSES),
      quality_status: QUALITY_STATUS,
      progress: ref("RunProgressResponse"),
      created_at: TIME,
      updated_at: TIME,
    },
    {
      serial_number: nullable(STRING),
      revision: { type: "integer", minimum: 1 },
      metadata: FREE_FORM,
      started_at: nullable(TIME),
      completed_at: nullable(TIME),
      error_message: nullable(STRING),
      links: nullable(ref("RunLinks")),
    },
  ),
  ProgramRunSummaryListResponse: object({ runs: arrayOf(ref("ProgramRunSummaryResponse")), ...PAGE }),
  ActiveRunResponse: object({ active: BOOLEAN }, { run: nullable(ref("ProgramRunResponse")) }),

  QualityCheckModel: object(
    {
      name: STRING,
      status: described(
        oneOf(CHECK_STATUSES),
        "The producer decides it; the service does not work it out from the numbers.",
      ),
    },
    {
      message: nullable(STRING),
      value: nullable(NUMBER),
      nominal: nullable(NUMBER),
      delta: described(nullable(NUMBER), "value - nominal, in the unit of canonical_units."),
      threshold: described(nullable(NUMBER), THRESHOLD),
      canonical_units: oneOf(CANONICAL_UNITS),
      metadata: FREE_FORM,
    },
  ),
  DefectRegion2DModel: object(
    {},
    { file: described(nullable(STRING), REGION_2D.file), bbox: described(nullable(arrayOf(NUMBER)), REGION_2D.bbox) },
  ),
  DefectRegion3DModel: object(
    {},
    {
      file: described(nullable(STRING), REGION_3D.file),
      location: described(nullable(arrayOf(NUMBER)), REGION_3D.location("mm")),
      extents: described(nullable(arrayOf(NUMBER)), REGION_3D.extents("mm")),
      orientation: described(nullable(arrayOf(NUMBER)), REGION_3D.orientation),
      frame: described(nullable(STRING), REGION_3D.frame),
    },
  ),
  DefectModel: object(
    {},
    {
      id: nullable(STRING),
      type: STRING,
      description: nullable(STRING),
      region_2d: nullable(ref("DefectRegion2DModel")),
      region_3d: nullable(ref("DefectRegion3DModel")),
      confidence: nullable(NUMBER),
      severity: nullable(STRING),
      metadata: FREE_FORM,
    },
  ),
  QualityReportModel: object(
    {
      status: oneOf(REPORT_STATUSES),
      final: described(
        BOOLEAN,
        "False while the run can still add checks or fail; true once it is completed: the report changes no more.",
      ),
      checks: arrayOf(ref("QualityCheckModel")),
    },
    { defects: arrayOf(ref("DefectModel")), summary: nullable(STRING) },
  ),
  QualityReportResponse: object({ run_id: UUID }, { quality_report: nullable(ref("QualityReportModel")) }),
  RunDefectsResponse: object({ run_id: UUID }, { defects: arrayOf(ref("DefectModel")) }),

  CapturedFrameResponse: object({
    id: UUID,
    session_id: STRING,
    sequence_number: INTEGER,
    frame_type: STRING,
    file_path: STRING,
    file_size_bytes: nullable(COUNT),
    width: nullable(COUNT),
    height: nullable(COUNT),
    joint_positions: nullable(arrayOf(NUMBER)),
    tcp_position: nullable(FREE_FORM),
    capture_timestamp: TIME,
    metadata: nullable(FREE_FORM),
    created_at: TIME,
    run_id: described(UUID, "Id of the run that the frame belongs to."),
    step_index: described({ type: "integer", minimum: 1 }, "The step that captured it, counted from 1."),
    sensor_id: described(nullable(STRING), "The sensor that captured it; null where the producer did not say."),
    geometry: ref("FrameGeometry"),
  }),
  FrameGeometry: {
    ...object({
      x_pitch_mm: described(NUMBER, "Millimetres from one column to the next."),
      y_pitch_mm: described(NUMBER, "Millimetres from one line to the next."),
      x_origin_mm: described(NUMBER, "x of column 0 in mm; 0 where the producer did not say."),
      y_origin_mm: described(NUMBER, "y of line 0 in mm; 0 where the producer did not say."),
      height: described(ref("FrameHeight"), "How raw heights become z."),
      luminance: described(nullable(ref("FrameLuminance")), "Null: the frame has no luminance."),
    }),
    description: FRAME_GEOMETRY,
  },
  FrameHeight: object({
    dtype: described(oneOf(HEIGHT_DTYPES), "Type of the raw values; also of the NPY."),
    scale_mm: described(NUMBER, "Millimetres for a raw step of 1."),
    offset_mm: described(NUMBER, "z in mm of the raw value 0."),
    invalid: described(arrayOf(NUMBER), "Raw values that mean no measurement. NaN is none either, listed or not."),
  }),
  FrameLuminance: object({
    dtype: described(oneOf(LUMINANCE_DTYPES), "Type of the raw values."),
    bits: described(
      { type: "integer", enum: [8, 10, 12, 16] },
      "How many of their bits carry signal, the lowest ones.",
    ),
  }),
  FrameFormatFile: object({ href: STRING, content_type: STRING, size_in_bytes: nullable(COUNT) }),
  FrameFileInfo: object({
    frame_id: UUID,
    session_id: STRING,
    available_formats: arrayOf(oneOf(FRAME_FORMATS)),
    files: {
      type: "object",
      description: "The available formats, each with where to get it.",
      propertyNames: { enum: [...FRAME_FORMATS] },
      additionalProperties: ref("FrameFormatFile"),
    },
  }),

  ComponentStatus: object(
    { status: oneOf(COMPONENT_STATUSES) },
    { id: nullable(STRING), detail: nullable(STRING), enabled: nullable(BOOLEAN) },
  ),
  SystemStateResponse: object({
    status: oneOf(["healthy", "degraded", "down"]),
    components: { type: "object", additionalProperties: ref("ComponentStatus") },
  }),
  VersionResponse: object({ "service-version": STRING }),
  LivenessResponse: object({ status: oneOf(["alive"]) }),

  ErrorResponse: object({
    code: oneOf(Object.keys(ERROR_CATALOGUE)),
    message: STRING,
    params: {
      type: "object",
      description: "What the error is about: for a bad value the field, where it stood, what came and what is allowed.",
    },
    trace_id: { type: "string", pattern: "^[0-9a-f]{32}$", description: "As in X-Trace-ID; it stands in the log." },
    retryable: { type: "boolean", description: "Whether the same request can succeed later." },
  }),
} as const satisfies Record<string, JsonSchema>;
