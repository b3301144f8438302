import { localTime, utcTime } from "../../data/times.js";
import type { Frame, RunFile } from "../answers.js";
import { gridOf } from "./frame-grid.js";
import { FrameProblem, problemOf } from "./frame-problem.js";
import { FrameField } from "./height-field.js";
import { heightInMm } from "./height-in-mm.js";
import { HEADER_BYTES, NpyError, readNpyHeader } from "./npy.js";
import { losesSteps, OVERVIEW_POINTS, readOverview } from "./overview.js";
import { type ReadBytes, RowStore } from "./row-store.js";

/** Requests a path of the service, with the page's key. Rejects if the answer is not a 2xx. */
export type Get = (path: string, init: RequestInit) => Promise<Response>;

export interface OpenFrame {
  readonly frame: Frame;
  readonly field: FrameField;
  readonly rows: RowStore;
}

/** All bytes of an answer. @throws FrameProblem; what the signal throws if it aborts */
export async function readBytes(
  get: Get,
  path: string,
  what: string,
  signal: AbortSignal,
  headers: Record<string, string> = {},
): Promise<{ bytes: Uint8Array; response: Response }> {
  try {
    const response = await get(path, { signal, headers });
    return { bytes: new Uint8Array(await response.arrayBuffer()), response };
  } catch (error) {
    signal.throwIfAborted();
    throw problemOf(error, what);
  }
}

/** @throws FrameProblem; what the signal throws if it aborts */
export async function readJson<T>(get: Get, path: string, what: string, signal: AbortSignal): Promise<T> {
  const { bytes } = await readBytes(get, path, what, signal);
  return JSON.parse(new TextDecoder().decode(bytes)) as T;
}

/** Reads ranges of a file. @throws FrameProblem if the answer is not the range that was asked for */
function rangeReader(get: Get, path: string, what: string): ReadBytes {
  return async (first, end, signal) => {
    const headers = { Range: `bytes=${first}-${end - 1}` };
    const { bytes, response } = await readBytes(get, path, what, signal, headers);
    // A proxy may not know ranges, and give all of the file.
    const part = response.status === 200 ? bytes.subarray(first, end) : bytes;
    if (part.length !== end - first) throw problemOf(undefined, what);
    return part;
  };
}

/**
 * Opens a frame: what it is, its overview, and a store for its lines. Every failure is a FrameProblem with a sentence for the page.
 * @throws FrameProblem
 */
export async function openFrame(get: Get, frameId: string, signal: AbortSignal): Promise<OpenFrame> {
  const base = `/sensor/frames/${encodeURIComponent(frameId)}`;
  const npyPath = `${base}/file.npy`;
  const head = { Range: `bytes=0-${HEADER_BYTES - 1}` };
  // The heights are requested together with the frame: this saves a round trip.
  const heights = Promise.all([
    readBytes(get, npyPath, "the heights", signal, head),
    readBytes(get, `${base}/overview.npy?points=${OVERVIEW_POINTS}`, "the heights", signal),
  ]);
  heights.catch(() => {});
  const frame = await readJson<Frame>(get, base, "the frame", signal);
  try {
    const [start, served] = await withRemoval(get, frame, signal, () => heights);
    const header = readNpyHeader(start.bytes);
    if (header.lines === 0 || header.width === 0) throw new FrameProblem("This frame has no points.");
    const range = rangeReader(get, npyPath, "the heights");
    const rows = new RowStore(header, (...bytes) => withRemoval(get, frame, bytes[2], () => range(...bytes)));
    const grid = gridOf(frame.geometry, header);
    const toMm = heightInMm(frame.geometry.height);
    const read = readOverview(served.bytes, served.response.headers, grid);
    const overview = { ...read, isRounded: losesSteps(read.zMm, frame.geometry.height) };
    return { frame, rows, field: new FrameField(grid, overview, rows, toMm) };
  } catch (error) {
    if (error instanceof NpyError) throw new FrameProblem(`The heights cannot be read: ${error.message}.`);
    throw error;
  }
}

/**
 * What `read` gives of a frame. If it fails because retention removed the capture, even after the page was opened, the run's list of files says when:
 * that is the better reason. @throws FrameProblem
 */
export async function withRemoval<T>(get: Get, frame: Frame, signal: AbortSignal, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw error instanceof FrameProblem && !error.isPassing ? await removalOf(get, frame, signal, error) : error;
  }
}

async function removalOf(get: Get, frame: Frame, signal: AbortSignal, problem: FrameProblem): Promise<FrameProblem> {
  const files = await readJson<RunFile[]>(get, `/runs/${frame.run_id}/files`, "the files", signal).catch(() => []);
  const removedAt = files.find((file) => file.frame_id === frame.id && (file.deleted_at ?? null) !== null)?.deleted_at;
  if (removedAt === undefined || removedAt === null) return problem;
  const at = `${localTime(removedAt)} (${utcTime(removedAt)})`;
  return new FrameProblem(`Retention removed this capture at ${at}. The run's report stays.`);
}
