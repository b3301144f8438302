import type { FrameGeometry } from "../answers.js";

/** Where the points of a frame lie. Columns and lines count from 0; x = xOriginMm + column * xPitchMm, y likewise with the line. */
export interface FrameGrid {
  readonly width: number;
  readonly lines: number;
  readonly xPitchMm: number;
  readonly yPitchMm: number;
  readonly xOriginMm: number;
  readonly yOriginMm: number;
}

/** @param shape of the frame's NPY: (lines, width) */
export function gridOf(geometry: FrameGeometry, shape: { lines: number; width: number }): FrameGrid {
  return {
    width: shape.width,
    lines: shape.lines,
    xPitchMm: geometry.x_pitch_mm,
    yPitchMm: geometry.y_pitch_mm,
    xOriginMm: geometry.x_origin_mm,
    yOriginMm: geometry.y_origin_mm,
  };
}

export function xMm(grid: FrameGrid, column: number): number {
  return grid.xOriginMm + column * grid.xPitchMm;
}

export function yMm(grid: FrameGrid, line: number): number {
  return grid.yOriginMm + line * grid.yPitchMm;
}

/** The column at an x, with its fraction. */
export function columnAt(grid: FrameGrid, x: number): number {
  return (x - grid.xOriginMm) / grid.xPitchMm;
}

export function lineAt(grid: FrameGrid, y: number): number {
  return (y - grid.yOriginMm) / grid.yPitchMm;
}

/** Pitches that differ by less came from different roundings of one setting: after 10,000 points they are 1/100 of a point apart. */
const PITCH_TOLERANCE = 1e-6;

/**
 * Why the points of two frames cannot be compared one by one, as a sentence; undefined if they can. Different origins are no reason: they
 * only say where the sensor was.
 */
export function gridDifference(here: FrameGrid, other: FrameGrid): string | undefined {
  const reasons: string[] = [];
  if (here.width !== other.width) reasons.push(`this frame has ${here.width} points a line, the other ${other.width}`);
  if (here.lines !== other.lines) reasons.push(`this frame has ${here.lines} lines, the other ${other.lines}`);
  for (const [name, pitch, otherPitch] of [
    ["x", here.xPitchMm, other.xPitchMm],
    ["y", here.yPitchMm, other.yPitchMm],
  ] as const) {
    if (Math.abs(pitch - otherPitch) > PITCH_TOLERANCE * Math.abs(pitch)) {
      reasons.push(`the pitch in ${name} is ${pitch} mm here and ${otherPitch} mm there`);
    }
  }
  return reasons.length === 0 ? undefined : `No difference can be shown: ${reasons.join("; ")}.`;
}

/** How far the other frame's origin is from this one's, as a sentence; undefined if they are the same. */
export function originDifference(here: FrameGrid, other: FrameGrid): string | undefined {
  const x = other.xOriginMm - here.xOriginMm;
  const y = other.yOriginMm - here.yOriginMm;
  if (x === 0 && y === 0) return undefined;
  const offset = [x, y].map((mm) => Number(mm.toFixed(6))).join(", ");
  return `The origins differ by ${offset} mm (x, y). Points with the same column and line are compared.`;
}
