import { packed, paletteStep } from "../measure/colour-map.js";
import type { HeightLayer } from "./map-layer.js";
import { type Size, toMap, type Viewport } from "./viewport.js";

/** What is no measurement is hatched in greys: no colour of a height looks like it, and it is told apart without colour. */
export const NO_MEASUREMENT = [packed(70, 74, 78), packed(104, 109, 114)] as const;
const HATCH_PIXELS = 3;
const OUTSIDE = 0;

/**
 * Draws heights into the pixels of a canvas. Each pixel shows the point under its middle: of the full line where that is in memory, else of the
 * overview. Pixels outside of the frame are transparent. @param viewport in pixels of the canvas
 */
export function drawHeights(pixels: Uint32Array, size: Size, viewport: Viewport, layer: HeightLayer): void {
  const { field, palette, range } = layer;
  const { grid, overview } = field;
  const [low, high] = [range?.low ?? 0, range?.high ?? 0];
  const columns = Int32Array.from({ length: size.width }, (_, x) =>
    Math.floor(toMap(viewport, grid, size, [x + 0.5, 0])[0]),
  );
  const coarse = Int32Array.from(columns, (column) =>
    nearestPlace(column, overview.firstColumn, overview.stride, overview.width),
  );
  for (let y = 0; y < size.height; y++) {
    const line = Math.floor(toMap(viewport, grid, size, [0, y + 0.5])[1]);
    const row = y * size.width;
    if (line < 0 || line >= grid.lines) {
      pixels.fill(OUTSIDE, row, row + size.width);
      continue;
    }
    const full = field.line(line);
    const coarseRow = nearestPlace(line, overview.firstLine, overview.stride, overview.lines) * overview.width;
    for (let x = 0; x < size.width; x++) {
      const column = columns[x] as number;
      if (column < 0 || column >= grid.width) {
        pixels[row + x] = OUTSIDE;
        continue;
      }
      const z = full === undefined ? (overview.zMm[coarseRow + (coarse[x] as number)] as number) : full.zMm(column);
      pixels[row + x] = Number.isNaN(z) ? hatch(x, y) : (palette[paletteStep(z, low, high)] as number);
    }
  }
}

function nearestPlace(at: number, first: number, stride: number, count: number): number {
  return Math.min(count - 1, Math.max(0, Math.round((at - first) / stride)));
}

function hatch(x: number, y: number): number {
  return NO_MEASUREMENT[Math.floor((x + y) / HATCH_PIXELS) & 1] as number;
}
