/** Preview pictures of frames, read by `fetch`: an <img> could not send the key. */

import { turns } from "../turns.js";
import { ApiError, apiFetch, getJson, type RunFile } from "./api.js";

export interface Preview {
  readonly png: Blob;
  /** Millimetres across by millimetres down: a pixel need not be square. */
  readonly shape: number;
  /** Nothing was measured: it is transparent everywhere. */
  readonly isEmpty: boolean;
}

/** Why there is no picture. */
export type NoPreview = "none" | "removed" | "notShipped" | "damaged";

/** Pictures that are kept; the oldest is then dropped. */
const KEPT = 200;
/** A browser opens six connections to a service; the page needs some of them itself, and the reasons of runs have one. */
const inTurn = turns(3);

const pictures = new Map<string, Promise<Preview | NoPreview>>();

/** Whether a frame's height map was made, and is still there: then its preview is too. */
export function hasPreview(files: readonly RunFile[], frameId: string): boolean {
  return files.some(({ name, deleted_at: removedAt }) => name === `frame-${frameId}.png` && !removedAt);
}

/** The preview of a frame that had one. @throws ApiError if the service cannot be asked */
export function framePreview(frameId: string): Promise<Preview | NoPreview> {
  return inTurn(() => picture(frameId));
}

/** The preview of the run's first frame that has one. */
export function runPreview(runId: string): Promise<Preview | NoPreview> {
  // In one turn: the first picture must not wait until the files of all runs are known.
  return inTurn(async () => {
    const files = await getJson<RunFile[]>(`/runs/${runId}/files`);
    const first = files.find(({ frame_id: frameId }) => frameId && hasPreview(files, frameId));
    if (first?.frame_id) return picture(first.frame_id);
    return files.some(({ frame_id: frameId, deleted_at: removedAt }) => frameId && removedAt) ? "removed" : "none";
  });
}

function picture(frameId: string): Promise<Preview | NoPreview> {
  const known = pictures.get(frameId);
  if (known !== undefined) return known;
  const read = readPreview(frameId);
  pictures.set(frameId, read);
  read.then(
    (found) => typeof found === "string" && pictures.delete(frameId),
    () => pictures.delete(frameId),
  );
  const [oldest] = pictures.keys();
  if (oldest !== undefined && pictures.size > KEPT) pictures.delete(oldest);
  return read;
}

async function readPreview(frameId: string): Promise<Preview | NoPreview> {
  try {
    const response = await apiFetch(`/sensor/frames/${encodeURIComponent(frameId)}/preview.png`);
    const png = await response.blob();
    return { png, ...factsOf(new DataView(await png.arrayBuffer())) };
  } catch (error) {
    if (error instanceof ApiError && error.code === "not_shipped") return "notShipped";
    if (error instanceof ApiError && error.status === 404) return "removed";
    if (error instanceof ApiError && error.isDamage) return "damaged";
    throw error;
  }
}

/** Forgets all pictures. */
export function forgetPreviews(): void {
  pictures.clear();
}

/** What a preview says about itself: its size and its texts come before its pixels. */
function factsOf(png: DataView): Pick<Preview, "shape" | "isEmpty"> {
  const latin1 = (from: number, end: number) =>
    new TextDecoder("latin1").decode(new Uint8Array(png.buffer, from, end - from));
  const texts = new Map<string, string>();
  // After the signature come chunks. Each has a length, a type, data and a CRC.
  for (let at = 8; latin1(at + 4, at + 8) !== "IDAT"; at += 12 + png.getUint32(at)) {
    if (latin1(at + 4, at + 8) !== "tEXt") continue;
    const [keyword = "", text = ""] = latin1(at + 8, at + 8 + png.getUint32(at)).split("\0");
    texts.set(keyword, text);
  }
  const sizeMm = (axis: "x" | "y", pixels: number) => pixels * Number(texts.get(`${axis}_pitch_mm`));
  // The size is in the first chunk.
  return { shape: sizeMm("x", png.getUint32(16)) / sizeMm("y", png.getUint32(20)), isEmpty: !texts.has("z_min_mm") };
}
