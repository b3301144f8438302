import { itemBytes, type Planes } from "../../core/capture.js";
import { type Grid, type GridGeometry, layOutGrid } from "./grid-layout.js";
import { heightDecoder } from "./height-decoder.js";
import type { KernelMemory } from "./kernel-memory.js";
import { type LineSource, lineReader } from "./line-blocks.js";

/** The points of a frame, laid out for the filter. */
export async function loadGrid(
  memory: KernelMemory,
  height: Planes["height"],
  geometry: GridGeometry,
  heights: LineSource,
): Promise<Grid> {
  const { width, lines } = geometry;
  const decode = heightDecoder(memory, height);
  const rawLines = lineReader(memory, itemBytes(height.dtype) * width, lines, heights);
  const grid = layOutGrid(memory, geometry);
  await rawLines(0, lines, (line, rawAt) => decode(rawAt, width, grid.zs + 4 * line * grid.stride));
  return grid;
}
