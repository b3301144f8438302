import type { KernelMemory } from "../kernel-memory.js";
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
} from "../kernels/neighbour-search.js";

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
/** A box that reaches so many positions in each direction has 168 beside the one in its middle. */
const BOX_REACH = 6;

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
  /** Squared lateral differences for the lanes, as far as the offset table reaches: of column 0 at k = 0; the next k is `squaresPitch` f32 on. */
  squares: number;
  squaresPitch: number;
}

/** Lays out a grid whose heights are yet to be put in: those around it are Infinity, no points. */
export function layOutGrid(memory: KernelMemory, geometry: GridGeometry): Grid {
  const grid = placeGrid(memory, geometry);
  fillTables(memory, grid, geometry);
  return grid;
}

/** Finds places for all of a grid: heights may be put in, and their tiles bounded. Whatever else is done needs `fillTables` before. */
export function placeGrid(memory: KernelMemory, { width, lines }: { width: number; lines: number }): Grid {
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
  const [columnsAt, linesAt, stepsAt] = [0, 1, 2].map(() => memory.allocate(4 * MAXIMUM_OFFSETS));
  const boundsAt = memory.allocate(8 * MAXIMUM_OFFSETS);
  fillPadding(memory.singles(padded, paddedPositions), stride, lines);

  const words = memory.words(address, GRID_WORDS);
  words[WIDTH] = width;
  words[LINES] = lines;
  words[STRIDE] = stride;
  words[XS] = xs;
  words[YS] = ys;
  words[ZS] = zs;
  words[OFFSET_COUNT] = 0;
  words[OFFSET_COLUMNS] = columnsAt as number;
  words[OFFSET_LINES] = linesAt as number;
  words[OFFSET_STEPS] = stepsAt as number;
  words[OFFSET_BOUNDS] = boundsAt;
  words[TILES_WIDE] = tilesWide;
  words[TILES_HIGH] = tilesHigh;
  words[TILE_MINIMA] = minima;
  words[TILE_MAXIMA] = maxima;
  return { address, width, lines, zs, stride, xs, ys, squares, squaresPitch };
}

/** Coordinates and the tables of a grid that is placed: other threads may put heights in meanwhile. */
export function fillTables(memory: KernelMemory, grid: Grid, geometry: GridGeometry): void {
  const { width, lines, stride, xs, ys, address } = grid;
  const columnsMm = coordinates(memory, xs, width, geometry.xOriginMm, geometry.xPitchMm);
  const linesMm = coordinates(memory, ys, lines, geometry.yOriginMm, geometry.yPitchMm);
  const offsets = offsetTable(leastGaps(columnsMm), leastGaps(linesMm));
  const reach = offsets.reduce((most, { column }) => Math.max(most, column), 0);
  fillSquares(memory, columnsMm, grid, reach);
  const words = memory.words(address, GRID_WORDS);
  const table = (word: number): Int32Array => memory.words(words[word] as number, offsets.length);
  const [columns, rows, steps] = [table(OFFSET_COLUMNS), table(OFFSET_LINES), table(OFFSET_STEPS)];
  const bounds = memory.doubles(words[OFFSET_BOUNDS] as number, offsets.length);
  for (const [nth, { column, line, bound }] of offsets.entries()) {
    columns[nth] = column;
    rows[nth] = line;
    steps[nth] = line * stride + column;
    bounds[nth] = bound;
  }
  words[OFFSET_COUNT] = offsets.length;
}

/** For judging whether f32 has the range: entries of the offset table, and the least and the greatest squared lateral distance, mm², padding included. */
export function lateralRange(memory: KernelMemory, { address, width, lines, xs, ys }: Grid) {
  const words = memory.words(address, GRID_WORDS);
  const offsetCount = words[OFFSET_COUNT] as number;
  const extent = (at: number, count: number): number => {
    const coordinatesMm = memory.singles(at - 4 * PADDING, count + 2 * PADDING);
    return (coordinatesMm.at(-1) as number) - (coordinatesMm[0] as number);
  };
  return {
    offsetCount,
    // The table begins with what is nearest: a neighbour in the line, or in the column.
    leastSquared: memory.doubles(words[OFFSET_BOUNDS] as number, offsetCount)[0] ?? 0,
    greatestSquared: extent(xs, width) ** 2 + extent(ys, lines) ** 2,
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
      const gap = (coordinatesMm[nth] as number) - (coordinatesMm[nth - k] as number);
      if (gap < least) least = gap;
    }
    gaps.push(least);
  }
  return gaps;
}

interface Offset {
  column: number;
  line: number;
  bound: number;
}

/** Positions around one, by their least lateral distance; complete up to the last of them. Each is followed by the opposite one. */
function offsetTable(xGaps: readonly number[], yGaps: readonly number[]): Offset[] {
  const outside = Math.min(xGaps[PADDING + 1] as number, yGaps[PADDING + 1] as number) ** 2;
  // There are enough in the box as far as its corner.
  const corner = (xGaps[BOX_REACH] as number) ** 2 + (yGaps[BOX_REACH] as number) ** 2;
  const greatest = Math.min(outside, corner);
  /** One of each two that lie opposite. */
  const halves: Offset[] = [];
  for (let line = 0; line <= PADDING; line++) {
    for (let column = line === 0 ? 1 : -PADDING; column <= PADDING; column++) {
      const x = xGaps[Math.abs(column)] as number;
      const y = yGaps[line] as number;
      const bound = x * x + y * y;
      if (bound <= greatest) halves.push({ column, line, bound });
    }
  }
  return halves
    .sort((a, b) => a.bound - b.bound)
    .slice(0, MAXIMUM_OFFSETS / 2)
    .flatMap((half) => [half, { column: -half.column, line: -half.line, bound: half.bound }]);
}

/** As far as any offset of the table reaches. */
function fillSquares(memory: KernelMemory, columnsMm: Float32Array, grid: Grid, reach: number): void {
  const { squares, squaresPitch, width } = grid;
  for (let k = -reach; k <= reach; k++) {
    const row = memory.singles(squares + 4 * k * squaresPitch, width);
    for (let column = 0; column < width; column++) {
      const difference = (columnsMm[column + k + PADDING] as number) - (columnsMm[column + PADDING] as number);
      row[column] = difference * difference;
    }
  }
}
