import type { HeightField } from "../heights/height-field.js";
import { type Size, toMap, type Viewport } from "./viewport.js";

/** The lines that a view needs in full: undefined if the overview shows as much, or if there are too many of them. */
export function wantedLines(
  size: Size,
  viewport: Viewport,
  field: HeightField,
): { first: number; end: number } | undefined {
  const { grid, overview, linesInMemory } = field;
  const pixelsPerColumn = viewport.pixelsPerMm * grid.xPitchMm;
  const pixelsPerLine = viewport.pixelsPerMm * grid.yPitchMm;
  const isFiner = Math.max(pixelsPerColumn, pixelsPerLine) * overview.stride > 1 && overview.stride > 1;
  if (!isFiner && overview.isRounded !== true) return undefined;
  const first = Math.max(0, Math.floor(toMap(viewport, grid, size, [0, 0])[1]));
  const end = Math.min(grid.lines, Math.ceil(toMap(viewport, grid, size, [0, size.height])[1]));
  return end > first && end - first <= linesInMemory ? { first, end } : undefined;
}
