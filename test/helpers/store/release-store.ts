import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Test } from "tap";
import { ServiceProcess } from "../process/service-process.js";

/** One folder for each release: the store that it wrote, and what it answered then. */
export const RELEASES_FOLDER = "test/golden/releases";

/** Copies a kept store to where a service may write to it. */
export function copyReleaseStore(from: string, to: string): void {
  cpSync(from, to, { recursive: true });
  // Git keeps no empty folders.
  for (const folder of ["captures", "quarantine"]) mkdirSync(join(to, folder), { recursive: true });
}

/** What a service on this store answers, by path: runs and what belongs to them, programs, webhooks and deliveries. */
export async function answersOf(dataDirectory: string, t?: Test): Promise<Record<string, unknown>> {
  const options = { args: ["serve", "--base-url", "http://cell.example"], dataDirectory };
  const service = t === undefined ? await ServiceProcess.start(options) : await ServiceProcess.startFor(t, options);
  const answers: Record<string, unknown> = {};
  const get = async <T>(path: string): Promise<T> => {
    const answer = await (await fetch(`http://127.0.0.1:${service.port}${path}`)).json();
    answers[path] = answer;
    return answer as T;
  };
  const { runs } = await get<{ runs: { id: string }[] }>("/runs?limit=1000");
  for (const { id } of runs) {
    for (const part of ["", "/quality-report", "/defects", "/files"]) await get(`/runs/${id}${part}`);
  }
  await get("/programs");
  const webhooks = await get<Record<string, unknown>[]>("/webhooks");
  for (const webhook of webhooks) {
    // It counts from now.
    delete webhook.deliveries_24h;
    await get(`/webhooks/${webhook.id}/deliveries`);
  }
  if ((await service.end()).code !== 0) throw new Error("the service did not stop as it should");
  return answers;
}
