import { getJson, getOnce } from "../http/http-load.js";
import { waitUntil } from "../run-producer.js";

/** npy, raw.ply, ply, png, luminance.png */
const FORMATS = 5;

/**
 * When the last of the run's formats was made, in ms of the wall clock: the manifest tells it afterwards, so that nobody has to ask while
 * something is measured.
 */
export async function formatsMadeMs(base: string, runId: string): Promise<number> {
  const files = await getJson<{ frame_id: string | null; created_at: string }[]>(`${base}/runs/${runId}/files`);
  return Math.max(...files.filter((file) => file.frame_id !== null).map((file) => Date.parse(file.created_at)));
}

/** Resolves when the frame is available in all of its formats. */
export function whenFormats(base: string, frameId: string): Promise<void> {
  return waitUntil("all formats of a frame", async () => {
    const { status, body } = await getOnce(`${base}/sensor/frames/${frameId}/files`);
    if (status !== 200) return false;
    const { available_formats: formats } = JSON.parse(body.toString()) as { available_formats: string[] };
    return formats.length >= FORMATS;
  });
}
