import type { PixelBox } from "../../../../core/run/defect-places.js";
import type { Point2 } from "../../../../core/run/oriented-box.js";
import type { FrameGrid } from "../heights/frame-grid.js";

/**
 * What a map shows. Map coordinates are those of boxes in pictures: the point in column c covers c up to c + 1. A millimetre is as long in x as
 * in y on the screen, so shapes are true.
 */
export interface Viewport {
  /** Map coordinates in the middle of the screen. */
  readonly centre: Point2;
  readonly pixelsPerMm: number;
}

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** The largest size of one point. If a view had only four points across, nobody could tell where they are. */
const MAX_POINT_PIXELS = 64;
const FIT_MARGIN_PIXELS = 12;

export function pixelsPerPoint(viewport: Viewport, grid: FrameGrid): Point2 {
  return [viewport.pixelsPerMm * grid.xPitchMm, viewport.pixelsPerMm * grid.yPitchMm];
}

export function toScreen(viewport: Viewport, grid: FrameGrid, size: Size, [u, v]: Point2): Point2 {
  const [perColumn, perLine] = pixelsPerPoint(viewport, grid);
  return [(u - viewport.centre[0]) * perColumn + size.width / 2, (v - viewport.centre[1]) * perLine + size.height / 2];
}

export function toMap(viewport: Viewport, grid: FrameGrid, size: Size, [x, y]: Point2): Point2 {
  const [perColumn, perLine] = pixelsPerPoint(viewport, grid);
  return [(x - size.width / 2) / perColumn + viewport.centre[0], (y - size.height / 2) / perLine + viewport.centre[1]];
}

/** Shows a box of the map whole, or the frame. */
export function fit(grid: FrameGrid, size: Size, box?: PixelBox): Viewport {
  const { left, top, right, bottom } = box ?? { left: 0, top: 0, right: grid.width, bottom: grid.lines };
  const widthMm = (right - left) * grid.xPitchMm;
  const heightMm = (bottom - top) * grid.yPitchMm;
  const pixelsPerMm = Math.min(
    Math.max(1, size.width - 2 * FIT_MARGIN_PIXELS) / widthMm,
    Math.max(1, size.height - 2 * FIT_MARGIN_PIXELS) / heightMm,
  );
  return clamped({ centre: [(left + right) / 2, (top + bottom) / 2], pixelsPerMm }, grid, size);
}

/** Zooms by a factor, while what lies under a place of the screen stays there. */
export function zoomed(viewport: Viewport, grid: FrameGrid, size: Size, factor: number, at: Point2): Viewport {
  const anchor = toMap(viewport, grid, size, at);
  const { pixelsPerMm } = clamped({ ...viewport, pixelsPerMm: viewport.pixelsPerMm * factor }, grid, size);
  const [perColumn, perLine] = pixelsPerPoint({ ...viewport, pixelsPerMm }, grid);
  const centre: Point2 = [
    anchor[0] - (at[0] - size.width / 2) / perColumn,
    anchor[1] - (at[1] - size.height / 2) / perLine,
  ];
  return clamped({ centre, pixelsPerMm }, grid, size);
}

/** Moves what is shown by pixels of the screen. */
export function panned(viewport: Viewport, grid: FrameGrid, size: Size, byX: number, byY: number): Viewport {
  const [perColumn, perLine] = pixelsPerPoint(viewport, grid);
  const centre: Point2 = [viewport.centre[0] - byX / perColumn, viewport.centre[1] - byY / perLine];
  return clamped({ ...viewport, centre }, grid, size);
}

/** Keeps the middle of the view on the frame, and the zoom between half of the frame's fit and the largest points. */
export function clamped(viewport: Viewport, grid: FrameGrid, size: Size): Viewport {
  const widthMm = grid.width * grid.xPitchMm;
  const heightMm = grid.lines * grid.yPitchMm;
  const most = MAX_POINT_PIXELS / Math.min(grid.xPitchMm, grid.yPitchMm);
  const least = Math.min(most, 0.5 * Math.min(size.width / widthMm, size.height / heightMm));
  return {
    centre: [
      Math.min(grid.width, Math.max(0, viewport.centre[0])),
      Math.min(grid.lines, Math.max(0, viewport.centre[1])),
    ],
    pixelsPerMm: Math.min(most, Math.max(least, viewport.pixelsPerMm)),
  };
}
