import type { Test } from "tap";
import type { EventName } from "../../../core/webhook/webhook.js";
import type { components } from "../../../http/client/interface-types.js";
import { ProducerClient, type ProducerClientOptions } from "../../../workers/cell-link/producer-client.js";
import { ContractClient } from "../http/contract-client.js";
import { ServiceProcess } from "../process/service-process.js";

export const UNKNOWN_ID = "019b76da-a800-7000-8000-0000000000ff";
export const ALL_EVENTS: EventName[] = ["ProgramStarted", "ProgramCompleted", "ProgramFailed", "ProgramCancelled"];
export const SECRET = "whsec_aHVzaGh1c2hodXNo";
export const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$/;
export const PROGRAM_ID = "019b76da-a800-7000-8000-000000000001";

export async function start(t: Test, args: readonly string[] = [], dataDirectory?: string) {
  const service = await ServiceProcess.startFor(t, {
    args: ["serve", ...args],
    ...(dataDirectory !== undefined && { dataDirectory }),
  });
  return { service, client: new ContractClient(t, service.port) };
}

/** A webhook of the name `mes`. @param more its other fields */
export const subscribe = (
  client: ContractClient,
  url: string,
  subscribed_events: EventName[],
  more: Partial<components["schemas"]["CreateWebhookRequest"]> = {},
) => client.post("/webhooks", { body: { name: "mes", url, subscribed_events, ...more } });

/** A producer that has declared its cell and its program. */
export async function producerOf(
  t: Test,
  service: ServiceProcess,
  options: Partial<ProducerClientOptions> = {},
): Promise<ProducerClient> {
  const address = { path: service.cellSocketPath };
  const producer = new ProducerClient({ address, producer: "cell", ...options });
  t.teardown(() => producer.destroy());
  await producer.welcomed();
  await producer.deliver({ type: "cell.put", kiosk_serial_number: "K-7", unit_system: "imperial" });
  await producer.deliver({
    type: "program.put",
    program: { id: PROGRAM_ID, name: "Disc", status: "active", robot_ids: ["r1", "r2"], steps: [{ type: "wait" }] },
  });
  return producer;
}

export async function createRun(producer: ProducerClient): Promise<string> {
  const id = producer.nextRunId();
  await producer.deliver({ type: "run.create", id, program_id: PROGRAM_ID, serial_number: "S-1" });
  await producer.deliver({ type: "run.start", id });
  return id;
}

export async function completedRun(producer: ProducerClient): Promise<string> {
  const id = await createRun(producer);
  const check = { name: "gap", status: "passed", value: 25.4, nominal: 50.8, delta: -25.4, threshold: 2.54 };
  await producer.deliver({ type: "check.add", run_id: id, check });
  await producer.deliver({ type: "defect.add", run_id: id, defect: { type: "dent" } });
  const report = { type: "file.put", run_id: id, name: "r.pdf", file_type: "report", content_type: "application/pdf" };
  await producer.deliver(report, Buffer.from("%PDF"));
  await producer.deliver({ type: "run.finish", id });
  return id;
}
