/**
 * A frame as filter/grid-layout.ts lays it out in the memory: positions in lines, with padding on every side. Positions
 * without a point have z = Infinity, and so has the padding. So they are infinitely far from any point.
 */
@unmanaged
export class Grid {
  width: i32;
  lines: i32;
  /** Positions from one line to the next. */
  stride: i32;
  /**
   * f32 of every column, every line and every position, mm. All arrays begin at position (0, 0), with padding before
   * and after.
   */
  xs: usize;
  ys: usize;
  zs: usize;
  /**
   * The offset table: the positions around one, sorted by their smallest squared lateral distance anywhere in the grid
   * (f64). Each has its columns, its lines, and the step from one position to the other (i32).
   */
  offsetCount: i32;
  offsetColumns: usize;
  offsetLines: usize;
  offsetSteps: usize;
  offsetBounds: usize;
  /**
   * f32 of every tile of 8 x 8 positions: its lowest and its highest z. A tile without points has Infinity and
   * -Infinity.
   */
  tilesWide: i32;
  tilesHigh: i32;
  tileMinima: usize;
  tileMaxima: usize;
  /**
   * f32 of every column: its squared lateral distance to the column k further on. From k to k + 1 it is `squaresPitch`
   * items.
   */
  squares: usize;
  squaresPitch: i32;
}

/** Address of the first position of a line. */
export function lineOf(grid: Grid, line: i32): usize {
  return grid.zs + ((line * grid.stride) << 2);
}
