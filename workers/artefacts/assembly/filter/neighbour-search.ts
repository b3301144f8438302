/**
 * The mean distance of a point of an organised grid to its nearest neighbours. It is exact, in f64, and found by
 * searching the grid outward.
 *
 * The 20 nearest points of the cloud to a point p, p itself among them, lie at d1 = 0 <= d2 <= … <= d20. The mean
 * distance is (d1 + … + d20) / 20. In a cloud of n < 20 points all n count. Everything is computed as in Open3D
 * (KDTreeFlann::SearchKNN and PointCloud::RemoveStatisticalOutliers, cpp/open3d/geometry/PointCloud.cpp): coordinates
 * are f32 widened to f64, a squared distance is (dx² + dy²) + dz², and roots are summed from the nearest on. If several
 * points are equally far, it does not matter which of them are taken. So the result is the same to the last bit
 * whatever the order of the search.
 *
 * The search takes the grid positions around p by their lateral distance, which the pitch gives, nearest first. It ends
 * when the next position is laterally as far as the worst of the best 19: nothing outside can be nearer. The table of
 * positions may end before that, for a point far off its surroundings or at the edge of a wide shadow. Then the search
 * goes on in tiles of 8 x 8 positions. Each tile has its lowest and highest z, and tiles that cannot hold anything near
 * enough are left out.
 */
import { f32At, f64At, i32At, setF64 } from "../linear-memory";
import { Grid, lineOf } from "./grid";
import { gapToRange, nextWithin, roundedUp } from "./range-scan";

/** Neighbours that count, beside the point itself. */
export const NEIGHBOURS: i32 = 19;

/** A factor that covers the different rounding of a bound and a distance. */
export const SURELY_LESS: f64 = 0.999999999;

/** What the search through tiles may still cost, in visits of four tiles. A tile that is looked into counts 16. */
let work: f64 = 0;

export function allowWork(most: f64): void {
  work = most;
}

/** True if the search has cost more than it may: heights are so much like noise that tiles do not help. */
export function isWorkSpent(): bool {
  return work < 0;
}

/**
 * Adds `distance` to the 19 smallest at `best` (f64), in rising order. It must be below their worst. Gives the new
 * worst.
 */
export function insertDistance(best: usize, distance: f64): f64 {
  let at = best + 8 * (NEIGHBOURS - 1);
  while (at > best) {
    const before = load<f64>(at - 8);
    if (before <= distance) break;
    store<f64>(at, before);
    at -= 8;
  }
  store<f64>(at, distance);
  return f64At(best, NEIGHBOURS - 1);
}

export function clearDistances(best: usize, value: f64): void {
  for (let nth = 0; nth < NEIGHBOURS; nth++) setF64(best, nth, value);
}

/**
 * The mean over the kept distances and the point's own distance, 0. A cloud of fewer points has fewer kept distances.
 */
export function meanOfDistances(best: usize): f64 {
  let sum: f64 = 0;
  let count = 1;
  for (let nth = 0; nth < NEIGHBOURS; nth++) {
    const squared = f64At(best, nth);
    if (squared === Infinity) break;
    sum += sqrt<f64>(squared);
    count++;
  }
  return sum / <f64>count;
}

/**
 * Mean distance in mm of the valid point at (column, line).
 *
 * @param best room for 19 f64
 * @param limit more than the squared distance of the 19th of the other points, if that is known; else Infinity
 */
