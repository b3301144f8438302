import { type DefectPlaces, defectPlaces, frameTest, type PixelBox } from "../../../../core/run/defect-places.js";
import { boxFootprint, type OrientedBox, type Point2 } from "../../../../core/run/oriented-box.js";
import type { Defect, RunFile } from "../answers.js";
import { columnAt, type FrameGrid, lineAt, xMm, yMm } from "../heights/frame-grid.js";
import { type Overview, overviewHeight } from "../heights/overview.js";

/** A defect of the run, with its places in this frame. */
export interface FrameDefect extends DefectPlaces {
  /** Its place in the run's list. */
  readonly index: number;
  readonly defect: Defect;
}

/** Finds the places of a run's defects in one frame. */
export function frameDefects(
  defects: readonly Defect[],
  frameId: string,
  files: readonly RunFile[],
  frameIds: readonly string[],
): FrameDefect[] {
  const isHere = frameTest(frameId, frameIds.length, (file) => {
    const entry = files.find(({ name }) => name === file);
    return entry && (entry.frame_id ?? null);
  });
  return defects.map((defect, index) => ({ index, defect, ...defectPlaces(defect, isHere) }));
}

/** What the box in space covers in the picture, in pixels, where the middle of the first point is at 0.5, 0.5. */
export function footprintInPixels(box: OrientedBox, grid: FrameGrid): Point2[] {
  return boxFootprint(box).map(([x, y]) => [columnAt(grid, x) + 0.5, lineAt(grid, y) + 0.5]);
}

/** A box in space around a box in the picture, for the cloud: as wide as its pixels, and as high as the surface within. */
export function boxOverPixels(box: PixelBox, grid: FrameGrid, overview: Overview): OrientedBox | undefined {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  // A producer's box may be larger than any frame.
  const [bottomLine, rightColumn] = [Math.min(box.bottom, grid.lines), Math.min(box.right, grid.width)];
  for (let line = Math.max(0, Math.floor(box.top)); line < bottomLine; line += overview.stride) {
    for (let column = Math.max(0, Math.floor(box.left)); column < rightColumn; column += overview.stride) {
      const z = overviewHeight(overview, column, line);
      if (z < low) low = z;
      if (z > high) high = z;
    }
  }
  if (low > high) return undefined;
  const [left, right] = [xMm(grid, box.left - 0.5), xMm(grid, box.right - 0.5)];
  const [top, bottom] = [yMm(grid, box.top - 0.5), yMm(grid, box.bottom - 0.5)];
  return {
    centre: [(left + right) / 2, (top + bottom) / 2, (low + high) / 2],
    extents: [right - left, bottom - top, high - low],
    orientation: [0, 0, 0, 1],
  };
}

/** The smallest pixel box around all places of a defect; undefined if it has none in this frame. */
export function defectBounds({ box2d, box3d }: FrameDefect, grid: FrameGrid): PixelBox | undefined {
  const points: Point2[] = box3d === undefined ? [] : footprintInPixels(box3d, grid);
  if (box2d !== undefined) points.push([box2d.left, box2d.top], [box2d.right, box2d.bottom]);
  if (points.length === 0) return undefined;
  const columns = points.map(([column]) => column);
  const lines = points.map(([, line]) => line);
  return {
    left: Math.min(...columns),
    top: Math.min(...lines),
    right: Math.max(...columns),
    bottom: Math.max(...lines),
  };
}

/** The defect that is meant by a click there. Of several it is the smallest, which could not be clicked otherwise. */
export function defectAt(defects: readonly FrameDefect[], grid: FrameGrid, [u, v]: Point2): FrameDefect | undefined {
  let found: FrameDefect | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const defect of defects) {
    const bounds = defectBounds(defect, grid);
    if (bounds === undefined) continue;
    const { left, top, right, bottom } = bounds;
    const isIn = u >= left && u < right && v >= top && v < bottom;
    const area = (right - left) * (bottom - top);
    if (isIn && area < least) [found, least] = [defect, area];
  }
  return found;
}
