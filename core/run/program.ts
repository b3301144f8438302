import { valuesOf } from "../json/closed-set.js";
import type { JsonObject } from "../json/json.js";

export const STEP_TYPE_MEANINGS = {
  start_session: "**Deprecated.** It has no effect: a sensor's session begins by itself.",
  move_robot: "moves a robot.",
  capture_frame: "captures a frame with a sensor; the step's result names it in `frame_id`.",
  end_session: "**Deprecated.** It has no effect: a sensor's session ends by itself.",
  wait: "waits.",
  cl_sweep: "records a measurement series with a CL displacement sensor; it can be read as `cl_sweep.csv`.",
  move_motor: "moves a motor, such as a stage or a turntable.",
  iv4_program: "runs a program on an IV4 vision sensor.",
  srl_read: "reads a code with a code reader.",
  ljx_stream_start: "starts the stream of an LJ-X profiler.",
  ljx_stream_stop: "stops the stream of an LJ-X profiler.",
  safety_gate: "checks, or waits for, the safety gate.",
  gripper: "opens or closes a gripper.",
} as const;
export type StepType = keyof typeof STEP_TYPE_MEANINGS;
export const STEP_TYPES = valuesOf(STEP_TYPE_MEANINGS);

export const PROGRAM_STATUS_MEANINGS = {
  draft: "still being written.",
  active: "in use.",
  archived: "no longer in use; its runs stay readable.",
} as const;
export type ProgramStatus = keyof typeof PROGRAM_STATUS_MEANINGS;
export const PROGRAM_STATUSES = valuesOf(PROGRAM_STATUS_MEANINGS);

/** A step as a program defines it. Its fields have the interface's names, because the document is stored and served as it came. */
export interface ProgramStep {
  type: StepType;
  name?: string | null;
  params?: JsonObject;
  enabled?: boolean;
  group_id?: string | null;
  group_name?: string | null;
  section_id?: string | null;
  section_name?: string | null;
}

export interface RunConfig {
  name: string;
  metadata?: JsonObject;
}

/** A program as a producer puts it: the interface's fields other than run_count, links and the times. */
export interface ProgramDocument {
  id: string;
  name: string;
  description?: string | null;
  robot_ids?: string[];
  sensor_id?: string | null;
  co_processor?: string | null;
  pre_hook?: string | null;
  post_hook?: string | null;
  status: ProgramStatus;
  steps: ProgramStep[];
  run_configs?: RunConfig[];
  metadata?: JsonObject | null;
}

export interface ProgramState {
  document: ProgramDocument;
  /** Comes from the id, so replacing the program keeps it. */
  createdAtUs: number;
  updatedAtUs: number;
  /** Upper bound of the document's bytes as MessagePack. */
  documentBytes: number;
}
