/**
 * The mean distance of a point of an organised grid to its nearest neighbours: exact, in f64, by searching the grid outward.
 *
 * Of a point p, the 20 nearest points of the cloud, p itself among them, lie at d1 = 0 <= d2 <= … <= d20, and its mean distance is
 * (d1 + … + d20) / 20; of a cloud of n < 20 points all n count. As Open3D computes it (KDTreeFlann::SearchKNN and
 * PointCloud::RemoveStatisticalOutliers, cpp/open3d/geometry/PointCloud.cpp): coordinates are f32 widened to f64, a squared distance
 * is (dx² + dy²) + dz², and roots are summed from the nearest on. The sum of the k smallest does not depend on which of equally distant
 * points are taken, and so the result is the same to the last bit whatever the order of the search.
 *
 * The search goes through the grid positions around p by their lateral distance, which the pitch gives, nearest first. It is over when
 * the next position is laterally as far as the worst of the best 19: nothing outside can be nearer. Where the table of positions ends first (a
 * point far off its surroundings, the edge of a wide shadow) it goes on in rings of tiles of 8 x 8 positions with their lowest and highest
 * z, leaving out tiles that cannot hold anything near enough, until the lateral distance of the ring is that far.
 *
 * Positions without a point have z = Infinity, and so has the padding around the grid: they are infinitely far from any point.
 */
import {
  f32At,
  type f64,
  f64At,
  type i32,
  i32At,
  setF64,
  setI32,
  squareRoot,
  viewDoubles,
  viewSingles,
  viewWords,
} from "./linear-memory.js";
import { gapToRange, nextLevel, nextWithin } from "./range-scan.js";

/** Neighbours that count, beside the point itself. */
export const NEIGHBOURS: i32 = 19;
/** Positions of padding on each side of the grid, and so the reach of the offset table. */
export const PADDING: i32 = 16;

/** Words (i32) of the block that describes a grid. All arrays begin at position (0, 0); padding lies before and behind. */
export const WIDTH: i32 = 0;
export const LINES: i32 = 1;
/** Positions from one line to the next. */
export const STRIDE: i32 = 2;
/** f32 of every column and of every line, mm. */
export const XS: i32 = 3;
export const YS: i32 = 4;
/** f32 of every position, mm. */
export const ZS: i32 = 5;
/** The offset table, by rising lateral bound: columns, lines (i32), and the least squared lateral distance anywhere in the grid (f64). */
export const OFFSET_COUNT: i32 = 6;
export const OFFSET_COLUMNS: i32 = 7;
export const OFFSET_LINES: i32 = 8;
export const OFFSET_BOUNDS: i32 = 9;
/** f32 of every tile: the lowest and the highest z in it. */
export const TILES_WIDE: i32 = 10;
export const TILES_HIGH: i32 = 11;
export const TILE_MINIMA: i32 = 12;
export const TILE_MAXIMA: i32 = 13;
/** Of the offset table: positions from one to the other (i32), `line * stride + column`. */
export const OFFSET_STEPS: i32 = 14;
export const GRID_WORDS: i32 = 15;

/** Scratch of one search: the best squared distances so far (f64), then words of its own. */
const WORK: i32 = 40;
export const SCRATCH_BYTES: i32 = 8 * 24;

/** The search took more steps than it may: the tree answers. */
export const UNRESOLVED: f64 = -1.0;

/** A factor that outweighs how differently a bound and a distance are rounded. */
export const SURELY_LESS: f64 = 0.999999999;

/** Keeps the 19 smallest, rising; gives the worst of them. `distance` is smaller than it. */
export function insertDistance(best: i32, distance: f64): f64 {
  return insertAmong(best, NEIGHBOURS - 1, distance);
}

/** As `insertDistance` where no more than `count` are kept, 18 at most, and what lies behind them is as large as it can be. */
export function insertAmong(best: i32, count: i32, distance: f64): f64 {
  const doubles = viewDoubles();
  const first = best >> 3;
  let at = first + count;
  while (at > first) {
    const before = doubles[at - 1] as f64;
    if (before <= distance) break;
    doubles[at] = before;
    at--;
  }
  doubles[at] = distance;
  return doubles[first + NEIGHBOURS - 1] as f64;
}

export function clearDistances(best: i32, value: f64): void {
  for (let at: i32 = 0; at < NEIGHBOURS; at++) setF64(best, at, value);
}

/** The mean over the kept distances and the point's own, 0; fewer are kept in a cloud of fewer points. */
export function meanOfDistances(best: i32): f64 {
  let sum: f64 = 0.0;
  let count: i32 = 1;
  for (let at: i32 = 0; at < NEIGHBOURS; at++) {
    const squared = f64At(best, at);
    if (squared === Infinity) break;
    sum += squareRoot(squared);
    count++;
  }
  return sum / count;
}

/**
 * Mean distance of the point at (column, row), which is valid, in mm.
 *
 * @param work tiles and points that the search in rings may look at: beyond, the result is UNRESOLVED
 */
