import type { HeightDtype, LuminanceDtype, SeriesDtype } from "../capture/capture.js";
import type { ComponentStatusValue } from "../health.js";
import type { JsonObject } from "../json/json.js";
import type { FileType } from "../run/manifest.js";
import type { ProgramDocument, ProgramStep } from "../run/program.js";
import type { Defect, QualityCheck } from "../run/quality.js";
import type { UnitSystem } from "./change.js";

/**
 * The messages of the cell link (workers/cell-link/README.md), in the protocol's own field names. An optional field may also be null where
 * the interface shows it as nullable; null and absent mean the same.
 */
export interface CellPut {
  type: "cell.put";
  kiosk_serial_number?: string | null;
  unit_system?: UnitSystem;
}
export interface ComponentPut {
  type: "component.put";
  key: string;
  id?: string | null;
  status: ComponentStatusValue;
  detail?: string | null;
  enabled?: boolean | null;
  required?: boolean;
}
export interface ComponentDelete {
  type: "component.delete";
  key: string;
}
export interface ProgramPut {
  type: "program.put";
  program: ProgramDocument;
}
export interface ProgramDelete {
  type: "program.delete";
  id: string;
}
export interface RunCreate {
  type: "run.create";
  id: string;
  program_id: string;
  serial_number?: string | null;
  metadata?: JsonObject | null;
  trace_id?: string | null;
  steps?: ProgramStep[] | null;
}
export interface RunStart {
  type: "run.start";
  id: string;
}
export interface StepStart {
  type: "step.start";
  run_id: string;
  index: number;
}
export interface StepFinish {
  type: "step.finish";
  run_id: string;
  index: number;
  status: "completed" | "failed" | "skipped";
  result?: JsonObject | null;
  error?: string | null;
}
export interface FrameBegin {
  type: "frame.begin";
  id: string;
  run_id: string;
  step_index: number;
  session_id: string;
  frame_type: string;
  width: number;
  height: number;
  planes: {
    height: { dtype: HeightDtype; scale_mm: number; offset_mm: number; invalid: number[] };
    luminance?: { dtype: LuminanceDtype; bits: number } | null;
  };
  x_pitch_mm: number;
  y_pitch_mm: number;
  x_origin_mm?: number | null;
  y_origin_mm?: number | null;
  sequence_number?: number | null;
  sensor_id?: string | null;
  joint_positions?: number[] | null;
  tcp_position?: JsonObject | null;
  capture_timestamp: string;
  metadata?: JsonObject | null;
}
export interface FrameLines {
  type: "frame.lines";
  id: string;
  first_line: number;
  line_count: number;
}
export interface FrameEnd {
  type: "frame.end";
  id: string;
}
export interface SeriesAppendMessage {
  type: "series.append";
  run_id: string;
  step_index: number;
  channels: number;
  first_timestamp: string;
  sample_period_us: number;
  dtype: SeriesDtype;
  scale?: number | null;
  offset?: number | null;
  invalid?: number[] | null;
}
export interface CheckAdd {
  type: "check.add";
  run_id: string;
  check: QualityCheck;
}
export interface DefectAdd {
  type: "defect.add";
  run_id: string;
  defect: Defect;
}
export interface JobStart {
  type: "job.start";
  run_id: string;
  id: string;
  name: string;
}
export interface JobFinish {
  type: "job.finish";
  run_id: string;
  id: string;
  status: "completed" | "failed";
  checks?: QualityCheck[] | null;
  defects?: Defect[] | null;
  error?: string | null;
}
export interface FilePut {
  type: "file.put";
  run_id: string;
  name: string;
  /**
   * The manifest's type. It is named `file_type` because the map already has the message's own `type`. Absent, it follows from the
   * content type.
   */
  file_type?: FileType | null;
  content_type: string;
  description?: string | null;
  step_index?: number | null;
  frame_id?: string | null;
}
export interface EventAdd {
  type: "event.add";
  run_id: string;
  event_type: string;
  data: JsonObject;
  timestamp?: string | null;
}
export interface RunFinish {
  type: "run.finish";
  id: string;
  summary?: string | null;
  results?: JsonObject | null;
}
export interface RunFail {
  type: "run.fail";
  id: string;
  error_message: string;
}
export interface RunCancel {
  type: "run.cancel";
  id: string;
  error_message?: string | null;
}

export type CellMessage =
  | CellPut
  | ComponentPut
  | ComponentDelete
  | ProgramPut
  | ProgramDelete
  | RunCreate
  | RunStart
  | StepStart
  | StepFinish
  | FrameBegin
  | FrameLines
  | FrameEnd
  | SeriesAppendMessage
  | CheckAdd
  | DefectAdd
  | JobStart
  | JobFinish
  | FilePut
  | EventAdd
  | RunFinish
  | RunFail
  | RunCancel;

export type CellMessageType = CellMessage["type"];
