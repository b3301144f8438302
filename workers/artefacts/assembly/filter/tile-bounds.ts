/** The lowest and highest z of each tile, by which the search leaves tiles out. Computed four positions at a time. */
import { setF32 } from "../linear-memory";
import { Grid, lineOf } from "./grid";

/** @returns how many points there are */
export function boundTiles(grid: Grid): i32 {
  let points = 0;
  for (let tileLine = 0; tileLine < grid.tilesHigh; tileLine++) {
    for (let tile = 0; tile < grid.tilesWide; tile++) {
      points += boundTile(grid, lineOf(grid, tileLine << 3) + (tile << 5), tileLine * grid.tilesWide + tile);
    }
  }
  return points;
}

function boundTile(grid: Grid, first: usize, nth: i32): i32 {
  const infinity = f32x4.splat(Infinity);
  const none = f32x4.splat(-Infinity);
  let minima = infinity;
  let maxima = none;
  let points = 0;
  for (let line = 0; line < 8; line++) {
    const at = first + ((line * grid.stride) << 2);
    const left = v128.load(at);
    const right = v128.load(at, 16);
    minima = f32x4.pmin(minima, f32x4.pmin(left, right));
    const isLeft = f32x4.ne(left, infinity);
    const isRight = f32x4.ne(right, infinity);
    maxima = f32x4.pmax(maxima, v128.bitselect(left, none, isLeft));
    maxima = f32x4.pmax(maxima, v128.bitselect(right, none, isRight));
    points += popcnt(i32x4.bitmask(isLeft)) + popcnt(i32x4.bitmask(isRight));
  }
  minima = f32x4.pmin(minima, v128.shuffle<i32>(minima, minima, 2, 3, 0, 1));
  maxima = f32x4.pmax(maxima, v128.shuffle<i32>(maxima, maxima, 2, 3, 0, 1));
  minima = f32x4.pmin(minima, v128.shuffle<i32>(minima, minima, 1, 0, 3, 2));
  maxima = f32x4.pmax(maxima, v128.shuffle<i32>(maxima, maxima, 1, 0, 3, 2));
  setF32(grid.tileMinima, nth, f32x4.extract_lane(minima, 0));
  setF32(grid.tileMaxima, nth, f32x4.extract_lane(maxima, 0));
  return points;
}
