/**
 * A k-d tree over all points of a grid, for those whose neighbours the grid's order does not help to find: where heights vary much more than
 * positions (pure noise, a frame of stray light), a search through the grid would look at all of it for every point.
 *
 * Points are permuted so that a node is a range of them: its median along the axis of largest extent is in the middle, and the halves are
 * its children, down to LEAF_POINTS (Friedman, Bentley, Finkel, "An Algorithm for Finding Best Matches in Logarithmic Expected Time", 1977).
 * A search leaves out a half whose cell is farther than the worst kept, with the offsets to the cell summed up axis by axis (Arya,
 * Mount, "Algorithms for Fast Vector Quantization", 1993). 16 bytes a point, and 5 a node.
 */
import { f32At, type f64, f64At, type i32, i32At, setF32, setF64, setI32, setU8, u8At } from "./linear-memory.js";
import {
  clearDistances,
  insertDistance,
  LINES,
  meanOfDistances,
  NEIGHBOURS,
  STRIDE,
  SURELY_LESS,
  WIDTH,
  XS,
  YS,
  ZS,
} from "./neighbour-search.js";
import { nextNear } from "./range-scan.js";

const LEAF_POINTS: i32 = 32;

/** Words (i32) of the block that describes a tree: number of points; x, y and z (f32) and position (i32) of each; value at which a node is divided (f32), and along which axis (u8). */
const POINTS: i32 = 0;
const TREE_COORDINATES: i32 = 1;
const TREE_POSITIONS: i32 = 4;
const TREE_DIVISIONS: i32 = 5;
const TREE_AXES: i32 = 6;
export const TREE_WORDS: i32 = 7;

/** Takes up the grid's points. The block names the arrays. */
export function plantTree(grid: i32, tree: i32): void {
  const width = i32At(grid, WIDTH);
  const height = i32At(grid, LINES);
  const stride = i32At(grid, STRIDE);
  const zs = i32At(grid, ZS);
  const xs = i32At(grid, XS);
  const ys = i32At(grid, YS);
  const px = i32At(tree, TREE_COORDINATES);
  const py = i32At(tree, TREE_COORDINATES + 1);
  const pz = i32At(tree, TREE_COORDINATES + 2);
  const positions = i32At(tree, TREE_POSITIONS);
  let count: i32 = 0;
  for (let line: i32 = 0; line < height; line++) {
    for (let column: i32 = 0; column < width; column++) {
      const z = f32At(zs, line * stride + column);
      if (z === Infinity) continue;
      setF32(px, count, f32At(xs, column));
      setF32(py, count, f32At(ys, line));
      setF32(pz, count, z);
      setI32(positions, count, line * width + column);
      count++;
    }
  }
  setI32(tree, POINTS, count);
  divide(tree, 1, 0, count);
}

/** Makes a node of the points from `first` to before `end`. */
function divide(tree: i32, node: i32, first: i32, end: i32): void {
  if (end - first <= LEAF_POINTS) return;
  let axis: i32 = 0;
  let largest: f64 = -1.0;
  for (let nth: i32 = 0; nth < 3; nth++) {
    const values = i32At(tree, TREE_COORDINATES + nth);
    let minimum: f64 = Infinity;
    let maximum: f64 = -Infinity;
    for (let at = first; at < end; at++) {
      const value = f32At(values, at);
      if (value < minimum) minimum = value;
      if (value > maximum) maximum = value;
    }
    if (maximum - minimum > largest) {
      largest = maximum - minimum;
      axis = nth;
    }
  }
  setU8(i32At(tree, TREE_AXES), node, axis);
  const middle = (first + end) >> 1;
  select(tree, i32At(tree, TREE_COORDINATES + axis), first, end - 1, middle);
  setF32(i32At(tree, TREE_DIVISIONS), node, f32At(i32At(tree, TREE_COORDINATES + axis), middle));
  divide(tree, 2 * node, first, middle);
  divide(tree, 2 * node + 1, middle, end);
}

/** Permutes points so that none before `middle` has a larger value, and none behind it a smaller one (Hoare's find). */
function select(tree: i32, values: i32, from: i32, to: i32, middle: i32): void {
  let left = from;
  let right = to;
  while (left < right) {
    const pivot = medianOf(f32At(values, left), f32At(values, (left + right) >> 1), f32At(values, right));
    let low = left;
    let high = right;
    while (low <= high) {
      while (f32At(values, low) < pivot) low++;
      while (f32At(values, high) > pivot) high--;
      if (low <= high) {
        exchange(tree, low, high);
        low++;
        high--;
      }
    }
    if (middle <= high) right = high;
    else if (middle >= low) left = low;
    else return;
  }
}

