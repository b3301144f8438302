/** Preview pictures of frames, as blob: URLs: an <img> could not send the key. */
import { ApiError, apiFetch, getJson, type Run } from "./api.js";

type Formats = { available_formats: string[] };

/** Pictures that are kept; the oldest is then dropped. */
const KEPT = 200;
/** A browser opens six connections to a service; the page needs some of them itself. */
const AT_ONCE = 3;

const pictures = new Map<string, Promise<string | null>>();
const waiting: (() => void)[] = [];
let running = 0;

/** URL of the frame's preview; null if it has none (not yet, or not any more). @throws ApiError if the service cannot be asked */
export function framePreview(frameId: string): Promise<string | null> {
  const known = pictures.get(frameId);
  if (known !== undefined) return known;
  const picture = inTurn(() => readPreview(frameId));
  pictures.set(frameId, picture);
  // One that is missing now may be made a moment later.
  picture.then(
    (url) => url === null && pictures.delete(frameId),
    () => pictures.delete(frameId),
  );
  if (pictures.size > KEPT) dropOldest();
  return picture;
}

/** Ids of the run's frames, first captured first. Empty while it has none. */
export async function framesOf(runId: string): Promise<string[]> {
  const run = await inTurn(() => getJson<Run>(`/runs/${runId}`));
  return run.results?.frame_ids ?? [];
}

async function readPreview(frameId: string): Promise<string | null> {
  const path = `/sensor/frames/${encodeURIComponent(frameId)}`;
  try {
    // Asked first, so that a picture that is not there is no error in the browser's log.
    const { available_formats: formats } = await getJson<Formats>(`${path}/files`);
    if (!formats.includes("preview.png")) return null;
    const response = await apiFetch(`${path}/preview.png`);
    return URL.createObjectURL(await response.blob());
  } catch (error) {
    if (error instanceof ApiError && (error.status === 404 || error.status === 410)) return null;
    throw error;
  }
}

function dropOldest(): void {
  const [oldest] = pictures;
  if (oldest === undefined) return;
  pictures.delete(oldest[0]);
  void oldest[1].then((url) => url !== null && URL.revokeObjectURL(url)).catch(() => {});
}

/** Forgets all pictures. */
export function forgetPreviews(): void {
  while (pictures.size > 0) dropOldest();
}

async function inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
  if (running >= AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve));
  running++;
  try {
    return await work();
  } finally {
    running--;
    waiting.shift()?.();
  }
}
