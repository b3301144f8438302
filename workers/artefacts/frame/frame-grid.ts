import { itemBytes, type Planes } from "../../../core/capture/capture.js";
import { type Grid, type GridGeometry, layOutGrid } from "../filter/grid-layout.js";
import type { KernelMemory } from "../kernel-memory.js";
import { heightDecoder } from "./height-decoder.js";
import { type LineSource, lineReader } from "./line-blocks.js";

/** How many bytes of raw lines are read at a time. */
const BLOCK_BYTES = 64 * 1024;

/** Loads the points of a frame, laid out for the filter. */
export async function loadGrid(
  memory: KernelMemory,
  height: Planes["height"],
  geometry: GridGeometry,
  heights: LineSource,
): Promise<Grid> {
  const grid = layOutGrid(memory, geometry);
  const { width, lines, zs, stride } = grid;
  const decode = heightDecoder(memory, height);
  const rawLines = lineReader(memory, itemBytes(height.dtype) * width, lines, heights, BLOCK_BYTES);
  await rawLines(0, lines, (line, rawAt) => decode(rawAt, width, zs + 4 * line * stride));
  return grid;
}
