import { setTimeout as sleep } from "node:timers/promises";
import { getOnce } from "./http-load.js";

/** Between two looks: what it costs the service does not show, and what it adds to a time is half of it. */
const LOOK_MS = 5;
const TIMEOUT_MS = 60_000;

/** Resolves when the frame is available in so many formats. */
export async function whenFormats(base: string, frameId: string, count: number): Promise<void> {
  const url = `${base}/sensor/frames/${frameId}/files`;
  const startMs = performance.now();
  for (;;) {
    const { status, body } = await getOnce(url);
    if (status === 200) {
      const { available_formats: formats } = JSON.parse(body.toString()) as { available_formats: string[] };
      if (formats.length >= count) return;
    }
    if (performance.now() - startMs > TIMEOUT_MS) throw new Error(`${url} does not list ${count} formats`);
    await sleep(LOOK_MS);
  }
}
