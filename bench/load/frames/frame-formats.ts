import { setTimeout as sleep } from "node:timers/promises";
import { getOnce } from "../http/http-load.js";

/** Between two looks: what it costs the service does not show, and what it adds to a time is half of it. */
const LOOK_MS = 5;
const TIMEOUT_MS = 60_000;

/**
 * When the last of the run's formats was made, in ms of the wall clock: the manifest tells afterwards, so that nobody has to ask while something is
 * measured.
 */
export async function formatsMadeMs(base: string, runId: string): Promise<number> {
  const { body } = await getOnce(`${base}/runs/${runId}/files`);
  const files = JSON.parse(body.toString()) as { frame_id: string | null; created_at: string }[];
  return Math.max(...files.filter((file) => file.frame_id !== null).map((file) => Date.parse(file.created_at)));
}

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
