import { itemBytes, type Planes } from "../../../core/capture/capture.js";
import { type Grid, type GridGeometry, layOutGrid } from "../filter/grid-layout.js";
import type { KernelMemory } from "../kernel-memory.js";
import { heightDecoder } from "./height-decoder.js";
import { type LineSource, lineReader } from "./line-blocks.js";

/** How many bytes of raw lines are read at a time. */
const BLOCK_BYTES = 64 * 1024;
/** An allocation takes at most so many bytes more than it was asked for. */
const ALLOCATION_BYTES = 32;

/** Loads the points of a frame, laid out for the filter. */
export async function loadGrid(
  memory: KernelMemory,
  height: Planes["height"],
  geometry: GridGeometry,
  heights: LineSource,
): Promise<Grid> {
  const grid = layOutGrid(memory, geometry);
  await loadLines(memory, height, grid, heights, 0, geometry.lines);
  return grid;
}

/** Bytes of the memory that `loadLines` takes. */
export function loadingBytes({ dtype, invalid }: Planes["height"], width: number): number {
  const lineBytes = itemBytes(dtype) * width;
  return Math.max(BLOCK_BYTES, lineBytes) + 4 * Math.max(1, invalid.length) + 2 * ALLOCATION_BYTES;
}

/** Loads some lines of points into a grid. */
export async function loadLines(
  memory: KernelMemory,
  height: Planes["height"],
  grid: Grid,
  heights: LineSource,
  firstLine: number,
  endLine: number,
): Promise<void> {
  const { width, zs, stride } = grid;
  const decode = heightDecoder(memory, height);
  const lineBytes = itemBytes(height.dtype) * width;
  const rawLines = lineReader(memory, lineBytes, endLine - firstLine, heights, BLOCK_BYTES);
  await rawLines(firstLine, endLine - firstLine, (nth, rawAt) =>
    decode(rawAt, width, zs + 4 * (firstLine + nth) * stride),
  );
}
