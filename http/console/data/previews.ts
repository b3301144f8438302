/** Preview pictures of frames, as blob: URLs: an <img> could not send the key. */
import { ApiError, apiFetch, getJson, type RunFile } from "./api.js";

/** Pictures that are kept; the oldest is then dropped. */
const KEPT = 200;
/** A browser opens six connections to a service; the page needs some of them itself. */
const AT_ONCE = 3;

const pictures = new Map<string, Promise<string | null>>();
const waiting: (() => void)[] = [];
let running = 0;

/** Whether a frame's height map was made, and is still there: then its preview is too. */
export function hasPreview(files: readonly RunFile[], frameId: string): boolean {
  return files.some(({ name, deleted_at: removedAt }) => name === `frame-${frameId}.png` && !removedAt);
}

/** URL of the frame's preview; null if it is gone. @throws ApiError if the service cannot be asked */
export function framePreview(frameId: string): Promise<string | null> {
  return inTurn(() => picture(frameId));
}

/** The preview of the run's first frame; null if it has none (not yet, or not any more). */
export function runPreview(runId: string): Promise<string | null> {
  // In one turn: the first picture must not wait until the files of all runs are known.
  return inTurn(async () => {
    const files = await getJson<RunFile[]>(`/runs/${runId}/files`);
    const first = files.find(({ frame_id: frameId }) => frameId && hasPreview(files, frameId));
    return first?.frame_id ? picture(first.frame_id) : null;
  });
}

function picture(frameId: string): Promise<string | null> {
  const known = pictures.get(frameId);
  if (known !== undefined) return known;
  const read = readPreview(frameId);
  pictures.set(frameId, read);
  read.then(
    (url) => url === null && pictures.delete(frameId),
    () => pictures.delete(frameId),
  );
  if (pictures.size > KEPT) dropOldest();
  return read;
}

async function readPreview(frameId: string): Promise<string | null> {
  try {
    const response = await apiFetch(`/sensor/frames/${encodeURIComponent(frameId)}/preview.png`);
    return URL.createObjectURL(await response.blob());
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
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
