import t from "tap";
import { createRandom } from "../../../../core/random.js";
import { layOutGrid, PADDING } from "../../../../workers/artefacts/filter/grid-layout.js";
import { newKernelMemory } from "../../../../workers/artefacts/kernel-memory.js";

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
  const memory = await newKernelMemory();
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
    // What was in the memory before must not matter.
    memory.bytes(memory.allocate(60_000), 60_000).fill(0x7b);
    memory.reset();
    const grid = layOutGrid(memory, geometry);
    const { count } = grid.offsets;
    const [columns, rows, steps] = [grid.offsets.columns, grid.offsets.lines, grid.offsets.steps].map((at) =>
      memory.words(at, count),
    ) as [Int32Array, Int32Array, Int32Array];
    const bounds = memory.doubles(grid.offsets.bounds, count);
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
      const expected = Float32Array.from(
        { length: width },
        (_, at) => ((xs[at + PADDING + k] as number) - (xs[at + PADDING] as number)) ** 2,
      );
      if (!Buffer.from(squares.slice().buffer).equals(Buffer.from(expected.buffer))) t.fail(`${what}: squares of ${k}`);
    }
    const whole = (all: Float32Array): number => (all.at(-1) as number) - (all[0] as number);
    const { leastSquaredMm, greatestSquaredMm } = grid;
    const expected = [Math.min(leastGap(xs, 1), leastGap(ys, 1)) ** 2, whole(xs) ** 2 + whole(ys) ** 2];
    t.same([leastSquaredMm, greatestSquaredMm], expected, "the range of lateral distances");
  }
});

t.test("heights have nothing around them, and tiles are bounded by those that are points", async (t) => {
  const memory = await newKernelMemory();
  const random = createRandom(12);
  for (const [width, lines] of [
    [1, 1],
    [8, 8],
    [53, 31],
    [130, 17],
  ] as const) {
    const what = `${width} x ${lines}`;
    memory.reset();
    memory.bytes(memory.allocate(200_000), 200_000).fill(0x7b);
    memory.reset();
    const grid = layOutGrid(memory, { width, lines, xPitchMm: 0.1, yPitchMm: 0.2, xOriginMm: 0, yOriginMm: 0 });
    const heightsOf = (line: number): Float32Array =>
      memory.singles(grid.zs + 4 * line * grid.stride - 4 * PADDING, grid.stride);
    for (let line = 0; line < lines; line++) {
      for (let column = 0; column < width; column++) {
        heightsOf(line)[PADDING + column] = random.chance(0.4) ? Number.POSITIVE_INFINITY : random.normal() * 3;
      }
    }
    for (let line = -PADDING; line < lines + PADDING; line++) {
      const inside = line < 0 || line >= lines ? 0 : width;
      const around = [...heightsOf(line).subarray(0, PADDING), ...heightsOf(line).subarray(PADDING + inside)];
      if (around.some((z) => z !== Number.POSITIVE_INFINITY)) t.fail(`${what}: around line ${line}`);
    }
    const points = memory.kernels.boundTiles(grid.address);
    const expected = Array.from({ length: grid.tiles.count }, () => ({ points: 0, least: Infinity, most: -Infinity }));
    for (let line = 0; line < lines; line++) {
      for (let column = 0; column < width; column++) {
        const z = heightsOf(line)[PADDING + column] as number;
        const tile = expected[Math.floor(line / 8) * Math.ceil(width / 8) + Math.floor(column / 8)];
        if (z === Number.POSITIVE_INFINITY || tile === undefined) continue;
        tile.points++;
        tile.least = Math.min(tile.least, z);
        tile.most = Math.max(tile.most, z);
      }
    }
    t.equal(
      points,
      expected.reduce((sum, tile) => sum + tile.points, 0),
      what,
    );
    const { count, minima, maxima } = grid.tiles;
    const [least, most] = [expected.map((tile) => tile.least), expected.map((tile) => tile.most)];
    t.same([[...memory.singles(minima, count)], [...memory.singles(maxima, count)]], [least, most], what);
  }
});
