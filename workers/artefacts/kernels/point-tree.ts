/**
 * A k-d tree over all points of a grid, for those whose neighbours the grid's order does not help to find: where heights vary much more than
 * positions (pure noise, a frame of stray light), a search through the grid would look at all of it for every point.
 *
 * Points are permuted so that a node is a range of them: its median along the axis of largest extent is in the middle, and the halves are
 * its children, down to LEAF_POINTS (Friedman, Bentley, Finkel, "An Algorithm for Finding Best Matches in Logarithmic Expected Time", 1977).
 * A search leaves out a half whose cell is farther than the worst kept, with the offsets to the cell summed up axis by axis (Arya,
 * Mount, "Algorithms for Fast Vector Quantization", 1993). 16 bytes a point, and 5 a node.
 */
import {
  f32At,
  type f64,
  f64At,
  type i32,
  i32At,
  setF32,
  setF64,
  setI32,
  setU8,
  squareRoot,
  u8At,
  viewDoubles,
  viewSingles,
  viewWords,
} from "./linear-memory.js";
import {
  clearDistances,
  insertAmong,
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
/** A factor that outweighs how differently a bound and a distance are rounded. */
const SURELY_MORE: f64 = 1.000000001;

/** Words (i32) of the block that describes a tree: number of points; x, y and z (f32) and position (i32) of each; value at which a node is divided (f32), and along which axis (u8). */
const POINTS: i32 = 0;
const TREE_COORDINATES: i32 = 1;
const TREE_POSITIONS: i32 = 4;
const TREE_DIVISIONS: i32 = 5;
const TREE_AXES: i32 = 6;
/** A place for what a search puts off: of a node three words, its squared distance and its offsets (f64). */
const TREE_STACK: i32 = 7;
export const TREE_WORDS: i32 = 8;
const STACKED_BYTES: i32 = 48;
/** A path has fewer halves: addresses reach less far than twice as many points. */
export const STACK_BYTES: i32 = STACKED_BYTES * 32;

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
  const singles = viewSingles();
  let axis: i32 = 0;
  let largest: f64 = -1.0;
  for (let nth: i32 = 0; nth < 3; nth++) {
    const values = i32At(tree, TREE_COORDINATES + nth) >> 2;
    let minimum: f64 = Infinity;
    let maximum: f64 = -Infinity;
    for (let at = values + first; at < values + end; at++) {
      const value = singles[at] as f64;
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
  select(tree, axis, first, end - 1, middle);
  setF32(i32At(tree, TREE_DIVISIONS), node, f32At(i32At(tree, TREE_COORDINATES + axis), middle));
  divide(tree, 2 * node, first, middle);
  divide(tree, 2 * node + 1, middle, end);
}

/** Permutes points so that none before `middle` has a larger coordinate, and none behind it a smaller one (Hoare's find). */
function select(tree: i32, axis: i32, from: i32, to: i32, middle: i32): void {
  const singles = viewSingles();
  const values = i32At(tree, TREE_COORDINATES + axis) >> 2;
  // What is permuted with it.
  const second = i32At(tree, TREE_COORDINATES + (axis === 0 ? 1 : 0)) >> 2;
  const third = i32At(tree, TREE_COORDINATES + (axis === 2 ? 1 : 2)) >> 2;
  const positions = i32At(tree, TREE_POSITIONS) >> 2;
  let left = from;
  let right = to;
  while (left < right) {
    const pivot = medianOf(
      singles[values + left] as f64,
      singles[values + ((left + right) >> 1)] as f64,
      singles[values + right] as f64,
    );
    let low = left;
    let high = right;
    while (low <= high) {
      while ((singles[values + low] as f64) < pivot) low++;
      while ((singles[values + high] as f64) > pivot) high--;
      if (low <= high) {
        exchange(values + low, values + high);
        exchange(second + low, second + high);
        exchange(third + low, third + high);
        exchange(positions + low, positions + high);
        low++;
        high--;
      }
    }
    if (middle <= high) right = high;
    else if (middle >= low) left = low;
    else return;
  }
}

function exchange(one: i32, other: i32): void {
  const words = viewWords();
  const word = words[one] as i32;
  words[one] = words[other] as i32;
  words[other] = word;
}

function medianOf(one: f64, two: f64, three: f64): f64 {
  if (one < two) {
    if (two < three) return two;
    return one < three ? three : one;
  }
  if (one < three) return one;
  return two < three ? three : two;
}

/** Exact mean distances of the points whose distance (f32 or f64, by its size) is negative, in an order that keeps neighbours together. */
export function resolveByTree(tree: i32, best: i32, distances: i32, itemBytes: i32): void {
  const count = i32At(tree, POINTS);
  const positions = i32At(tree, TREE_POSITIONS);
  let before: i32 = -1;
  for (let at: i32 = 0; at < count; at++) {
    const position = i32At(positions, at);
    const isOpen = itemBytes === 4 ? f32At(distances, position) < 0.0 : f64At(distances, position) < 0.0;
    if (!isOpen) continue;
    searchTree(tree, best, at, before);
    before = at;
    const distance = meanOfDistances(best);
    if (itemBytes === 4) setF32(distances, position, distance);
    else setF64(distances, position, distance);
  }
}

/**
 * Keeps the nearest of a point's neighbours.
 *
 * `before`: the point whose are kept still, or -1. All of those, and that point, are no farther than its worst and the way to it, and so all but this
 * one are 19 within that: what is kept in the beginning stands for them. Halves that are to be looked into later lie on a stack, the nearest ones on top: calls that hand on
 * distances would cost more than the search where these are objects, as they are to JavaScript.
 */
function searchTree(tree: i32, best: i32, self: i32, before: i32): void {
  const singles = viewSingles();
  const words = viewWords();
  const doubles = viewDoubles();
  const px = i32At(tree, TREE_COORDINATES);
  const py = i32At(tree, TREE_COORDINATES + 1);
  const pz = i32At(tree, TREE_COORDINATES + 2);
  const divisions = i32At(tree, TREE_DIVISIONS) >> 2;
  const axes = i32At(tree, TREE_AXES);
  const stack = i32At(tree, TREE_STACK);
  const xs = px >> 2;
  const ys = py >> 2;
  const zs = pz >> 2;
  const x = singles[xs + self] as f64;
  const y = singles[ys + self] as f64;
  const z = singles[zs + self] as f64;
  let worst: f64 = Infinity;
  if (before >= 0) {
    const bx = (singles[xs + before] as f64) - x;
    const by = (singles[ys + before] as f64) - y;
    const bz = (singles[zs + before] as f64) - z;
    const reach = squareRoot(f64At(best, NEIGHBOURS - 1)) + squareRoot(bx * bx + by * by + bz * bz);
    worst = reach * reach * SURELY_MORE;
  }
  clearDistances(best, worst);
  let kept: i32 = 0;
  let node: i32 = 1;
  let first: i32 = 0;
  let end = i32At(tree, POINTS);
  // How far the node's cell is from the point along each axis.
  let ox: f64 = 0.0;
  let oy: f64 = 0.0;
  let oz: f64 = 0.0;
  let top = stack;
  for (;;) {
    while (end - first > LEAF_POINTS) {
      const axis = u8At(axes, node);
      const middle = (first + end) >> 1;
      const side = (axis === 0 ? x : axis === 1 ? y : z) - (singles[divisions + node] as f64);
      const fx = axis === 0 ? side : ox;
      const fy = axis === 1 ? side : oy;
      const fz = axis === 2 ? side : oz;
      const squared = (fx * fx + fy * fy + fz * fz) * SURELY_LESS;
      const isLeft = side < 0.0;
      node = 2 * node;
      if (squared < worst) {
        const word = top >> 2;
        words[word] = isLeft ? node + 1 : node;
        words[word + 1] = isLeft ? middle : first;
        words[word + 2] = isLeft ? end : middle;
        const double = (top >> 3) + 2;
        doubles[double] = squared;
        doubles[double + 1] = fx;
        doubles[double + 2] = fy;
        doubles[double + 3] = fz;
        top += STACKED_BYTES;
      }
      if (isLeft) end = middle;
      else {
        first = middle;
        node++;
      }
    }
    let at = nextNear(px, py, pz, first, end, x, y, z, worst);
    // Two at a time: what JavaScript checks of an array it checks once in each turn. Behind the last point there is room for one more.
    while (at < end) {
      const next = at + 1;
      const dx = (singles[xs + at] as f64) - x;
      const dy = (singles[ys + at] as f64) - y;
      const dz = (singles[zs + at] as f64) - z;
      const nextDx = (singles[xs + next] as f64) - x;
      const nextDy = (singles[ys + next] as f64) - y;
      const nextDz = (singles[zs + next] as f64) - z;
      const distance = dx * dx + dy * dy + dz * dz;
      const nextDistance = nextDx * nextDx + nextDy * nextDy + nextDz * nextDz;
      if (distance < worst && at !== self) {
        worst = insertAmong(best, kept, distance);
        if (kept < NEIGHBOURS - 1) kept++;
      }
      if (nextDistance < worst && next !== self && next < end) {
        worst = insertAmong(best, kept, nextDistance);
        if (kept < NEIGHBOURS - 1) kept++;
      }
      at = nextNear(px, py, pz, at + 2, end, x, y, z, worst);
    }
    do {
      if (top === stack) return;
      top -= STACKED_BYTES;
    } while ((doubles[(top >> 3) + 2] as f64) >= worst);
    const word = top >> 2;
    node = words[word] as i32;
    first = words[word + 1] as i32;
    end = words[word + 2] as i32;
    const double = (top >> 3) + 3;
    ox = doubles[double] as f64;
    oy = doubles[double + 1] as f64;
    oz = doubles[double + 2] as f64;
  }
}

/** One more than the greatest number of a node, for so many points: nodes are numbered as in a heap. */
export function treeNodes(points: i32): i32 {
  let nodes: i32 = 2;
  for (let rest = points; rest > LEAF_POINTS; rest = (rest + 1) >> 1) nodes *= 2;
  return nodes;
}
