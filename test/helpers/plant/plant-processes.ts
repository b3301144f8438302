import { setTimeout } from "node:timers/promises";
import type { Test } from "tap";
import { startDemo } from "../process/demo-results.js";
import { ServiceProcess } from "../process/service-process.js";
import type { NatsServer } from "./nats-server.js";

/** What links start with, at every hub: so their answers can be compared byte by byte. */
const BASE_URL = "http://plant";

export interface Answer {
  status: number;
  text: string;
}

export async function get(service: ServiceProcess, path: string): Promise<Answer> {
  const response = await fetch(`http://127.0.0.1:${service.port}${path}`);
  return { status: response.status, text: await response.text() };
}

export async function getJson<T>(service: ServiceProcess, path: string): Promise<T> {
  return JSON.parse((await get(service, path)).text) as T;
}

const WAIT_MS = 120_000;

/** Looks until the condition holds; fails the test after two minutes. */
export async function until(t: Test, what: string, condition: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + WAIT_MS;
  while (!(await condition())) {
    if (performance.now() > endMs) return void t.fail(`still waiting: ${what}`);
    await setTimeout(30);
  }
}

/** A cell that has made so many runs, all of them in the plant. */
export async function startCell(
  t: Test,
  server: NatsServer,
  { cell, runs, seed }: { cell: string; runs: number; seed: number },
): Promise<ServiceProcess> {
  const args = ["demo", "--runs", String(runs), "--seed", String(seed), "--plant", server.url, "--cell", cell];
  const service = await startDemo(t, { args: [...args, "--base-url", BASE_URL] });
  await untilShipped(t, service, runs);
  return service;
}

/** Waits until so many runs have ended, no delivery is tried again, and everything is in the plant. */
export async function untilShipped(t: Test, cell: ServiceProcess, runs: number): Promise<void> {
  const statuses = ["completed", "failed", "cancelled"];
  await until(t, `${runs} runs`, async () => {
    const lists = statuses.map((status) => getJson<{ total: number }>(cell, `/runs?status=${status}&limit=1`));
    return (await Promise.all(lists)).reduce((sum, { total }) => sum + total, 0) >= runs;
  });
  let before = "";
  await until(t, "all is shipped", async () => {
    const { text } = await get(cell, "/metrics");
    const shipped = /^inspection_plant_shipped_sequence (\d+)$/m.exec(text)?.[1] ?? "";
    const isDone = ["plant_lag_records", "webhook_waiting"].every((name) => text.includes(`\ninspection_${name} 0\n`));
    const isIdle = isDone && shipped === before;
    before = shipped;
    if (!isIdle) await setTimeout(300);
    return isIdle;
  });
}

export function startHub(t: Test, server: NatsServer, dataDirectory?: string): Promise<ServiceProcess> {
  const args = ["hub", "--plant", server.url, "--base-url", BASE_URL];
  return ServiceProcess.startFor(t, { args, ...(dataDirectory !== undefined && { dataDirectory }) });
}

/** The last message of the log stream that the hub has taken is this one, at least, and shown. */
export async function untilCaughtUp(t: Test, hub: ServiceProcess, runs: number): Promise<void> {
  await until(t, "the hub is alive", async () => (await get(hub, "/livez")).text === '{"status":"alive"}');
  await until(t, `${runs} runs at the hub`, async () => {
    return (await getJson<{ total: number }>(hub, "/runs?limit=1")).total === runs;
  });
}