export function meanDistance(grid: Grid, best: usize, column: i32, line: i32, limit: f64): f64 {
  const here = lineOf(grid, line) + (column << 2);
  const z: f64 = load<f32>(here);
  const x = f32At(grid.xs, column);
  const y = f32At(grid.ys, line);
  let worst = limit;
  clearDistances(best, worst);
  // The table is of no use if the limit is farther than it reaches.
  const count = limit < Infinity && limit > f64At(grid.offsetBounds, grid.offsetCount - 1) ? 0 : grid.offsetCount;
  for (let nth = 0; nth < count; nth++) {
    const bound = f64At(grid.offsetBounds, nth);
    if (bound >= worst) return meanOfDistances(best);
    const dz = f32At(here, i32At(grid.offsetSteps, nth)) - z;
    // This is at most the distance, even if its sum is rounded differently.
    if ((bound + dz * dz) * SURELY_LESS >= worst) continue;
    const dx = f32At(grid.xs, column + i32At(grid.offsetColumns, nth)) - x;
    const dy = f32At(grid.ys, line + i32At(grid.offsetLines, nth)) - y;
    const distance = dx * dx + dy * dy + dz * dz;
    if (distance < worst) worst = insertDistance(best, distance);
  }
  return searchTiles(grid, best, column, line, worst);
}

/**
 * Searches tiles in rings around the point's own tile until 19 neighbours are found. These are near the best. Other
 * tiles that may hold nearer points are then searched line by line, so that many are skipped at a time.
 *
 * @param limit the table has found 19 points that are at most this far; those exactly at the limit may replace each
 *   other
 */
function searchTiles(grid: Grid, best: usize, column: i32, row: i32, limit: f64): f64 {
  const ownColumn = column >> 3;
  const ownLine = row >> 3;
  const y = f32At(grid.ys, row);
  clearDistances(best, limit);
  let worst = searchTile(grid, best, column, row, ownColumn, ownLine, limit);
  // The tiles already searched: columns from left to right, lines from top to bottom.
  let left = ownColumn;
  let right = ownColumn;
  let top = ownLine;
  let bottom = ownLine;
  const lastRing = max(grid.tilesWide, grid.tilesHigh);
  for (let ring = 1; ring <= lastRing && (ring === 1 || worst === Infinity); ring++) {
    const toLeft = max(ownColumn - ring, 0);
    const toRight = min(ownColumn + ring, grid.tilesWide - 1);
    const toTop = max(ownLine - ring, 0);
    const toBottom = min(ownLine + ring, grid.tilesHigh - 1);
    for (let line = toTop; line <= toBottom; line++) {
      const isBehind = line >= top && line <= bottom;
      worst = searchBeside(grid, best, column, row, line, toLeft, toRight, isBehind, left, right, worst);
    }
    left = toLeft;
    right = toRight;
    top = toTop;
    bottom = toBottom;
  }
  for (let line = ownLine; line >= 0; line--) {
    if (line < ownLine && squared(y - f32At(grid.ys, (line << 3) + 7)) >= worst) break;
    worst = searchWithin(grid, best, column, row, line, line >= top, left, right, worst);
  }
  for (let line = ownLine + 1; line < grid.tilesHigh; line++) {
    if (squared(y - f32At(grid.ys, line << 3)) >= worst) break;
    worst = searchWithin(grid, best, column, row, line, line <= bottom, left, right, worst);
  }
  return meanOfDistances(best);
}

export function squared(value: f64): f64 {
  return value * value;
}

/** Searches a line of tiles as far as it is laterally near enough. */
function searchWithin(
  grid: Grid,
  best: usize,
  column: i32,
  row: i32,
  line: i32,
  isBehind: bool,
  left: i32,
  right: i32,
  worst: f64,
): f64 {
  const x = f32At(grid.xs, column);
  // Goes outward in steps of 4096, 2048, … 1 tiles. That works because coordinates rise with the column.
  let first = column >> 3;
  let last = first;
  for (let step = 4096; step > 0; step >>= 1) {
    if (first >= step && squared(x - f32At(grid.xs, ((first - step) << 3) + 7)) < worst) first -= step;
    if (last + step < grid.tilesWide && squared(x - f32At(grid.xs, (last + step) << 3)) < worst) last += step;
  }
  return searchBeside(grid, best, column, row, line, first, last, isBehind, left, right, worst);
}

/**
 * Searches the tiles of a line from `first` to `last`, without those from `left` to `right` if these were searched
 * already.
 */