function medianOf(one: f64, two: f64, three: f64): f64 {
  if (one < two) {
    if (two < three) return two;
    return one < three ? three : one;
  }
  if (one < three) return one;
  return two < three ? three : two;
}

function exchange(tree: i32, one: i32, other: i32): void {
  for (let nth: i32 = 0; nth < 4; nth++) {
    const words = i32At(tree, TREE_COORDINATES + nth);
    const word = i32At(words, one);
    setI32(words, one, i32At(words, other));
    setI32(words, other, word);
  }
}

/** Words (f64) of a search's scratch behind its best distances: the point's coordinates. */
const QUERY: i32 = NEIGHBOURS + 2;

/** Exact mean distances of the points whose distance (f32 or f64, by its size) is negative, in an order that keeps neighbours together. */
export function resolveByTree(tree: i32, best: i32, distances: i32, itemBytes: i32): void {
  const count = i32At(tree, POINTS);
  const positions = i32At(tree, TREE_POSITIONS);
  for (let at: i32 = 0; at < count; at++) {
    const position = i32At(positions, at);
    const isOpen = itemBytes === 4 ? f32At(distances, position) < 0.0 : f64At(distances, position) < 0.0;
    if (!isOpen) continue;
    for (let nth: i32 = 0; nth < 3; nth++) setF64(best, QUERY + nth, f32At(i32At(tree, TREE_COORDINATES + nth), at));
    clearDistances(best, Infinity);
    searchNode(tree, best, at, 1, 0, count, 0.0, 0.0, 0.0, Infinity);
    const distance = meanOfDistances(best);
    if (itemBytes === 4) setF32(distances, position, distance);
    else setF64(distances, position, distance);
  }
}

/** `ox`, `oy`, `oz`: how far the node's cell is from the point along each axis. Gives the worst distance that is kept then. */
function searchNode(
  tree: i32,
  best: i32,
  self: i32,
  node: i32,
  first: i32,
  end: i32,
  ox: f64,
  oy: f64,
  oz: f64,
  limit: f64,
): f64 {
  if (end - first <= LEAF_POINTS) return searchLeaf(tree, best, self, first, end, limit);
  const axis = u8At(i32At(tree, TREE_AXES), node);
  const middle = (first + end) >> 1;
  const side = f64At(best, QUERY + axis) - f32At(i32At(tree, TREE_DIVISIONS), node);
  const isLeft = side < 0.0;
  const nearNode = 2 * node + (isLeft ? 0 : 1);
  const farNode = 2 * node + (isLeft ? 1 : 0);
  let worst = limit;
  if (isLeft) worst = searchNode(tree, best, self, nearNode, first, middle, ox, oy, oz, worst);
  else worst = searchNode(tree, best, self, nearNode, middle, end, ox, oy, oz, worst);
  const fx = axis === 0 ? side : ox;
  const fy = axis === 1 ? side : oy;
  const fz = axis === 2 ? side : oz;
  if ((fx * fx + fy * fy + fz * fz) * SURELY_LESS >= worst) return worst;
  if (isLeft) return searchNode(tree, best, self, farNode, middle, end, fx, fy, fz, worst);
  return searchNode(tree, best, self, farNode, first, middle, fx, fy, fz, worst);
}

function searchLeaf(tree: i32, best: i32, self: i32, first: i32, end: i32, limit: f64): f64 {
  const px = i32At(tree, TREE_COORDINATES);
  const py = i32At(tree, TREE_COORDINATES + 1);
  const pz = i32At(tree, TREE_COORDINATES + 2);
  const x = f64At(best, QUERY);
  const y = f64At(best, QUERY + 1);
  const z = f64At(best, QUERY + 2);
  let worst = limit;
  let at = nextNear(px, py, pz, first, end, x, y, z, worst);
  while (at < end) {
    const dx = f32At(px, at) - x;
    const dy = f32At(py, at) - y;
    const dz = f32At(pz, at) - z;
    const distance = dx * dx + dy * dy + dz * dz;
    if (distance < worst && at !== self) worst = insertDistance(best, distance);
    at = nextNear(px, py, pz, at + 1, end, x, y, z, worst);
  }
  return worst;
}

/** One more than the greatest number of a node, for so many points: nodes are numbered as in a heap. */
export function treeNodes(points: i32): i32 {
  let nodes: i32 = 2;
  for (let rest = points; rest > LEAF_POINTS; rest = (rest + 1) >> 1) nodes *= 2;
  return nodes;
}
