import { type FrameGrid, xMm, yMm } from "../heights/frame-grid.js";
import type { HeightField } from "../heights/height-field.js";

/** A point of the grid; fractions lie between points. The centre of the first point is 0, 0. */
export interface GridPoint {
  readonly column: number;
  readonly line: number;
}

export interface CutLine {
  readonly from: GridPoint;
  readonly to: GridPoint;
}

/** The heights along a cut line, one value a sample. */
export interface Profile {
  /** From the beginning of the cut line to the sample's place on it. */
  readonly distanceMm: Float64Array;
  /** Column and line of the measured point that the sample takes. */
  readonly columns: Int32Array;
  readonly lines: Int32Array;
  /** NaN where nothing was measured. */
  readonly zMm: Float64Array;
}

/** The samples at which the two cursors are; at first a quarter of the line from its ends. */
export function cursorsOn({ zMm }: Profile, cursors: readonly [number, number] | undefined): readonly [number, number] {
  const last = zMm.length - 1;
  const [first, second] = cursors ?? [Math.round(last / 4), Math.round((3 * last) / 4)];
  return [Math.min(first, last), Math.min(second, last)];
}

/** The most samples: those of a line from corner to corner of the largest frame. */
const MAX_SAMPLES = 300_000;

/** How many samples a cut line has: one more than its length in points, rounded up. */
export function sampleCount({ from, to }: CutLine): number {
  const length = lengthOf(to.column - from.column, to.line - from.line);
  return Math.min(MAX_SAMPLES, Math.ceil(length) + 1);
}

/**
 * Where the samples lie. They divide the line into equal parts, both ends included, as numpy.linspace does. Each takes the nearest measured
 * point, floor(place + 0.5), so every height in the profile is one that the sensor gave: nothing is interpolated. In numpy:
 *
 *     length = lambda x, y: np.sqrt(x * x + y * y)
 *     n = int(np.ceil(length(c1 - c0, l1 - l0))) + 1
 *     columns = np.floor(np.linspace(c0, c1, n) + 0.5).astype(int)
 *     lines = np.floor(np.linspace(l0, l1, n) + 0.5).astype(int)
 *     profile = z_mm[lines, columns]
 *     distance_mm = np.linspace(0, length((c1 - c0) * x_pitch_mm, (l1 - l0) * y_pitch_mm), n)
 */
export function samplePlaces(cut: CutLine, grid: FrameGrid): Omit<Profile, "zMm"> {
  const { from, to } = cut;
  const count = sampleCount(cut);
  const lengthMm = lengthOf((to.column - from.column) * grid.xPitchMm, (to.line - from.line) * grid.yPitchMm);
  const columns = evenly(from.column, to.column, count);
  const lines = evenly(from.line, to.line, count);
  return {
    distanceMm: evenly(0, lengthMm, count),
    columns: Int32Array.from(columns, (column) => nearest(column, grid.width)),
    lines: Int32Array.from(lines, (line) => nearest(line, grid.lines)),
  };
}

/** Math.hypot is not used, because its last bit differs between engines. */
function lengthOf(x: number, y: number): number {
  return Math.sqrt(x * x + y * y);
}

/** As numpy.linspace computes it. */
function evenly(from: number, to: number, count: number): Float64Array {
  if (count === 1) return Float64Array.of(from);
  const step = (to - from) / (count - 1);
  const values = Float64Array.from({ length: count }, (_, at) => at * step + from);
  values[count - 1] = to;
  return values;
}

function nearest(place: number, count: number): number {
  return Math.min(count - 1, Math.max(0, Math.floor(place + 0.5)));
}

/** Loads the lines that the cut crosses, as many at a time as memory holds, and takes their heights. */
export async function readProfile(field: HeightField, cut: CutLine, signal: AbortSignal): Promise<Profile> {
  const places = samplePlaces(cut, field.grid);
  const zMm = new Float64Array(places.lines.length);
  const { lines, columns } = places;
  // The lines of neighbouring samples are neighbours: each step takes the samples whose lines are in memory together.
  let at = 0;
  while (at < lines.length) {
    const [low, high, end] = span(lines, at, field.linesInMemory);
    const lineAt = await field.load(low, high + 1, signal);
    for (; at < end; at++) zMm[at] = lineAt(lines[at] as number).zMm(columns[at] as number);
  }
  return { ...places, zMm };
}

function span(lines: Int32Array, at: number, maxLines: number): [low: number, high: number, end: number] {
  let low = lines[at] as number;
  let high = low;
  let end = at + 1;
  for (; end < lines.length; end++) {
    const line = lines[end] as number;
    if (Math.max(high, line) - Math.min(low, line) >= maxLines) break;
    low = Math.min(low, line);
    high = Math.max(high, line);
  }
  return [low, high, end];
}

/** The step between the measured points of two samples of a profile. */
export interface Step {
  readonly distanceMm: number;
  /** Height at the second one minus height at the first; NaN if one of them has no measurement. */
  readonly heightMm: number;
  /** Angle of the straight line between them; NaN if there is none. */
  readonly angleDegrees: number;
}

/** A sample lies up to half a point from the one it takes: its height is that point's, and so is its place. */
export function stepBetween(profile: Profile, grid: FrameGrid, first: number, second: number): Step {
  const apart = (places: Int32Array): number => (places[second] ?? Number.NaN) - (places[first] ?? Number.NaN);
  const distanceMm = lengthOf(apart(profile.columns) * grid.xPitchMm, apart(profile.lines) * grid.yPitchMm);
  const heightMm = (profile.zMm[second] ?? Number.NaN) - (profile.zMm[first] ?? Number.NaN);
  const angleDegrees = (Math.atan2(heightMm, distanceMm) * 180) / Math.PI;
  return { distanceMm, heightMm, angleDegrees };
}

/** One row a sample. A point without measurement has an empty z. Numbers are the shortest that read back to the same f64. */
export function profileCsv(profile: Profile, grid: FrameGrid): string {
  const rows = ["distance_mm,x_mm,y_mm,z_mm,column,line"];
  for (let at = 0; at < profile.zMm.length; at++) {
    const column = profile.columns[at] as number;
    const line = profile.lines[at] as number;
    const z = profile.zMm[at] as number;
    const zText = Number.isNaN(z) ? "" : String(z);
    rows.push(`${profile.distanceMm[at]},${xMm(grid, column)},${yMm(grid, line)},${zText},${column},${line}`);
  }
  return `${rows.join("\n")}\n`;
}
