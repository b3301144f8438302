import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { generateUuidV7 } from "../../core/identifiers.js";
import type { JsonObject } from "../../core/json/json.js";
import { createRandom, type Random } from "../../core/random.js";
import type { ProducerClient } from "../../workers/cell-link/producer-client.js";
import { getJson } from "./http/http-load.js";
import type { ServiceProcess } from "./http/service-process.js";

const STEP_TYPES = ["safety_gate", "move_robot", "capture_frame", "move_robot", "capture_frame", "gripper"];

export interface ProducedProgram {
  id: string;
  name: string;
}

/** Puts a program of so many steps. */
export async function putProgram(client: ProducerClient, steps: number): Promise<ProducedProgram> {
  const id = generateUuidV7(Date.now(), randomBytes(10));
  const name = "Housing A, final inspection";
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
  return { id, name };
}

export interface RunPlan {
  program: ProducedProgram;
  serialNumber: string;
  steps: number;
  /** Entries of the event log, beside the service's own. */
  events: number;
  checks: number;
}

/** Sends one whole run that ends completed, without waiting for acknowledgements; gives its id. */
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
  for (let index = 1; index <= plan.steps; index++) {
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
  for (let i = 0; i < plan.checks; i++) {
    const value = 12 + random.normal() * 0.02;
    const judged = { status: "passed", value, nominal: 12, delta: value - 12, threshold: 0.1 };
    await say("check.add", { run_id: id, check: { name: `Bore ${i + 1} diameter`, ...judged } });
  }
  await say("run.finish", { id });
  return id;
}

/** Puts a program of so many steps and so many runs into a service that has none, and waits until readers see that all have completed. */
export async function fillService(
  service: ServiceProcess,
  seed: number,
  { steps, count }: { steps: number; count: number },
): Promise<{ client: ProducerClient; random: Random; program: ProducedProgram; ids: string[] }> {
  const client = await service.connect();
  const random = createRandom(seed);
  const program = await putProgram(client, steps);
  const ids: string[] = [];
  for (let i = 0; i < count; i++) {
    ids.push(await produceRun(client, random, { program, steps, serialNumber: `SN-${i}`, events: 2, checks: 4 }));
  }
  await waitUntil("the end of every run", async () => (await fetchTotal(service.url, "completed")) === ids.length);
  return { client, random, program, ids };
}

/** Creates a run that does not end. @returns what makes one change of it durable */
export async function beginChanges(
  client: ProducerClient,
  program: ProducedProgram,
): Promise<(nth: number) => Promise<void>> {
  const id = client.nextRunId();
  await client.deliver({ type: "run.create", id, program_id: program.id });
  return (nth) => client.deliver({ type: "event.add", run_id: id, event_type: "note", data: { nth } });
}

/** Does something so many times a second until the signal comes, and counts it. Less often if it takes longer. */
export async function paced(
  perSecond: number,
  signal: AbortSignal,
  act: (nth: number) => Promise<void>,
): Promise<number> {
  let acts = 0;
  for (; !signal.aborted; acts++) {
    await act(acts);
    await sleep(1000 / perSecond, undefined, { signal }).catch(() => {});
  }
  return acts;
}

/** How many runs have a status. */
export async function fetchTotal(base: string, status: string): Promise<number> {
  return (await getJson<{ total: number }>(`${base}/runs?status=${status}&limit=1`)).total;
}

const LOOK_MS = 10;

/** Asks until `condition` holds: readers see a write moments after its acknowledgement, and a run's end after its last message. */
export async function waitUntil(what: string, condition: () => Promise<boolean>, timeoutMs = 60_000): Promise<void> {
  const startMs = performance.now();
  while (!(await condition())) {
    if (performance.now() - startMs > timeoutMs) throw new Error(`${what} did not come about within ${timeoutMs} ms`);
    await sleep(LOOK_MS);
  }
}
