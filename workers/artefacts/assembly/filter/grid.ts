/**
 * A frame as filter/grid-layout.ts lays it out in the memory: positions in lines, with padding on every side of them. Positions without a point
 * have z = Infinity, and so has the padding: they are infinitely far from any point.
 */
@unmanaged
export class Grid {
  width: i32;
  lines: i32;
  /** Positions from one line to the next. */
  stride: i32;
  /** f32 of every column, of every line, and of every position, mm. All arrays begin at position (0, 0); padding lies before and behind. */
  xs: usize;
  ys: usize;
  zs: usize;
  /**
   * The offset table: positions around one, by their least squared lateral distance anywhere in the grid (f64), with columns, lines, and steps
   * from one position to the other (i32).
   */
  offsetCount: i32;
  offsetColumns: usize;
  offsetLines: usize;
  offsetSteps: usize;
  offsetBounds: usize;
  /** f32 of every tile of 8 x 8 positions: the lowest and the highest z in it; Infinity and -Infinity for one without points. */
  tilesWide: i32;
  tilesHigh: i32;
  tileMinima: usize;
  tileMaxima: usize;
  /** f32 of every column: its squared lateral distance to the one k columns on, `squaresPitch` items from k to k + 1. */
  squares: usize;
  squaresPitch: i32;
}

/** Address of the first position of a line. */
export function lineOf(grid: Grid, line: i32): usize {
  return grid.zs + ((line * grid.stride) << 2);
}
