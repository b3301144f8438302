/**
 * A k-d tree over all points of a grid. It is for heights that vary much more than positions: pure noise, or a frame of
 * stray light. There the grid's order does not help, and a search through the grid would look at all of it for every
 * point.
 *
 * Points are permuted so that a node is a range of them. Its median along the axis of largest extent is in the middle,
 * and the two halves are its children, down to LEAF_POINTS (Friedman, Bentley, Finkel, "An Algorithm for Finding Best
 * Matches in Logarithmic Expected Time", 1977). A search leaves out a half whose cell is farther than the worst kept
 * distance. The offsets to the cell are summed axis by axis (Arya, Mount, "Algorithms for Fast Vector Quantization",
 * 1993). The tree takes 16 bytes a point and 5 a node.
 */
import { f32At, f64At, i32At, setF32, setF64, setI32 } from "../linear-memory";
import { Grid, lineOf } from "./grid";
import { clearDistances, insertDistance, meanOfDistances, NEIGHBOURS, SURELY_LESS, squared } from "./neighbour-search";

const LEAF_POINTS: i32 = 32;
/** A factor that covers the different rounding of a bound and a distance. */
const SURELY_MORE: f64 = 1.000000001;

/**
 * Addresses of the tree's arrays. Each point has coordinates (f32) and its position (i32). Each node has the value at
 * which it is divided (f32) and the axis (u8).
 */
let xs: usize = 0;
let ys: usize = 0;
let zs: usize = 0;
let positions: usize = 0;
let divisions: usize = 0;
let axes: usize = 0;
/** The point whose neighbours are searched, and the worst squared distance kept so far. */
let self: i32 = 0;
let x: f64 = 0;
let y: f64 = 0;
let z: f64 = 0;
let worst: f64 = 0;

/** Bytes that `measureByTree` needs for this many points. */
export function treeBytes(points: i32): usize {
  return 16 * <usize>points + 5 * <usize>nodesOf(points);
}

/** One more than the largest number of a node. Nodes are numbered as in a heap. */
function nodesOf(points: i32): i32 {
  let nodes = 2;
  for (let rest = points; rest > LEAF_POINTS; rest = (rest + 1) >> 1) nodes *= 2;
  return nodes;
}

/**
 * Exact mean distances (f64) of all points.
 *
 * @param best room for 19 f64
 * @param points how many there are at most
 * @param tree `treeBytes` of them
 */
export function measureByTree(grid: Grid, best: usize, distances: usize, points: i32, tree: usize): void {
  xs = tree;
  ys = xs + (points << 2);
  zs = ys + (points << 2);
  positions = zs + (points << 2);
  divisions = positions + (points << 2);
  axes = divisions + (nodesOf(points) << 2);
  const count = plant(grid);
  divide(1, 0, count);
  // This order keeps neighbours together.
  for (let at = 0; at < count; at++) {
    self = at;
    x = f32At(xs, at);
    y = f32At(ys, at);
    z = f32At(zs, at);
    begin(best, at - 1);
    search(best, 1, 0, count, 0, 0, 0);
    setF64(distances, i32At(positions, at), meanOfDistances(best));
  }
}

/** Copies the grid's points into the tree. */
function plant(grid: Grid): i32 {
  let count = 0;
  for (let line = 0; line < grid.lines; line++) {
    const points = lineOf(grid, line);
    for (let column = 0; column < grid.width; column++) {
      const height = f32At(points, column);
      if (height === Infinity) continue;
      setF32(xs, count, f32At(grid.xs, column));
      setF32(ys, count, f32At(grid.ys, line));
      setF32(zs, count, height);
      setI32(positions, count, line * grid.width + column);
      count++;
    }
  }
  return count;
}

function coordinatesOf(axis: i32): usize {
  return axis === 0 ? xs : axis === 1 ? ys : zs;
}

