import type { Frame } from "../answers.js";
import { FrameProblem } from "../heights/frame-problem.js";
import { type Get, readBytes } from "../heights/frame-source.js";
import { type Cloud, readCloud, removedPoints } from "./ply-cloud.js";

/** A cloud, and for each point whether the filter removed it, if that was asked for. */
export interface Clouds {
  readonly cloud: Cloud;
  readonly removed: Uint8Array | undefined;
}

export type WantedClouds = "filtered" | "raw" | "both";

/** A browser holds so many points twice, as file and as coordinates, and no graphics card draws more. */
const MAX_POINTS = 24_000_000;

/** @throws FrameProblem */
export async function readClouds(get: Get, frame: Frame, wanted: WantedClouds, signal: AbortSignal): Promise<Clouds> {
  const points = (frame.width ?? 0) * (frame.height ?? 0);
  if (points > MAX_POINTS) {
    throw new FrameProblem(
      `This frame has ${points} points: a browser shows up to ${MAX_POINTS}. Load the PLY file instead.`,
    );
  }
  const read = async (format: string, what: string): Promise<Cloud> => {
    const { bytes } = await readBytes(get, `/sensor/frames/${frame.id}/file.${format}`, what, signal);
    try {
      return readCloud(bytes);
    } catch (error) {
      throw new FrameProblem(`${what} cannot be read: ${(error as Error).message}.`);
    }
  };
  const raw = () => read("raw.ply", "the raw cloud");
  const filtered = () => read("ply", "the filtered cloud");
  if (wanted !== "both") return { cloud: await (wanted === "raw" ? raw : filtered)(), removed: undefined };
  const [cloud, kept] = await Promise.all([raw(), filtered()]);
  return { cloud, removed: removedPoints(cloud, kept) };
}
