import type { FrameModel } from "../frame-model.js";
import { defectBounds, type FrameDefect } from "../measure/frame-defects.js";
import { fit } from "./viewport.js";

/** How much of its surroundings a chosen defect is shown with, in multiples of its own size. */
const MARGIN = 2;

/** Chooses a defect, and shows it with its surroundings, but not more than all. The cloud goes to the chosen defect by itself. */
export function goToDefect(model: FrameModel, defect: FrameDefect, isStep = false): void {
  const grid = model.here.value.value?.field.grid;
  const bounds = grid && defectBounds(defect, grid);
  if (grid === undefined || bounds === undefined) return;
  const { left, top, right, bottom } = bounds;
  const [marginX, marginY] = [(right - left) * MARGIN, (bottom - top) * MARGIN];
  const around = { left: left - marginX, top: top - marginY, right: right + marginX, bottom: bottom + marginY };
  const { centre, pixelsPerMm } = fit(grid, model.mapSize, around);
  const isAll = pixelsPerMm <= fit(grid, model.mapSize).pixelsPerMm;
  model.change({ defect: defect.index, place: isAll ? undefined : [...centre, pixelsPerMm] }, isStep);
  // Last: the cloud then saves its camera beside the chosen defect.
  model.goings.value++;
}
