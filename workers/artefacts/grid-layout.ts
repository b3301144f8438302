import type { KernelMemory } from "./kernel-memory.js";
import {
  GRID_WORDS,
  LINES,
  OFFSET_BOUNDS,
  OFFSET_COLUMNS,
  OFFSET_COUNT,
  OFFSET_LINES,
  OFFSET_STEPS,
  PADDING,
  STRIDE,
  TILE_MAXIMA,
  TILE_MINIMA,
  TILES_HIGH,
  TILES_WIDE,
  WIDTH,
  XS,
  YS,
  ZS,
} from "./kernels/neighbour-search.js";

/** Where a frame's points lie: column c at `xOriginMm + c * xPitchMm`, line l at `yOriginMm + l * yPitchMm`, each rounded to f32. */
export interface GridGeometry {
  width: number;
  lines: number;
  xPitchMm: number;
  yPitchMm: number;
  xOriginMm: number;
  yOriginMm: number;
}

/** Most entries of the offset table: a radius of 7 positions. Farther, tiles are faster. */
const MAXIMUM_OFFSETS = 160;

/** A frame as the kernels take it: addresses in the memory, 4 bytes a position and padding, and 1 % for tiles. */
export interface Grid {
  address: number;
  width: number;
  lines: number;
  /** Position (0, 0); line l begins `l * stride` f32 on. */
  zs: number;
  stride: number;
  xs: number;
  ys: number;
  /** Squared lateral differences for the lanes: of column 0 at k = 0; the next k is `squaresPitch` f32 on. */
  squares: number;
  squaresPitch: number;
  offsetCount: number;
  /** Least and greatest squared lateral distance of neighbours, for judging whether f32 has the range. */
  leastSquared: number;
  greatestSquared: number;
}

/** Lays out a grid whose heights are yet to be put in: those around it are Infinity, no points. */
export function layOutGrid(memory: KernelMemory, geometry: GridGeometry): Grid {
  const { width, lines } = geometry;
  const stride = width + 2 * PADDING;
  const tilesWide = Math.ceil(width / 8);
  const tilesHigh = Math.ceil(lines / 8);
  const address = memory.allocate(4 * GRID_WORDS);
  const xs = memory.allocate(4 * stride) + 4 * PADDING;
  const ys = memory.allocate(4 * (lines + 2 * PADDING)) + 4 * PADDING;
  const squaresPitch = stride;
  const squares = memory.allocate(4 * squaresPitch * (2 * PADDING + 1)) + 4 * squaresPitch * PADDING;
  const paddedPositions = stride * (lines + 2 * PADDING);
  const padded = memory.allocate(4 * paddedPositions);
  const zs = padded + 4 * (PADDING * stride + PADDING);
  const minima = memory.allocate(4 * tilesWide * tilesHigh);
  const maxima = memory.allocate(4 * tilesWide * tilesHigh);
  fillPadding(memory.singles(padded, paddedPositions), stride, lines);

  const columnsMm = coordinates(memory, xs, width, geometry.xOriginMm, geometry.xPitchMm);
  const linesMm = coordinates(memory, ys, lines, geometry.yOriginMm, geometry.yPitchMm);
  const xGaps = leastGaps(columnsMm);
  const yGaps = leastGaps(linesMm);
  const offsets = offsetTable(xGaps, yGaps);
  const columnsAt = memory.allocate(4 * offsets.length);
  const linesAt = memory.allocate(4 * offsets.length);
  const stepsAt = memory.allocate(4 * offsets.length);
  const boundsAt = memory.allocate(8 * offsets.length);
  memory.words(columnsAt, offsets.length).set(offsets.map(({ column }) => column));
  memory.words(linesAt, offsets.length).set(offsets.map(({ line }) => line));
  memory.words(stepsAt, offsets.length).set(offsets.map(({ column, line }) => line * stride + column));
  memory.doubles(boundsAt, offsets.length).set(offsets.map(({ bound }) => bound));
  fillSquares(memory, columnsMm, squares, squaresPitch, width);

  const words = memory.words(address, GRID_WORDS);
  words[WIDTH] = width;
  words[LINES] = lines;
  words[STRIDE] = stride;
  words[XS] = xs;
  words[YS] = ys;
  words[ZS] = zs;
  words[OFFSET_COUNT] = offsets.length;
  words[OFFSET_COLUMNS] = columnsAt;
  words[OFFSET_LINES] = linesAt;
  words[OFFSET_STEPS] = stepsAt;
  words[OFFSET_BOUNDS] = boundsAt;
  words[TILES_WIDE] = tilesWide;
  words[TILES_HIGH] = tilesHigh;
  words[TILE_MINIMA] = minima;
  words[TILE_MAXIMA] = maxima;
  return {
    address,
    width,
    lines,
    zs,
    stride,
    xs,
    ys,
    squares,
    squaresPitch,
    offsetCount: offsets.length,
    leastSquared: Math.min(xGaps[1] ?? 0, yGaps[1] ?? 0) ** 2,
    greatestSquared:
      ((columnsMm.at(-1) ?? 0) - (columnsMm[0] ?? 0)) ** 2 + ((linesMm.at(-1) ?? 0) - (linesMm[0] ?? 0)) ** 2,
  };
}