/** Makes a node of the points from `first` up to before `end`. */
function divide(node: i32, first: i32, end: i32): void {
  if (end - first <= LEAF_POINTS) return;
  let axis = 0;
  let largest: f64 = -1;
  for (let nth = 0; nth < 3; nth++) {
    const extent = extentOf(coordinatesOf(nth), first, end);
    if (extent <= largest) continue;
    largest = extent;
    axis = nth;
  }
  const middle = (first + end) >> 1;
  select(coordinatesOf(axis), first, end - 1, middle);
  store<u8>(axes + node, <u8>axis);
  setF32(divisions, node, f32At(coordinatesOf(axis), middle));
  divide(2 * node, first, middle);
  divide(2 * node + 1, middle, end);
}

function extentOf(values: usize, first: i32, end: i32): f64 {
  let least: f64 = Infinity;
  let most: f64 = -Infinity;
  for (let at = first; at < end; at++) {
    least = min(least, f32At(values, at));
    most = max(most, f32At(values, at));
  }
  return most - least;
}

/** Permutes points so that none before `middle` has a larger value, and none after it a smaller one (Hoare's find). */
function select(values: usize, from: i32, to: i32, middle: i32): void {
  let left = from;
  let right = to;
  while (left < right) {
    const pivot = medianOf(f32At(values, left), f32At(values, (left + right) >> 1), f32At(values, right));
    let low = left;
    let high = right;
    while (low <= high) {
      while (f32At(values, low) < pivot) low++;
      while (f32At(values, high) > pivot) high--;
      if (low > high) break;
      exchange(xs, low, high);
      exchange(ys, low, high);
      exchange(zs, low, high);
      exchange(positions, low, high);
      low++;
      high--;
    }
    if (middle <= high) right = high;
    else if (middle >= low) left = low;
    else return;
  }
}

function exchange(items: usize, one: i32, other: i32): void {
  const item = i32At(items, one);
  setI32(items, one, i32At(items, other));
  setI32(items, other, item);
}

function medianOf(one: f64, two: f64, three: f64): f64 {
  return max(min(one, two), min(max(one, two), three));
}

/**
 * Begins a search with what is known from the point before, whose neighbours are still kept; -1: there is none.
 *
 * That point and its neighbours are 20 points. None of them is farther than its worst distance plus the way to it. One
 * of them may be the new point itself. So at least 19 others lie within that limit, and the search begins with it.
 */
function begin(best: usize, before: i32): void {
  worst = Infinity;
  if (before >= 0) {
    const way = squared(f32At(xs, before) - x) + squared(f32At(ys, before) - y) + squared(f32At(zs, before) - z);
    worst = squared(sqrt<f64>(f64At(best, NEIGHBOURS - 1)) + sqrt<f64>(way)) * SURELY_MORE;
  }
  clearDistances(best, worst);
}

/** Keeps the nearest of the points of a node. `dx`, `dy`, `dz`: how far its cell is along each axis. */
function search(best: usize, node: i32, first: i32, end: i32, dx: f64, dy: f64, dz: f64): void {
  if (end - first <= LEAF_POINTS) {
    searchLeaf(best, first, end);
    return;
  }
  const axis = <i32>load<u8>(axes + node);
  const middle = (first + end) >> 1;
  const side = (axis === 0 ? x : axis === 1 ? y : z) - f32At(divisions, node);
  const isLeft = side < 0;
  if (isLeft) search(best, 2 * node, first, middle, dx, dy, dz);
  else search(best, 2 * node + 1, middle, end, dx, dy, dz);
  const otherX = axis === 0 ? side : dx;
  const otherY = axis === 1 ? side : dy;
  const otherZ = axis === 2 ? side : dz;
  if ((otherX * otherX + otherY * otherY + otherZ * otherZ) * SURELY_LESS >= worst) return;
  if (isLeft) search(best, 2 * node + 1, middle, end, otherX, otherY, otherZ);
  else search(best, 2 * node, first, middle, otherX, otherY, otherZ);
}

function searchLeaf(best: usize, first: i32, end: i32): void {
  for (let at = first; at < end; at++) {
    const dx = f32At(xs, at) - x;
    const dy = f32At(ys, at) - y;
    const dz = f32At(zs, at) - z;
    const distance = dx * dx + dy * dy + dz * dz;
    if (distance < worst && at !== self) worst = insertDistance(best, distance);
  }
}
