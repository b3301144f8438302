import { randomBytes } from "node:crypto";
import { generateUuidV7 } from "../../core/identifiers.js";
import type { JsonObject } from "../../core/json/json.js";
import type { CellMessage } from "../../core/link/cell-message-schema.js";
import type { Random } from "../../core/random.js";
import type { ProgramStep } from "../../core/run/program.js";
import { type CheckStatus, type QualityCheck, reportStatus } from "../../core/run/quality.js";
import { MessageRefusedError, type ProducerClient } from "../cell-link/producer-client.js";
import type { DemoCellReport } from "./demo-cell-messages.js";
import type { DemoProgram } from "./demo-programs.js";
import { CellStoppedError, type Pace } from "./pace.js";
import type { Inspection } from "./part/part-source.js";
import type { Batch, Scene } from "./scenes.js";
import { protocolText, reportJson } from "./steps/report-files.js";
import { type RunContext, StepFaultError } from "./steps/run-context.js";
import { STEP_ACTIONS } from "./steps/step-actions.js";

export interface DemoRunPlan {
  number: number;
  program: DemoProgram;
  serialNumber: string;
  random: Random;
  /** Undefined: the seed decides everything. */
  scene: Scene | undefined;
  batch: Batch;
}

type RunEnded = Extract<DemoCellReport, { kind: "run_ended" }>;

/** How often a run is created with a new id if other producers create runs at the same time. */
const CREATE_ATTEMPTS = 5;

/** Executes one run over the link, from run.create to its acknowledged end. Rejects with the first refusal of a message. */
export async function executeRun(client: ProducerClient, pace: Pace, plan: DemoRunPlan): Promise<RunEnded> {
  const steps = plan.program.document.steps.filter((step) => step.enabled !== false);
  const { ending, endingStep } = endingOf(plan, steps);
  const runId = await createRun(client, plan);
  const answers: Promise<void>[] = [];
  const say: RunContext["say"] = async (message, payload) => {
    answers.push((await client.send(message, payload)).acknowledged);
  };
  const run = runContext(runId, pace, plan, say, ending === "failed" ? endingStep : undefined);
  const cancelledStep = ending === "cancelled" ? endingStep : undefined;
  const note = (event_type: string, data: JsonObject) => say({ type: "event.add", run_id: runId, event_type, data });
  const end = async (ending: RunEnded["ending"], message: CellMessage): Promise<RunEnded> => {
    await say(message);
    await Promise.all(answers);
    return runEnded(run, plan, ending);
  };

  try {
    await say({ type: "run.start", id: runId });
    await note("part_loaded", { serial_number: plan.serialNumber, fixture: "F1" });
    for (const [at, step] of steps.entries()) {
      const index = at + 1;
      if (index === cancelledStep) {
        await note("operator_action", { action: "cancel", reason: "part not seated" });
        return await end("cancelled", { type: "run.cancel", id: runId, error_message: "cancelled by the operator" });
      }
      const fault = await executeStep(run, step, index);
      if (fault === null) continue;
      await note("machine_fault", { step: index, fault });
      return await end("failed", { type: "run.fail", id: runId, error_message: fault });
    }
    return await finishRun(run, plan, note, end);
  } catch (error) {
    if (!(error instanceof CellStoppedError)) throw error;
    return await end("cancelled", { type: "run.cancel", id: runId, error_message: "the cell was stopped" });
  }
}

/** How the run ends, and at which step, counted from 1. */
function endingOf({ random, scene }: DemoRunPlan, steps: readonly ProgramStep[]) {
  // Both are drawn for every run. So later draws do not depend on the scene.
  const luck = random.next();
  const unluckyStep = random.integer(1, steps.length);
  if (scene === undefined) return { ending: endingBy(luck), endingStep: unluckyStep };
  return { ending: scene.ending, endingStep: stepOfScene(steps) };
}

function runContext(
  runId: string,
  pace: Pace,
  { program, serialNumber, random, scene }: DemoRunPlan,
  say: RunContext["say"],
  faultyStep: number | undefined,
): RunContext {
  let lastId = runId;
  let inspection: Promise<Inspection | undefined> | undefined;
  return {
    runId,
    serialNumber,
    random,
    pace,
    say,
    newId() {
      lastId = generateUuidV7(Date.now(), randomBytes(10), lastId);
      return lastId;
    },
    inspect() {
      const { outcome, isFlawed = false, isUnseen = false } = scene ?? {};
      inspection ??= program.parts.inspect(random, { outcome, isFlawed, isUnseen });
      return inspection;
    },
    checks: [],
    defects: [],
    isSteady: scene !== undefined,
    faultyStep,
  };
}

