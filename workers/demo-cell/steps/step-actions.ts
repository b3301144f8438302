import type { JsonObject } from "../../../core/json/json.js";
import type { ProgramStep, StepType } from "../../../core/run/program.js";
import type { QualityCheck } from "../../../core/run/quality.js";
import { captureFrame } from "./capture-step.js";
import { type RunContext, StepFaultError } from "./run-context.js";
import { sweepProfile } from "./sweep-step.js";

/** What a step does, and its result. Throws StepFaultError if the machine cannot do it. */
type StepAction = (run: RunContext, step: ProgramStep, index: number) => Promise<JsonObject>;

const round = (value: number, digits = 3): number => Number(value.toFixed(digits));

function fault(run: RunContext, index: number, message: string): void {
  if (run.faultyStep === index) throw new StepFaultError(message);
}

async function moveRobot(run: RunContext, step: ProgramStep, index: number): Promise<JsonObject> {
  await run.pace.work(run.random.integer(150, 350));
  fault(run, index, "robot r1 stopped: joint 4 torque limit exceeded");
  const joints = [12, -78, 96, -18, 88, 4].map((degrees) => round(degrees + run.random.normal() * 0.02));
  return { robot_id: step.params?.robot_id ?? "r1", pose: step.params?.pose ?? null, joint_positions_deg: joints };
}

async function readCode(run: RunContext, step: ProgramStep, index: number): Promise<JsonObject> {
  const attempts = run.random.chance(0.9) ? 1 : 2;
  await run.pace.work(60 * attempts);
  fault(run, index, `no code read after ${String(step.params?.attempts ?? 3)} attempts`);
  return {
    code: run.serialNumber,
    symbology: "data_matrix",
    attempts,
    print_grade: run.random.pick(["A", "A", "A", "B"]),
  };
}

async function runCamera(run: RunContext, step: ProgramStep, index: number): Promise<JsonObject> {
  await run.pace.work(run.random.integer(80, 160));
  fault(run, index, "camera iv4-1 does not answer");
  const threshold = Number(step.params?.threshold ?? 70);
  const drawn = Math.round(91 + 5 * run.random.normal() - (run.random.chance(0.03) ? 35 : 0));
  const value = Math.min(99, run.isSteady ? Math.max(drawn, threshold) : drawn);
  const isLike = value >= threshold;
  const check: QualityCheck = {
    name: `iv4_${String(step.params?.program_number)}_score`,
    status: isLike ? "passed" : "failed",
    value,
    threshold,
    canonical_units: "unspecified",
    metadata: { step: step.name ?? null },
    ...(!isLike && { message: `the picture is too unlike the taught one: at least ${threshold} is needed` }),
  };
  run.checks.push(check);
  return { score: value, passed: isLike, checks: [{ ...check }] };
}

/** A step that takes some time and reports what it set. */
const simple =
  (durationMs: number, faultMessage: string, result: (run: RunContext, step: ProgramStep) => JsonObject): StepAction =>
  async (run, step, index) => {
    await run.pace.work(durationMs);
    fault(run, index, faultMessage);
    return result(run, step);
  };

const none = simple(0, "controller fault", () => ({}));

export const STEP_ACTIONS: Record<StepType, StepAction> = {
  start_session: none,
  end_session: none,
  move_robot: moveRobot,
  capture_frame: async (run, step, index) => {
    fault(run, index, "sensor ljx-1 lost its encoder signal");
    return captureFrame(run, step, index);
  },
  cl_sweep: async (run, step, index) => {
    fault(run, index, "controller cl-1 reports head 1 out of range");
    return sweepProfile(run, step, index);
  },
  srl_read: readCode,
  iv4_program: runCamera,
  wait: simple(200, "controller fault", (_run, step) => ({ seconds: step.params?.seconds ?? 0 })),
  move_motor: simple(250, "axis x1: following error", (run, step) => ({
    axis: step.params?.axis ?? "x1",
    position_mm: round(Number(step.params?.position_mm ?? 0) + run.random.normal() * 0.004, 4),
  })),
  ljx_stream_start: simple(30, "sensor ljx-1 does not answer", () => ({ streaming: true })),
  ljx_stream_stop: simple(30, "sensor ljx-1 does not answer", () => ({ streaming: false })),
  safety_gate: simple(80, "safety gate opened during the run", () => ({ closed: true, light_curtain: "clear" })),
  gripper: simple(150, "gripper lost air pressure", (run, step) => ({
    width_mm: round(Number(step.params?.width_mm ?? 0) + run.random.normal() * 0.03),
    force_n: round(40 + run.random.normal()),
  })),
};