function searchBeside(
  grid: Grid,
  best: usize,
  column: i32,
  row: i32,
  line: i32,
  first: i32,
  last: i32,
  isBehind: bool,
  left: i32,
  right: i32,
  limit: f64,
): f64 {
  if (!isBehind) return searchTileLine(grid, best, column, row, line, first, last, limit);
  const worst = searchTileLine(grid, best, column, row, line, first, left - 1, limit);
  return searchTileLine(grid, best, column, row, line, right + 1, last, worst);
}

/**
 * Searches those tiles of a line of tiles that may hold something nearer than `limit`. Gives the worst distance then.
 */
function searchTileLine(
  grid: Grid,
  best: usize,
  column: i32,
  row: i32,
  tileLine: i32,
  first: i32,
  last: i32,
  limit: f64,
): f64 {
  if (first > last) return limit;
  const minima = grid.tileMinima + ((tileLine * grid.tilesWide) << 2);
  const maxima = grid.tileMaxima + ((tileLine * grid.tilesWide) << 2);
  const z = f32At(lineOf(grid, row), column);
  const squaredDy = squared(gapToTile(grid.ys, row, tileLine));
  let worst = limit;
  work -= <f64>((last - first) >> 2);
  for (let nth = nextWithin(minima, maxima, first, last, z, worst - squaredDy); nth <= last; ) {
    const dz = gapToRange(z, f32At(minima, nth), f32At(maxima, nth));
    if ((squared(gapToTile(grid.xs, column, nth)) + squaredDy + dz * dz) * SURELY_LESS < worst) {
      worst = searchTile(grid, best, column, row, nth, tileLine, worst);
      work -= 16;
    }
    nth = nextWithin(minima, maxima, nth + 1, last, z, worst - squaredDy);
  }
  return worst;
}

/** How far a column or line is from the nearest one of a tile. */
export function gapToTile(coordinates: usize, at: i32, tile: i32): f64 {
  const own = at >> 3;
  if (tile === own) return 0;
  const nearest = tile < own ? (tile << 3) + 7 : tile << 3;
  return f32At(coordinates, at) - f32At(coordinates, nearest);
}

/**
 * Takes four positions at a time in f32 and skips those that are certainly too far, rounding included. Distances of the
 * others are computed in f64.
 */
function searchTile(grid: Grid, best: usize, column: i32, row: i32, tileColumn: i32, tileLine: i32, limit: f64): f64 {
  const x = f32At(grid.xs, column);
  const y = f32At(grid.ys, row);
  const here = lineOf(grid, row) + (column << 2);
  const z: f64 = load<f32>(here);
  const centerX = f32x4.splat(<f32>x);
  const centerZ = f32x4.splat(<f32>z);
  let worst = limit;
  // After the grid's last column and line comes padding, which is infinitely far.
  for (let line = tileLine << 3; line < (tileLine << 3) + 8; line++) {
    const squaredDy = squared(f32At(grid.ys, line) - y);
    if (squaredDy >= worst) continue;
    const points = lineOf(grid, line);
    for (let first = tileColumn << 3; first < (tileColumn << 3) + 8; first += 4) {
      const lateral = f32x4.sub(v128.load(grid.xs + (first << 2)), centerX);
      const gap = f32x4.sub(v128.load(points + (first << 2)), centerZ);
      const squares = f32x4.add(f32x4.mul(lateral, lateral), f32x4.mul(gap, gap));
      let hits = i32x4.bitmask(f32x4.le(squares, roundedUp(worst - squaredDy)));
      for (; hits !== 0; hits &= hits - 1) {
        const at = first + ctz(hits);
        const dx = f32At(grid.xs, at) - x;
        const dz = f32At(points, at) - z;
        const distance = dx * dx + squaredDy + dz * dz;
        if (distance < worst && points + (at << 2) !== here) worst = insertDistance(best, distance);
      }
    }
  }
  return worst;
}
