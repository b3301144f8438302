import { randomBytes } from "node:crypto";
import { generateUuidV7 } from "../../core/identifiers.js";
import type { JsonObject } from "../../core/json/json.js";
import type { Random } from "../../core/random.js";
import type { ProducerClient } from "../../workers/cell-link/producer-client.js";
import { getBody } from "./http/http-load.js";

const STEP_TYPES = ["safety_gate", "move_robot", "capture_frame", "move_robot", "capture_frame", "gripper"];

export interface ProducedProgram {
  id: string;
  name: string;
}

/** Puts `count` programs of `steps` steps each. */
export async function putPrograms(client: ProducerClient, count: number, steps: number): Promise<ProducedProgram[]> {
  const programs: ProducedProgram[] = [];
  let id: string | null = null;
  for (let i = 0; i < count; i++) {
    id = generateUuidV7(Date.now(), randomBytes(10), id);
    const name = `Housing ${String.fromCharCode(65 + (i % 26))}${i}, final inspection`;
    await client.send({
      type: "program.put",
      program: {
        id,
        name,
        status: "active",
        robot_ids: ["robot-1"],
        steps: Array.from({ length: steps }, (_, step) => ({
          type: STEP_TYPES[step % STEP_TYPES.length],
          name: `Station ${step + 1}`,
          params: { speed_mm_s: 250, settle_ms: 40 },
        })),
      },
    });
    programs.push({ id, name });
  }
  return programs;
}

export interface RunPlan {
  program: ProducedProgram;
  serialNumber: string;
  outcome: "completed" | "failed" | "cancelled";
  steps: number;
  /** Entries of the event log, beside the service's own. */
  events: number;
  checks: number;
}

/** Sends one whole run, without waiting for acknowledgements; gives its id. */
export async function produceRun(client: ProducerClient, random: Random, plan: RunPlan): Promise<string> {
  const id = client.nextRunId();
  const say = (type: string, fields: JsonObject) => client.send({ type, ...fields });
  await say("run.create", {
    id,
    program_id: plan.program.id,
    serial_number: plan.serialNumber,
    metadata: { shift: random.pick(["early", "late", "night"]), order: `PO-${random.integer(10_000, 99_999)}` },
  });
  await say("run.start", { id });
  const stepsDone = plan.outcome === "completed" ? plan.steps : Math.ceil(plan.steps / 2);
  for (let index = 1; index <= stepsDone; index++) {
    await say("step.start", { run_id: id, index });
    await say("step.finish", {
      run_id: id,
      index,
      status: "completed",
      result: { position_error_mm: Math.round(random.normal() * 1e4) / 1e6, attempts: random.integer(1, 3) },
    });
  }
  for (let i = 0; i < plan.events; i++) {
    await say("event.add", {
      run_id: id,
      event_type: "station_note",
      data: { station: i + 1, temperature_c: random.integer(180, 260) / 10, text: "clamp closed, part seated" },
    });
  }
  if (plan.outcome === "completed") {
    for (let i = 0; i < plan.checks; i++) {
      const value = 12 + random.normal() * 0.02;
      await say("check.add", {
        run_id: id,
        check: {
          name: `Bore ${i + 1} diameter`,
          status: "passed",
          value,
          nominal: 12,
          delta: value - 12,
          threshold: 0.1,
        },
      });
    }
    await say("run.finish", { id });
  } else if (plan.outcome === "failed") {
    await say("run.fail", { id, error_message: "robot-1: protective stop" });
  } else {
    await say("run.cancel", { id });
  }
  return id;
}

/** Sends `count` runs that end completed, of any of the programs; gives their ids. */
export async function fillRuns(
  client: ProducerClient,
  random: Random,
  programs: readonly ProducedProgram[],
  count: number,
  steps: number,
): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < count; i++) {
    const program = random.pick(programs);
    const serialNumber = `SN-${i}`;
    ids.push(
      await produceRun(client, random, { program, serialNumber, outcome: "completed", steps, events: 2, checks: 4 }),
    );
  }
  return ids;
}

/** Resolves when so many runs have completed. */
export function allCompleted(base: string, count: number): Promise<void> {
  const url = `${base}/runs?status=completed&limit=1`;
  return waitUntil("the end of every run", async () => (await fetchTotal(url)) === count);
}

/** `total` of a list page. */
export async function fetchTotal(url: string): Promise<number> {
  const { total } = JSON.parse((await getBody(url)).toString()) as { total: number };
  return total;
}

/** Asks until `condition` holds; the service ends runs after their last message by itself. */
export async function waitUntil(what: string, condition: () => Promise<boolean>, timeoutMs = 60_000): Promise<void> {
  const startMs = performance.now();
  while (!(await condition())) {
    if (performance.now() - startMs > timeoutMs) throw new Error(`${what} did not come about within ${timeoutMs} ms`);
  }
}
