import t from "tap";
import { createRandom } from "../../../../core/random.js";
import { fillTables, lateralRange, layOutGrid, placeGrid } from "../../../../workers/artefacts/filter/grid-layout.js";
import { typeScriptKernels } from "../../../../workers/artefacts/kernel-memory.js";
import {
  GRID_WORDS,
  OFFSET_BOUNDS,
  OFFSET_COLUMNS,
  OFFSET_COUNT,
  OFFSET_LINES,
  OFFSET_STEPS,
  PADDING,
  TILE_MAXIMA,
  TILE_MINIMA,
} from "../../../../workers/artefacts/kernels/neighbour-search.js";

const MOST_OFFSETS = 160;

/** Coordinates as the PLY has them, padding included. */
function coordinatesMm(count: number, originMm: number, pitchMm: number): Float32Array {
  return Float32Array.from({ length: count + 2 * PADDING }, (_, nth) => originMm + (nth - PADDING) * pitchMm);
}

function leastGap(coordinates: Float32Array, apart: number): number {
  const gaps = Array.from(coordinates.subarray(apart), (end, nth) => end - (coordinates[nth] as number));
  return Math.min(...gaps);
}

/** Every offset within the padding, in the plainest way: bounds, rising. */
function plainBounds(xs: Float32Array, ys: Float32Array): number[] {
  const outside = Math.min(leastGap(xs, PADDING + 1), leastGap(ys, PADDING + 1)) ** 2;
  const bounds: number[] = [];
  for (let line = -PADDING; line <= PADDING; line++) {
    for (let column = -PADDING; column <= PADDING; column++) {
      if (line === 0 && column === 0) continue;
      const [x, y] = [leastGap(xs, Math.abs(column)), leastGap(ys, Math.abs(line))];
      if (x * x + y * y <= outside) bounds.push(x * x + y * y);
    }
  }
  return bounds.sort((a, b) => a - b).slice(0, MOST_OFFSETS);
}

t.test("the table of offsets has the nearest ones there are, each beside the opposite one", async (t) => {
  const seed = Number(process.env.SEED ?? 20_261_125);
  t.comment(`seed ${seed}`);
  const random = createRandom(seed);
  const memory = typeScriptKernels();
  const pitches = [0.1, 0.1, 0.024, 1e-3, 0.73, 5, 1e-9];
  for (let nth = 0; nth < 60; nth++) {
    const geometry = {
      ...{ width: random.integer(1, 90), lines: random.integer(1, 90) },
      ...{ xPitchMm: random.pick(pitches), yPitchMm: random.pick(pitches) },
      ...{ xOriginMm: random.pick([0, -84.8, 300]), yOriginMm: 0 },
    };
    const { width, lines, xPitchMm, yPitchMm, xOriginMm, yOriginMm } = geometry;
    const what = JSON.stringify(geometry);
    memory.reset();
    // What was in the memory before is nothing to go by.
    memory.bytes(memory.allocate(60_000), 60_000).fill(0x7b);
    memory.reset();
    const grid = layOutGrid(memory, geometry);
    const words = memory.words(grid.address, GRID_WORDS);
    const count = words[OFFSET_COUNT] as number;
    const [columns, rows, steps] = [OFFSET_COLUMNS, OFFSET_LINES, OFFSET_STEPS].map((word) =>
      memory.words(words[word] as number, count),
    ) as [Int32Array, Int32Array, Int32Array];
    const bounds = memory.doubles(words[OFFSET_BOUNDS] as number, count);
    const xs = coordinatesMm(width, xOriginMm, xPitchMm);
    const ys = coordinatesMm(lines, yOriginMm, yPitchMm);
    t.same([...bounds], plainBounds(xs, ys), what);
    const seen = new Set<string>();
    let reach = 0;
    for (let at = 0; at < count; at++) {
      const [column, row] = [columns[at] as number, rows[at] as number];
      seen.add(`${column} ${row}`);
      reach = Math.max(reach, column);
      const opposite = at % 2 === 0 ? at + 1 : at - 1;
      const isOpposite = (columns[opposite] as number) === -column && (rows[opposite] as number) === -row;
      const x = leastGap(xs, Math.abs(column));
      const y = leastGap(ys, Math.abs(row));
      if (!isOpposite || bounds[at] !== x * x + y * y) t.fail(`${what}: entry ${at}`);
      if (steps[at] !== row * grid.stride + column) t.fail(`${what}: step ${at}`);
    }
    t.equal(seen.size, count, "each once");
    for (let k = -reach; k <= reach; k++) {
      const squares = memory.singles(grid.squares + 4 * k * grid.squaresPitch, width);
      const wanted = Float32Array.from(
        { length: width },
        (_, at) => ((xs[at + PADDING + k] as number) - (xs[at + PADDING] as number)) ** 2,
      );
      if (!Buffer.from(squares.slice().buffer).equals(Buffer.from(wanted.buffer))) t.fail(`${what}: squares of ${k}`);
    }
    const whole = (all: Float32Array): number => (all.at(-1) as number) - (all[0] as number);
    t.same(
      lateralRange(memory, grid),
      {
        offsetCount: count,
        leastSquared: Math.min(leastGap(xs, 1), leastGap(ys, 1)) ** 2,
        greatestSquared: whole(xs) ** 2 + whole(ys) ** 2,
      },
      "the range of lateral distances",
    );
  }
});

t.test("heights may be put in between placing a grid and filling its tables", async (t) => {
  const memory = typeScriptKernels();
  const geometry = { width: 21, lines: 13, xPitchMm: 0.1, yPitchMm: 0.2, xOriginMm: 0, yOriginMm: 0 };
  const grid = placeGrid(memory, geometry);
  const { zs, stride, width, lines } = grid;
  const at = (line: number): number => zs + 4 * line * stride;
  for (let line = 0; line < lines; line++) memory.singles(at(line), width).fill(line + 1);
  memory.kernels.boundTiles(grid.address, 0);
  memory.kernels.boundTiles(grid.address, 1);
  const bounded = memory.bytes(0, memory.usedBytes).slice();
  fillTables(memory, grid, geometry);
  for (let line = 0; line < lines; line++) {
    if (memory.singles(at(line), width).some((z) => z !== line + 1)) t.fail(`line ${line}`);
    const between = memory.singles(at(line) + 4 * width, 2 * PADDING);
    if (between.some((z) => z !== Number.POSITIVE_INFINITY)) t.fail(`behind line ${line}`);
  }
  memory.kernels.boundTiles(grid.address, 0);
  memory.kernels.boundTiles(grid.address, 1);
  const tiles = (bytes: Uint8Array): Uint8Array => {
    const words = memory.words(grid.address, GRID_WORDS);
    const [minima, maxima] = [words[TILE_MINIMA] as number, words[TILE_MAXIMA] as number];
    return Buffer.concat([bytes.slice(minima, minima + 24), bytes.slice(maxima, maxima + 24)]);
  };
  t.same(tiles(memory.bytes(0, memory.usedBytes)), tiles(bounded), "tiles are bounded as they were before");
});