export function meanDistance(grid: i32, best: i32, column: i32, row: i32, work: i32): f64 {
  const singles = viewSingles();
  const doubles = viewDoubles();
  const words = viewWords();
  const columns = i32At(grid, OFFSET_COLUMNS) >> 2;
  const lines = i32At(grid, OFFSET_LINES) >> 2;
  const steps = i32At(grid, OFFSET_STEPS) >> 2;
  const bounds = i32At(grid, OFFSET_BOUNDS) >> 3;
  const count = i32At(grid, OFFSET_COUNT);
  const hereX = (i32At(grid, XS) >> 2) + column;
  const hereY = (i32At(grid, YS) >> 2) + row;
  const here = (i32At(grid, ZS) >> 2) + row * i32At(grid, STRIDE) + column;
  const x = singles[hereX] as f64;
  const y = singles[hereY] as f64;
  const z = singles[here] as f64;
  let worst: f64 = Infinity;
  clearDistances(best, worst);
  for (let nth: i32 = 0; nth < count; nth++) {
    const bound = doubles[bounds + nth] as f64;
    if (bound >= worst) return meanOfDistances(best);
    const dz = (singles[here + (words[steps + nth] as i32)] as f64) - z;
    // Less than the distance, if anything, also where its sum is rounded otherwise.
    if ((bound + dz * dz) * SURELY_LESS >= worst) continue;
    const dx = (singles[hereX + (words[columns + nth] as i32)] as f64) - x;
    const dy = (singles[hereY + (words[lines + nth] as i32)] as f64) - y;
    const distance = dx * dx + dy * dy + dz * dz;
    if (distance < worst) worst = insertDistance(best, distance);
  }
  return searchTiles(grid, best, column, row, worst, work);
}

/** What the search of a point through tiles costs, of at most `work`; 0 when the offset table is enough. */
export function tileCost(grid: i32, best: i32, column: i32, row: i32, work: i32): i32 {
  setI32(best, WORK, work);
  meanDistance(grid, best, column, row, work);
  return work - i32At(best, WORK);
}

/**
 * Searches tiles: in rings around the point's own until 19 are found, which are near the best then, and what else may hold nearer ones line
 * by line of tiles, so that many are passed over at a time.
 */
function searchTiles(grid: i32, best: i32, column: i32, row: i32, limit: f64, work: i32): f64 {
  const tilesWide = i32At(grid, TILES_WIDE);
  const tilesHigh = i32At(grid, TILES_HIGH);
  const ys = i32At(grid, YS);
  const tileColumn = column >> 3;
  const tileLine = row >> 3;
  const y = f32At(ys, row);
  if (work <= 0) return UNRESOLVED;
  // The table has found 19 at most that far. Of those as far as the limit itself, each stands for another.
  let worst = limit;
  clearDistances(best, worst);
  setI32(best, WORK, work);
  // Rings of tiles that are behind us: columns left to right, lines top to bottom.
  let ring: i32 = 0;
  let left = tileColumn;
  let right = tileColumn;
  let top = tileLine;
  let bottom = tileLine;
  worst = searchTile(grid, best, column, row, tileColumn, tileLine, worst);
  const lastRing = tilesWide > tilesHigh ? tilesWide : tilesHigh;
  while (ring < lastRing && (ring < 1 || worst === Infinity)) {
    ring++;
    const fromColumn = tileColumn - ring < 0 ? 0 : tileColumn - ring;
    const toColumn = tileColumn + ring >= tilesWide ? tilesWide - 1 : tileColumn + ring;
    const fromLine = tileLine - ring < 0 ? 0 : tileLine - ring;
    const toLine = tileLine + ring >= tilesHigh ? tilesHigh - 1 : tileLine + ring;
    for (let line: i32 = fromLine; line <= toLine; line++) {
      if (line < top || line > bottom) {
        worst = searchTileLine(grid, best, column, row, line, fromColumn, toColumn, worst);
      } else {
        if (fromColumn < left) worst = searchTileLine(grid, best, column, row, line, fromColumn, left - 1, worst);
        if (toColumn > right) worst = searchTileLine(grid, best, column, row, line, right + 1, toColumn, worst);
      }
    }
    left = fromColumn;
    right = toColumn;
    top = fromLine;
    bottom = toLine;
    if (i32At(best, WORK) < 0) return UNRESOLVED;
  }
  for (let line = tileLine; line >= 0; line--) {
    if (line < tileLine && squaredGap(y, f32At(ys, (line << 3) + 7)) >= worst) break;
    worst = searchBeside(grid, best, column, row, line, left, right, line >= top, worst);
    if (i32At(best, WORK) < 0) return UNRESOLVED;
  }
  for (let line = tileLine + 1; line < tilesHigh; line++) {
    if (squaredGap(y, f32At(ys, line << 3)) >= worst) break;
    worst = searchBeside(grid, best, column, row, line, left, right, line <= bottom, worst);
    if (i32At(best, WORK) < 0) return UNRESOLVED;
  }
  return meanOfDistances(best);
}