/** Executes one step. @returns the fault that ended it; null if the step completed */
async function executeStep(run: RunContext, step: ProgramStep, index: number): Promise<string | null> {
  const { runId: run_id } = run;
  await run.say({ type: "step.start", run_id, index });
  try {
    const result = await STEP_ACTIONS[step.type](run, step, index);
    await run.say({ type: "step.finish", run_id, index, status: "completed", result });
    return null;
  } catch (error) {
    if (!(error instanceof StepFaultError)) throw error;
    await run.say({ type: "step.finish", run_id, index, status: "failed", error: error.message });
    return error.message;
  }
}

function runEnded(
  run: RunContext,
  { program, number, serialNumber }: DemoRunPlan,
  ending: RunEnded["ending"],
): RunEnded {
  const { runId } = run;
  const { name: programName } = program.document;
  const outcome = ending === "finished" ? reportStatus(run.checks) : null;
  const placedDefects = run.defects.filter((defect) => defect.region_3d).length;
  const summary = { runId, programName, serialNumber, ending, outcome, placedDefects };
  return { kind: "run_ended", number, ...summary };
}

/** Now and then a machine has a fault, or the operator cancels. */
function endingBy(luck: number): Scene["ending"] {
  if (luck < 0.03) return "failed";
  return luck < 0.05 ? "cancelled" : undefined;
}

/**
 * Index, from 1, of the first step that moves the robot. That is where a scene's run ends early. Without such a step,
 * 1.
 */
function stepOfScene(steps: readonly ProgramStep[]): number {
  return Math.max(1, steps.findIndex(({ type }) => type === "move_robot") + 1);
}

async function createRun(client: ProducerClient, plan: DemoRunPlan): Promise<string> {
  const { program, serialNumber, batch, random } = plan;
  const metadata = {
    batch: `B${String(batch.number).padStart(4, "0")}`,
    customer: batch.customer,
    order: batch.order,
    shift: random.pick(["early", "late"]),
  };
  for (let attempt = 1; ; attempt++) {
    const id = client.nextRunId();
    const trace_id = randomBytes(16).toString("hex");
    try {
      await client.deliver({
        type: "run.create",
        id,
        program_id: program.document.id,
        serial_number: serialNumber,
        metadata,
        trace_id,
      });
      return id;
    } catch (error) {
      const retry = error instanceof MessageRefusedError && error.code === "id_out_of_order";
      if (!retry || attempt === CREATE_ATTEMPTS) throw error;
    }
  }
}

async function finishRun(
  run: RunContext,
  plan: DemoRunPlan,
  note: (eventType: string, data: JsonObject) => Promise<void>,
  end: (ending: RunEnded["ending"], message: CellMessage) => Promise<RunEnded>,
): Promise<RunEnded> {
  const { runId: run_id, checks, defects } = run;
  const codeCheck = { name: "part_code_read", status: "passed", canonical_units: "unspecified" } as const;
  checks.push(codeCheck);
  await run.say({ type: "check.add", run_id, check: codeCheck });
  if (run.random.chance(0.08)) {
    const defect = { type: "contamination", description: "chip on the face, seen by the operator", severity: "minor" };
    defects.push(defect);
    await run.say({ type: "defect.add", run_id, defect });
  }
  const report = { program: plan.program.document.name, serialNumber: plan.serialNumber, checks, defects };
  const text = { file_type: "report", description: "Inspection protocol" } as const;
  await run.say(
    { type: "file.put", run_id, name: "protocol.txt", content_type: "text/plain; charset=utf-8", ...text },
    protocolText(report),
  );
  await run.say(
    { type: "file.put", run_id, name: "inspection.json", content_type: "application/json", ...text },
    reportJson(report),
  );
  await note("part_unloaded", { serial_number: plan.serialNumber });
  const outcome = reportStatus(checks);
  return end("finished", { type: "run.finish", id: run_id, summary: summaryOf(checks), results: { outcome } });
}

function summaryOf(checks: readonly QualityCheck[]): string {
  const count = (...statuses: CheckStatus[]) => checks.filter(({ status }) => statuses.includes(status)).length;
  const parts = [`${count("passed", "warning")} of ${checks.length} checks passed`];
  if (count("failed") > 0) parts.push(`${count("failed")} failed`);
  if (count("not_evaluated") > 0) parts.push(`${count("not_evaluated")} could not be evaluated`);
  return parts.join(", ");
}
