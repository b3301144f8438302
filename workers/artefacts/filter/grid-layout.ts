import type { KernelMemory } from "../kernel-memory.js";

/** Where a frame's points lie: column c at `xOriginMm + c * xPitchMm`, line l at `yOriginMm + l * yPitchMm`, each rounded to f32. */
export interface GridGeometry {
  width: number;
  lines: number;
  xPitchMm: number;
  yPitchMm: number;
  xOriginMm: number;
  yOriginMm: number;
}

/** Positions of padding on each side of the grid. This is also the reach of the offset table. */
export const PADDING = 16;
/** Most entries of the offset table, which is a radius of 7 positions. For anything farther, tiles are faster. */
const MOST_OFFSETS = 160;
/** A box with this reach in each direction has 168 positions beside the one in its middle. */
const BOX_REACH = 6;

/**
 * A frame as the kernels take it (assembly/filter/grid.ts): addresses in the memory. It takes 4 bytes a position,
 * padding included, and 1 % for tiles.
 */
export interface Grid {
  address: number;
  width: number;
  lines: number;
  /** Address of position (0, 0). Line l begins `l * stride` f32 further on. */
  zs: number;
  stride: number;
  /**
   * The positions around one, nearest first: columns, lines and steps (i32), and smallest squared lateral distances
   * (f64).
   */
  offsets: { count: number; columns: number; lines: number; steps: number; bounds: number };
  /** f32 of each tile: lowest and highest z, once they are bounded. */
  tiles: { count: number; minima: number; maxima: number };
  /**
   * Squared lateral differences for the lanes, as far as the offset table reaches. The address is that of column 0 at k
   * = 0; the next k is `squaresPitch` f32 further on.
   */
  squares: number;
  squaresPitch: number;
  /** The least and the greatest squared lateral distance of two positions, mm², padding included. */
  leastSquaredMm: number;
  greatestSquaredMm: number;
}

/** Lays out a grid without its heights. The padding around them is Infinity, which means no points. */
export function layOutGrid(memory: KernelMemory, geometry: GridGeometry): Grid {
  const { width, lines } = geometry;
  const stride = width + 2 * PADDING;
  const [tilesWide, tilesHigh] = [Math.ceil(width / 8), Math.ceil(lines / 8)];
  const columnsMm = coordinates(width, geometry.xOriginMm, geometry.xPitchMm);
  const linesMm = coordinates(lines, geometry.yOriginMm, geometry.yPitchMm);
  const [xGaps, yGaps] = [leastGaps(columnsMm), leastGaps(linesMm)];
  const table = offsetTable(xGaps, yGaps);
  const words = (items: readonly number[]): number => placeWords(memory, items);
  const xs = placeSingles(memory, columnsMm) + 4 * PADDING;
  const ys = placeSingles(memory, linesMm) + 4 * PADDING;
  const offsets = {
    count: table.length,
    columns: words(table.map(({ column }) => column)),
    lines: words(table.map(({ line }) => line)),
    steps: words(table.map(({ column, line }) => line * stride + column)),
    bounds: memory.allocate(8 * table.length),
  };
  memory.doubles(offsets.bounds, table.length).set(table.map(({ bound }) => bound));
  const squares = placeSquares(memory, columnsMm, stride, table);
  const zs = placeHeights(memory, stride, lines);
  const count = tilesWide * tilesHigh;
  const tiles = { count, minima: memory.allocate(4 * count), maxima: memory.allocate(4 * count) };
  const address = words([
    ...[width, lines, stride, xs, ys, zs],
    ...[offsets.count, offsets.columns, offsets.lines, offsets.steps, offsets.bounds],
    ...[tilesWide, tilesHigh, tiles.minima, tiles.maxima],
    ...[squares, stride],
  ]);
  return {
    ...{ address, width, lines, zs, stride, offsets, tiles, squares, squaresPitch: stride },
    // The table begins with the nearest position: a neighbour in the line, or in the column.
    leastSquaredMm: table[0]?.bound ?? 0,
    greatestSquaredMm: extentOf(columnsMm) ** 2 + extentOf(linesMm) ** 2,
  };
}

function placeWords(memory: KernelMemory, items: readonly number[]): number {
  const at = memory.allocate(4 * items.length);
  memory.words(at, items.length).set(items);
  return at;
}

function placeSingles(memory: KernelMemory, items: Float32Array): number {
  const at = memory.allocate(items.byteLength);
  memory.singles(at, items.length).set(items);
  return at;
}

/**
 * Takes room for heights. It puts Infinity before and after the lines, and between the end of one and the start of the
 * next.
 */
function placeHeights(memory: KernelMemory, stride: number, lines: number): number {
  const positions = stride * (lines + 2 * PADDING);
  const at = memory.allocate(4 * positions);
  const zs = memory.singles(at, positions);
  const first = PADDING * stride + PADDING;
  zs.fill(Number.POSITIVE_INFINITY, 0, first);
  for (let line = 1; line <= lines; line++) {
    const next = first + line * stride;
    zs.fill(Number.POSITIVE_INFINITY, next - 2 * PADDING, next);
  }
  zs.fill(Number.POSITIVE_INFINITY, first + lines * stride);
  return at + 4 * first;
}

/** Coordinates, padding included, so that every offset of the table has one. They are f32, as in the PLY. */
function coordinates(count: number, originMm: number, pitchMm: number): Float32Array {
  return Float32Array.from({ length: count + 2 * PADDING }, (_, nth) => originMm + (nth - PADDING) * pitchMm);
}

function extentOf(coordinatesMm: Float32Array): number {
  return (coordinatesMm.at(-1) as number) - (coordinatesMm[0] as number);
}

/** The smallest distance of two coordinates that are k apart, for k from 0 to one more than the padding. */
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

/**
 * The positions around one, sorted by their smallest lateral distance. No position is missing up to the last one. Each
 * is followed by the opposite one.
 */
function offsetTable(xGaps: readonly number[], yGaps: readonly number[]): Offset[] {
  const outside = Math.min(xGaps[PADDING + 1] as number, yGaps[PADDING + 1] as number) ** 2;
  // The box has enough positions as far as its corner.
  const corner = (xGaps[BOX_REACH] as number) ** 2 + (yGaps[BOX_REACH] as number) ** 2;
  const greatest = Math.min(outside, corner);
  /** One of each two opposite positions. */
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
    .slice(0, MOST_OFFSETS / 2)
    .flatMap((half) => [half, { column: -half.column, line: -half.line, bound: half.bound }]);
}

/** Stores squared lateral differences as far as any offset of the table reaches. */
function placeSquares(memory: KernelMemory, columnsMm: Float32Array, pitch: number, table: readonly Offset[]): number {
  const width = columnsMm.length - 2 * PADDING;
  const reach = table.reduce((most, { column }) => Math.max(most, column), 0);
  const squares = memory.allocate(4 * pitch * (2 * reach + 1)) + 4 * pitch * reach;
  for (let k = -reach; k <= reach; k++) {
    const row = memory.singles(squares + 4 * k * pitch, width);
    for (let column = 0; column < width; column++) {
      const difference = (columnsMm[column + k + PADDING] as number) - (columnsMm[column + PADDING] as number);
      row[column] = difference * difference;
    }
  }
  return squares;
}
