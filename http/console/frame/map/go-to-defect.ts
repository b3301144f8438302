import type { FrameModel } from "../frame-model.js";
import { defectBounds, type FrameDefect } from "../measure/frame-defects.js";
import { fit, type Size } from "./viewport.js";

/** Around a defect that is gone to, in its own sizes: it is seen in its surroundings. */
const MARGIN = 2;
/** For the zoom only: the map's own size differs a little. */
const VIEW: Size = { width: 800, height: 600 };

/** Chooses a defect, and shows it with its surroundings. The cloud goes to the chosen defect by itself. */
export function goToDefect(model: FrameModel, defect: FrameDefect, isStep = false): void {
  const grid = model.here.value.value?.field.grid;
  const bounds = grid && defectBounds(defect, grid);
  if (grid === undefined || bounds === undefined) return;
  const { left, top, right, bottom } = bounds;
  const [marginX, marginY] = [(right - left) * MARGIN, (bottom - top) * MARGIN];
  const around = { left: left - marginX, top: top - marginY, right: right + marginX, bottom: bottom + marginY };
  const { centre, pixelsPerMm } = fit(grid, VIEW, around);
  model.change({ defect: defect.index, place: [...centre, pixelsPerMm] }, isStep);
}
