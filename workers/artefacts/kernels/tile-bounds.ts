/** What the search through tiles leaves out tiles by. assembly/tile-bounds.ts is the same for four positions at a time. */
import { f32At, type f64, type i32, i32At, setF32 } from "./linear-memory.js";
import { STRIDE, TILE_MAXIMA, TILE_MINIMA, TILES_WIDE, ZS } from "./neighbour-search.js";

/** Lowest and highest z of the tiles of a line of tiles. */
export function boundTiles(grid: i32, tileLine: i32): void {
  const zs = i32At(grid, ZS);
  const stride = i32At(grid, STRIDE);
  const tilesWide = i32At(grid, TILES_WIDE);
  const lowest = i32At(grid, TILE_MINIMA);
  const highest = i32At(grid, TILE_MAXIMA);
  for (let nth: i32 = 0; nth < tilesWide; nth++) {
    let minimum: f64 = Infinity;
    let maximum: f64 = -Infinity;
    for (let line: i32 = tileLine << 3; line < (tileLine << 3) + 8; line++) {
      const base = line * stride + (nth << 3);
      for (let at: i32 = base; at < base + 8; at++) {
        const z = f32At(zs, at);
        if (z < minimum) minimum = z;
        if (z > maximum && z !== Infinity) maximum = z;
      }
    }
    setF32(lowest, tileLine * tilesWide + nth, minimum);
    setF32(highest, tileLine * tilesWide + nth, maximum);
  }
}