/** Before and behind the lines, and between one's end and the next one's begin. */
function fillPadding(zs: Float32Array, stride: number, lines: number): void {
  const first = PADDING * stride + PADDING;
  zs.fill(Number.POSITIVE_INFINITY, 0, first);
  for (let line = 1; line <= lines; line++) {
    const next = first + line * stride;
    zs.fill(Number.POSITIVE_INFINITY, next - 2 * PADDING, next);
  }
  zs.fill(Number.POSITIVE_INFINITY, first + lines * stride);
}

/** Coordinates, padding included, so that every offset of the table has one; they are kept as f32, as the PLY has them. */
function coordinates(memory: KernelMemory, at: number, count: number, originMm: number, pitchMm: number): Float32Array {
  const all = memory.singles(at - 4 * PADDING, count + 2 * PADDING);
  for (let nth = 0; nth < all.length; nth++) all[nth] = originMm + (nth - PADDING) * pitchMm;
  return all.slice();
}

/** The least distance of two coordinates that are k apart, for k up to the padding and one more. */
function leastGaps(coordinatesMm: Float32Array): number[] {
  const gaps: number[] = [];
  for (let k = 0; k <= PADDING + 1; k++) {
    let least = Number.POSITIVE_INFINITY;
    for (let nth = k; nth < coordinatesMm.length; nth++) {
      least = Math.min(least, (coordinatesMm[nth] as number) - (coordinatesMm[nth - k] as number));
    }
    gaps.push(least);
  }
  return gaps;
}

/** Positions around one, by their least lateral distance; complete up to the last of them. Each is followed by the opposite one. */
function offsetTable(xGaps: readonly number[], yGaps: readonly number[]) {
  const outside = Math.min(xGaps[PADDING + 1] as number, yGaps[PADDING + 1] as number) ** 2;
  const offsets: { column: number; line: number; bound: number }[] = [];
  for (let line = 0; line <= PADDING; line++) {
    for (let column = line === 0 ? 1 : -PADDING; column <= PADDING; column++) {
      const x = xGaps[Math.abs(column)] as number;
      const y = yGaps[line] as number;
      const bound = x * x + y * y;
      if (bound <= outside) offsets.push({ column, line, bound }, { column: -column, line: -line, bound });
    }
  }
  return offsets.sort((a, b) => a.bound - b.bound).slice(0, MAXIMUM_OFFSETS);
}

function fillSquares(memory: KernelMemory, columnsMm: Float32Array, at: number, pitch: number, width: number): void {
  for (let k = -PADDING; k <= PADDING; k++) {
    const row = memory.singles(at + 4 * k * pitch, width);
    for (let column = 0; column < width; column++) {
      const difference = (columnsMm[column + k + PADDING] as number) - (columnsMm[column + PADDING] as number);
      row[column] = difference * difference;
    }
  }
}
