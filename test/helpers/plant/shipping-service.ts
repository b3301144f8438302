import { setTimeout } from "node:timers/promises";
import { CAPTURE_STREAM } from "../../../workers/plant/capture-message.js";
import type { NatsServer } from "./nats-server.js";

/** Waits until so many runs of the service have ended, and nothing of them is left to ship: two looks find the same. */
export async function untilShippedWhole(port: number, runs: number, server: NatsServer): Promise<void> {
  const get = (path: string) => fetch(`http://127.0.0.1:${port}${path}`);
  let last = "";
  for (let looks = 0; looks < 1500; looks++) {
    const metrics = await (await get("/metrics")).text();
    const page = (await (await get("/runs?limit=50")).json()) as { runs: { status: string }[] };
    const ended = page.runs.filter(({ status }) => ["completed", "failed", "cancelled"].includes(status)).length;
    const captures = await server.with((client) => client.streamState(CAPTURE_STREAM));
    const bytes = /^inspection_plant_capture_bytes \d+$/m.exec(metrics)?.[0];
    const now = JSON.stringify([bytes, captures?.messages, ended]);
    const isShipped = /^inspection_plant_lag_records 0$/m.test(metrics);
    if (ended >= runs && isShipped && now === last && (captures?.messages ?? 0) > 0) return;
    last = now;
    await setTimeout(400);
  }
  throw new Error(`still not shipped: ${last}`);
}
