import type { HeightDtype, LuminanceDtype } from "./capture/capture.js";
import type { ComponentStatusValue, SystemStatus } from "./health.js";
import type { JsonObject } from "./json/json.js";
import type { FileType, OfferedFormat } from "./run/manifest.js";
import type { ProgramDocument, StepType } from "./run/program.js";
import type { Defect, QualityCheck, ReportStatus } from "./run/quality.js";
import type { RunStatus, StepStatus } from "./run/run-state.js";
import type { DeliveryStatus } from "./webhook/delivery.js";
import type { EventName, OnFailureMode } from "./webhook/webhook.js";

/** The types of the interface's answers. The `*-response.ts` files build them. */
export interface Link {
  href: string;
  method: string;
}

export interface ProgramResponse extends ProgramDocument {
  run_count: number;
  created_at: string;
  updated_at: string;
  links: { self: Link; runs: Link };
}

export interface RunProgressResponse {
  total_steps: number;
  completed_steps: number;
  current_step: number | null;
}

export interface RunLinks {
  self: Link;
  program: Link;
  cancel: null;
  websocket: Link | null;
}

export interface StepStatusResponse {
  index: number;
  type: StepType;
  name: string | null;
  status: StepStatus;
  started_at: string | null;
  completed_at: string | null;
  result: JsonObject | null;
  error: string | null;
}

export interface StepsDetailResponse {
  completed: StepStatusResponse[];
  in_progress: StepStatusResponse | null;
  pending: StepStatusResponse[];
}

export interface FileMetadata {
  name: string;
  type: FileType;
  content_type: string;
  size_in_bytes: number | null;
  description: string | null;
  href: string;
  step_index: number | null;
  frame_id: string | null;
  created_at: string;
  updated_at: string;
  deleted_at: string | null;
}

export interface ProgramRunResponse {
  id: string;
  program_id: string;
  status: RunStatus;
  quality_status: ReportStatus | null;
  trace_id: string | null;
  serial_number: string | null;
  revision: number;
  metadata: JsonObject;
  progress: RunProgressResponse;
  steps: StepsDetailResponse;
  started_at: string | null;
  completed_at: string | null;
  error_message: string | null;
  results: JsonObject;
  event_log: { timestamp: string; event_type: string; data: JsonObject }[];
  webhook_deliveries: WebhookDeliverySummary[];
  webhook_delivery: WebhookDeliveryRollup;
  files: FileMetadata[];
  created_at: string;
  updated_at: string;
  links: RunLinks;
}

export interface WebhookDeliverySummary {
  id: string;
  webhook_id: string;
  webhook_name: string;
  event_name: EventName;
  status: DeliveryStatus;
  on_failure_mode: OnFailureMode;
  attempts: number;
  last_error: string | null;
}

export interface WebhookDeliveryRollup {
  delivered: number;
  failed: number;
  pending: number;
  all_ok: boolean;
}

export interface WebhookResponse {
  id: string;
  name: string;
  url: string;
  subscribed_events: EventName[];
  on_failure_mode: OnFailureMode;
  enabled: boolean;
  has_secret: boolean;
  delivery_timeout_seconds: number;
  retry_backoff_seconds: number;
  max_retries: number;
  created_at: string;
  updated_at: string;
}

export interface WebhookDeliveryAttemptResponse {
  attempt_number: number;
  started_at: string;
  completed_at: string | null;
  status_code: number | null;
  response_body: string | null;
  response_headers: Record<string, string> | null;
  response_truncated: boolean;
  error: string | null;
}

/** A delivery without its payload, which is JSON text already. */
export interface WebhookDeliveryFields {
  id: string;
  webhook_id: string;
  program_run_id: string | null;
  event_name: EventName;
  on_failure_mode: OnFailureMode;
  status: DeliveryStatus;
  attempts: number;
  last_status_code: number | null;
  last_error: string | null;
  next_retry_at: string | null;
  delivered_at: string | null;
  created_at: string;
  updated_at: string;
  /** Only in the detail; most recent first. */
  attempt_history?: WebhookDeliveryAttemptResponse[];
}

export interface TestWebhookResponse {
  delivered: boolean;
  status_code: number | null;
  error: string | null;
  delivery_id: string;
}

export interface ProgramRunSummaryResponse {
  id: string;
  program_id: string;
  program_name: string;
  status: RunStatus;
  quality_status: ReportStatus | null;
  progress: RunProgressResponse;
  serial_number: string | null;
  revision: number;
  metadata: JsonObject;
  started_at: string | null;
  completed_at: string | null;
  error_message: string | null;
  created_at: string;
  updated_at: string;
  links: RunLinks;
}

export interface QualityReportResponse {
  run_id: string;
  quality_report: {
    status: ReportStatus;
    final: boolean;
    checks: QualityCheck[];
    defects: Defect[];
    summary: string | null;
  } | null;
}

export interface RunDefectsResponse {
  run_id: string;
  defects: Defect[];
}

export interface CapturedFrameResponse {
  id: string;
  session_id: string;
  sequence_number: number;
  frame_type: string;
  file_path: string;
  file_size_bytes: number | null;
  width: number | null;
  height: number | null;
  joint_positions: number[] | null;
  tcp_position: JsonObject | null;
  capture_timestamp: string;
  metadata: JsonObject | null;
  created_at: string;
  run_id: string;
  step_index: number;
  sensor_id: string | null;
  geometry: FrameGeometry;
}

/** How raw values become millimetres (capture.ts, Planes), as the producer declared it. */
export interface FrameGeometry {
  x_pitch_mm: number;
  y_pitch_mm: number;
  x_origin_mm: number;
  y_origin_mm: number;
  height: { dtype: HeightDtype; scale_mm: number; offset_mm: number; invalid: number[] };
  luminance: { dtype: LuminanceDtype; bits: number } | null;
}

export interface FrameFileInfo {
  frame_id: string;
  session_id: string;
  available_formats: OfferedFormat[];
  files: Partial<Record<OfferedFormat, { href: string; content_type: string; size_in_bytes: number | null }>>;
}

export interface ComponentStatusResponse {
  status: ComponentStatusValue;
  id: string | null;
  detail: string | null;
  enabled: boolean | null;
}

export interface SystemStateResponse {
  status: SystemStatus;
  components: Record<string, ComponentStatusResponse>;
}
