import type { ContractClient } from "../http/contract-client.js";
import { isFullSize } from "../test-size.js";
import { type ProcessOptions, ServiceProcess } from "./service-process.js";

/** Make the cell of a demo's process quick. */
export const QUICK_NODE_OPTIONS = `--import ${new URL("./quick-demo-cell.js", import.meta.url).href}`;

/** For a demo's process in a commit's size, which has no time for a cell at its real pace. */
export const QUICK_CELL: Readonly<Record<string, string>> = isFullSize ? {} : { NODE_OPTIONS: QUICK_NODE_OPTIONS };

/** As `ServiceProcess.startFor`, with a cell that is quick in a commit's size. */
export function startDemo(t: Parameters<typeof ServiceProcess.startFor>[0], options: ProcessOptions = {}) {
  return ServiceProcess.startFor(t, { ...options, environment: QUICK_CELL });
}

/** The ids of so many runs, oldest first, once all have ended. */
export async function endedRuns(client: ContractClient, count: number): Promise<string[]> {
  const { runs } = await client.until(
    "/runs",
    (list) => list.total >= count && list.runs.every(({ completed_at: at }) => at !== null && at !== undefined),
  );
  return runs.map(({ id }) => id).reverse();
}

/** The webhook's deliveries, once there are so many and none is pending. */
export function settledDeliveries(client: ContractClient, webhookId: string, count: number) {
  return client.until(
    "/webhooks/{webhook_id}/deliveries",
    (listed) => listed.length >= count && listed.every(({ status }) => status !== "pending"),
    { path: { webhook_id: webhookId } },
  );
}
