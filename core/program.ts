import type { JsonObject } from "./json.js";

/** Step types of the interface; start_session and end_session are deprecated, and the cell no-ops them. */
export const STEP_TYPES = [
  "start_session",
  "move_robot",
  "capture_frame",
  "end_session",
  "wait",
  "cl_sweep",
  "move_motor",
  "iv4_program",
  "srl_read",
  "ljx_stream_start",
  "ljx_stream_stop",
  "safety_gate",
  "gripper",
] as const;
export type StepType = (typeof STEP_TYPES)[number];

export const PROGRAM_STATUSES = ["draft", "active", "archived"] as const;
export type ProgramStatus = (typeof PROGRAM_STATUSES)[number];

/** A step as a program defines it. Documents keep the interface's field names: they are stored and served as they came. */
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
  /** From the id, so that a replacing put keeps it. */
  createdAtUs: number;
  updatedAtUs: number;
  /** A deleted program's runs stay; its own path is 404. A put of the same id brings it back. */
  deleted: boolean;
}
