import type { HeightPlane } from "../answers.js";
import type { FrameGrid } from "./frame-grid.js";
import { NpyError, readNpy } from "./npy.js";

/** A frame decimated: value [i, j] is that of line firstLine + i * stride and column firstColumn + j * stride. */
export interface Overview {
  /** In mm, NaN where nothing was measured, by i * width + j. */
  readonly zMm: Float32Array;
  readonly width: number;
  readonly lines: number;
  readonly stride: number;
  readonly firstColumn: number;
  readonly firstLine: number;
  /** f32 is too coarse for the steps of these heights: only full lines tell them apart. */
  readonly isRounded?: boolean;
}

/** As many points as a view has pixels: the overview comes quickly, and the full lines in view follow. */
export const OVERVIEW_POINTS = 400_000;

/**
 * Reads `overview.npy`: f32 in mm. Its headers say which points it took.
 * @throws NpyError if it does not fit the grid of the frame
 */
export function readOverview(bytes: Uint8Array, headers: Headers, grid: FrameGrid): Overview {
  const { dtype, lines, width, values } = readNpy(bytes);
  const number = (name: string, absent: number): number => {
    const text = headers.get(name);
    return text === null || text === "" ? absent : Number(text);
  };
  const stride = number("x-stride", Number.NaN);
  const firstColumn = Math.round((number("x-x-origin-mm", grid.xOriginMm) - grid.xOriginMm) / grid.xPitchMm);
  const firstLine = Math.round((number("x-y-origin-mm", grid.yOriginMm) - grid.yOriginMm) / grid.yPitchMm);
  const isWithin =
    Number.isInteger(stride) &&
    stride >= 1 &&
    firstColumn >= 0 &&
    firstLine >= 0 &&
    firstColumn + (width - 1) * stride < grid.width &&
    firstLine + (lines - 1) * stride < grid.lines;
  if (!(values instanceof Float32Array) || !isWithin) {
    throw new NpyError(
      `the overview does not fit the frame: ${lines} x ${width} values of ${dtype}, stride ${headers.get("x-stride")}, ` +
        `for ${grid.lines} x ${grid.width} points`,
    );
  }
  return { zMm: values, width, lines, stride, firstColumn, firstLine };
}

/** Whether f32 loses steps of these heights, as it does where an offset takes them far from zero. */
export function losesSteps(zMm: Float32Array, { dtype, scale_mm, offset_mm }: HeightPlane): boolean {
  if (dtype === "f32") return offset_mm !== 0;
  return zMm.some((z) => Math.abs(z) > 2 ** 23 * Math.abs(scale_mm));
}

/** z in mm of the overview's point that is nearest to a column and a line of the frame. */
export function overviewHeight(overview: Overview, column: number, line: number): number {
  const { zMm, width, lines, stride, firstColumn, firstLine } = overview;
  const j = Math.min(width - 1, Math.max(0, Math.round((column - firstColumn) / stride)));
  const i = Math.min(lines - 1, Math.max(0, Math.round((line - firstLine) / stride)));
  return zMm[i * width + j] as number;
}
