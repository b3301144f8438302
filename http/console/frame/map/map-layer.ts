import type { FrameGrid } from "../heights/frame-grid.js";
import type { HeightField } from "../heights/height-field.js";
import type { Palette } from "../measure/colour-map.js";
import type { HeightRange } from "../measure/height-range.js";
import type { Luminance } from "./luminance.js";

/** What a map draws. */
export type MapLayer = HeightLayer | LuminanceLayer;

export interface HeightLayer {
  readonly kind: "heights";
  readonly field: HeightField;
  readonly palette: Palette;
  /** Undefined if nothing was measured. */
  readonly range: HeightRange | undefined;
}

export interface LuminanceLayer {
  readonly kind: "luminance";
  readonly grid: FrameGrid;
  readonly luminance: Luminance;
}

export function gridOfLayer(layer: MapLayer): FrameGrid {
  return layer.kind === "heights" ? layer.field.grid : layer.grid;
}