function squaredGap(one: f64, other: f64): f64 {
  return (one - other) * (one - other);
}

/** A line of tiles, as far as it is laterally near enough; without the columns from left to right where these are behind us. */
function searchBeside(
  grid: i32,
  best: i32,
  column: i32,
  row: i32,
  line: i32,
  left: i32,
  right: i32,
  isBehind: boolean,
  limit: f64,
): f64 {
  const xs = i32At(grid, XS);
  const tilesWide = i32At(grid, TILES_WIDE);
  const x = f32At(xs, column);
  let worst = limit;
  // As far as tiles can matter, by halving steps outward: coordinates rise with the column.
  let first = column >> 3;
  for (let step: i32 = 4096; step > 0; step >>= 1) {
    if (first - step >= 0 && squaredGap(x, f32At(xs, ((first - step) << 3) + 7)) < worst) first -= step;
  }
  let last = column >> 3;
  for (let step: i32 = 4096; step > 0; step >>= 1) {
    if (last + step < tilesWide && squaredGap(x, f32At(xs, (last + step) << 3)) < worst) last += step;
  }
  if (!isBehind) return searchTileLine(grid, best, column, row, line, first, last, worst);
  if (first < left) worst = searchTileLine(grid, best, column, row, line, first, left - 1, worst);
  if (last > right) worst = searchTileLine(grid, best, column, row, line, right + 1, last, worst);
  return worst;
}

/** Looks into those tiles of a line of tiles that may hold something nearer than `limit`; gives the worst distance then. */
function searchTileLine(
  grid: i32,
  best: i32,
  column: i32,
  row: i32,
  tileLine: i32,
  firstTile: i32,
  lastTile: i32,
  limit: f64,
): f64 {
  const xs = i32At(grid, XS);
  const ys = i32At(grid, YS);
  const lines = tileLine * i32At(grid, TILES_WIDE);
  const lowest = i32At(grid, TILE_MINIMA) + (lines << 2);
  const highest = i32At(grid, TILE_MAXIMA) + (lines << 2);
  const x = f32At(xs, column);
  const y = f32At(ys, row);
  const z = f32At(i32At(grid, ZS), row * i32At(grid, STRIDE) + column);
  const ownTile = column >> 3;
  const ownLine = row >> 3;
  let worst = limit;
  let squaredDy: f64 = 0.0;
  if (tileLine < ownLine) squaredDy = squaredGap(y, f32At(ys, (tileLine << 3) + 7));
  else if (tileLine > ownLine) squaredDy = squaredGap(y, f32At(ys, tileLine << 3));
  let work = (lastTile - firstTile) >> 2;
  let nth = firstTile;
  while (nth <= lastTile) {
    nth = nextWithin(lowest, highest, nth, lastTile, z, worst - squaredDy);
    if (nth > lastTile) break;
    let squaredDx: f64 = 0.0;
    if (nth < ownTile) squaredDx = squaredGap(x, f32At(xs, (nth << 3) + 7));
    else if (nth > ownTile) squaredDx = squaredGap(x, f32At(xs, nth << 3));
    const dz = gapToRange(z, f32At(lowest, nth), f32At(highest, nth));
    if ((squaredDx + squaredDy + dz * dz) * SURELY_LESS < worst) {
      worst = searchTile(grid, best, column, row, nth, tileLine, worst);
      work += 16;
    }
    nth++;
  }
  setI32(best, WORK, i32At(best, WORK) - work);
  return worst;
}

function searchTile(grid: i32, best: i32, column: i32, row: i32, tileColumn: i32, tileLine: i32, limit: f64): f64 {
  const xs = i32At(grid, XS);
  const ys = i32At(grid, YS);
  const zs = i32At(grid, ZS);
  const stride = i32At(grid, STRIDE);
  const here = row * stride + column;
  const x = f32At(xs, column);
  const y = f32At(ys, row);
  const z = f32At(zs, here);
  let worst = limit;
  const firstLine = tileLine << 3;
  const firstColumn = tileColumn << 3;
  // Beyond the grid's last column and line lies padding, which is infinitely far.
  for (let line: i32 = firstLine; line < firstLine + 8; line++) {
    const dy = f32At(ys, line) - y;
    const squaredDy = dy * dy;
    if (squaredDy >= worst) continue;
    const base = line * stride;
    const points = zs + (base << 2);
    let at = nextLevel(points, firstColumn, firstColumn + 7, z, worst - squaredDy);
    while (at < firstColumn + 8) {
      const dz = f32At(points, at) - z;
      const dx = f32At(xs, at) - x;
      const distance = dx * dx + squaredDy + dz * dz;
      if (distance < worst && base + at !== here) worst = insertDistance(best, distance);
      at = nextLevel(points, at + 1, firstColumn + 7, z, worst - squaredDy);
    }
  }
  return worst;
}
