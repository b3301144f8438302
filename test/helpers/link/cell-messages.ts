import { generateUuidV7 } from "../../../core/identifiers.js";
import type { CellMessage, CellMessageOf } from "../../../core/link/cell-message-schema.js";
import type { Refusal } from "../../../core/link/refusal.js";
import type { RunState } from "../../../core/run/run-state.js";
import { PlainState } from "../recorder/plain-state.js";

/** The n-th of a row of ascending ids. */
export function idOf(n: number): string {
  const random = new Uint8Array(10);
  new DataView(random.buffer).setUint32(6, n);
  return generateUuidV7(1_795_200_000_000 + n, random);
}

export const PROGRAM_ID = idOf(1);
export const RUN_ID = idOf(10);
export const FRAME_ID = idOf(20);
export const JOB_ID = idOf(30);

export const PROGRAM: Extract<CellMessage, { type: "program.put" }> = {
  type: "program.put",
  program: {
    id: PROGRAM_ID,
    name: "Gearbox cover",
    status: "active",
    robot_ids: ["r1", "r2"],
    steps: [
      { type: "capture_frame", name: "top" },
      { type: "wait", enabled: false },
      { type: "cl_sweep", enabled: true },
      { type: "gripper" },
    ],
  },
};

/** Three points of u16 height and u8 luminance a line: 9 bytes. */
export function frameBegin(more: Partial<CellMessageOf<"frame.begin">> = {}): CellMessageOf<"frame.begin"> {
  return {
    type: "frame.begin",
    id: FRAME_ID,
    run_id: RUN_ID,
    step_index: 1,
    session_id: "s1",
    frame_type: "profile",
    width: 3,
    height: 4,
    planes: {
      height: { dtype: "u16", scale_mm: 0.01, offset_mm: -5, invalid: [0] },
      luminance: { dtype: "u8", bits: 8 },
    },
    x_pitch_mm: 0.1,
    y_pitch_mm: 0.2,
    capture_timestamp: "2026-11-20T19:07:00.5Z",
    ...more,
  };
}

export type FixtureStatus = "pending" | "running" | "finalizing" | "completed" | "failed" | "cancelled";

/**
 * A state with one run in the given status. From running on: step 1 runs and has an open frame of 4 lines, one of them stored;
 * steps 2 and 3 are pending; a job is open.
 */
export function stateWithRun(status: FixtureStatus, more: Partial<CellMessageOf<"frame.begin">> = {}): PlainState {
  const state = new PlainState();
  const send = (message: CellMessage, payloadBytes = 0): void => {
    const decision = state.send(message, payloadBytes);
    if ("refusal" in decision) throw new Error(`${message.type}: ${decision.refusal.message}`);
  };
  send(PROGRAM);
  send({ type: "run.create", id: RUN_ID, program_id: PROGRAM_ID, serial_number: "SN1" });
  if (status === "pending") return state;
  send({ type: "run.start", id: RUN_ID });
  send({ type: "step.start", run_id: RUN_ID, index: 1 });
  send(frameBegin(more));
  send({ type: "frame.lines", id: FRAME_ID, first_line: 0, line_count: 1 }, 9);
  send({ type: "job.start", run_id: RUN_ID, id: JOB_ID, name: "judge" });
  if (status === "running") return state;
  if (status === "failed") send({ type: "run.fail", id: RUN_ID, error_message: "collision" });
  else if (status === "cancelled") send({ type: "run.cancel", id: RUN_ID });
  else send({ type: "run.finish", id: RUN_ID });
  if (status === "completed") state.complete(RUN_ID);
  return state;
}

export function runOf(state: PlainState): RunState {
  return state.runs.get(RUN_ID) as RunState;
}

/** Sends the message. A refusal must have changed nothing. */
export function refusalOf(state: PlainState, message: CellMessage, payloadBytes = 0): Refusal | undefined {
  const content = (): string => JSON.stringify([...state.runs, ...state.programs, ...state.components, state.identity]);
  const before = content();
  const decision = state.send(message, payloadBytes);
  if (!("refusal" in decision)) return undefined;
  if (before !== content()) throw new Error(`${message.type} was refused and changed something`);
  return decision.refusal;
}
