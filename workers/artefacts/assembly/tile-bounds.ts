/** kernels/tile-bounds.ts for four positions at a time. */

// @ts-nocheck: AssemblyScript

import { i32At, setF32 } from "./linear-memory.js";
import { STRIDE, TILE_MAXIMA, TILE_MINIMA, TILES_WIDE, ZS } from "../kernels/neighbour-search.js";

export function boundTiles(grid: i32, tileLine: i32): void {
  const stride = i32At(grid, STRIDE);
  const tilesWide = i32At(grid, TILES_WIDE);
  const lowest = i32At(grid, TILE_MINIMA);
  const highest = i32At(grid, TILE_MAXIMA);
  const first = i32At(grid, ZS) + (((tileLine << 3) * stride) << 2);
  const infinity = f32x4.splat(Infinity);
  const none = f32x4.splat(-Infinity);
  for (let nth = 0; nth < tilesWide; nth++) {
    let minima = infinity;
    let maxima = none;
    let at = <usize>(first + (nth << 5));
    for (let line = 0; line < 8; line++) {
      const left = v128.load(at);
      const right = v128.load(at, 16);
      minima = f32x4.pmin(minima, f32x4.pmin(left, right));
      maxima = f32x4.pmax(maxima, v128.bitselect(none, left, f32x4.eq(left, infinity)));
      maxima = f32x4.pmax(maxima, v128.bitselect(none, right, f32x4.eq(right, infinity)));
      at += <usize>(stride << 2);
    }
    minima = f32x4.pmin(minima, v128.shuffle<i32>(minima, minima, 2, 3, 0, 1));
    maxima = f32x4.pmax(maxima, v128.shuffle<i32>(maxima, maxima, 2, 3, 0, 1));
    minima = f32x4.pmin(minima, v128.shuffle<i32>(minima, minima, 1, 0, 3, 2));
    maxima = f32x4.pmax(maxima, v128.shuffle<i32>(maxima, maxima, 1, 0, 3, 2));
    setF32(lowest, tileLine * tilesWide + nth, f32x4.extract_lane(minima, 0));
    setF32(highest, tileLine * tilesWide + nth, f32x4.extract_lane(maxima, 0));
  }
}
