import t from "tap";
import { createRandom, type Random } from "../../../../core/random.js";
import { lateralRange } from "../../../../workers/artefacts/filter/grid-layout.js";
import {
  boundTiles,
  filterOutliers,
  finishFilter,
  measureLines,
  planFilter,
  scratchBytes,
} from "../../../../workers/artefacts/filter/outlier-filter.js";
import { typeScriptKernels, wasmKernels } from "../../../../workers/artefacts/kernel-memory.js";
import { SCRATCH_BYTES } from "../../../../workers/artefacts/kernels/neighbour-search.js";
import { doubtfulFrames } from "../../../helpers/captures/doubtful-frames.js";
import {
  frameOf,
  loadFrame,
  type MadeFrame,
  plainHeights,
  surfaceFrame,
} from "../../../helpers/captures/made-frames.js";

const memory = await wasmKernels();
const { wasm } = memory;
if (wasm === null) throw new Error("the kernels in WebAssembly have none");

type HeightOf = (column: number, line: number) => number;

function made(name: string, width: number, lines: number, heightOf: HeightOf, geometry = {}): MadeFrame {
  const values = Array.from({ length: width * lines }, (_, at) => heightOf(at % width, Math.floor(at / width)));
  return frameOf(`${name}, ${width} x ${lines}`, "f32", { width, lines, ...geometry }, values);
}

/** Compares the lanes, in shares of lines, with the exact search of every point, bit by bit. */
async function assertSameBits(frame: MadeFrame, shareLines: number): Promise<{ points: number; isTaken: boolean }> {
  const { width, lines } = frame.geometry;
  const zs = plainHeights(frame);
  const grid = await loadFrame(memory, frame);
  // The offset table of such a grid is too short: it is never measured by lanes.
  if (lateralRange(memory, grid).offsetCount <= 80) return { points: 0, isTaken: false };
  const work = 1e9;
  boundTiles(memory, grid, 0, lines);
  const scratch = memory.allocate(wasm?.exactLanesScratchBytes(grid.address) as number);
  const best = memory.allocate(SCRATCH_BYTES);
  const measuredAt = memory.allocate(8 * width * lines);
  const exactAt = memory.allocate(8 * width * lines);
  const untouched = memory.allocate(64);
  memory.bytes(untouched, 64).fill(0x5a);
  memory.doubles(measuredAt, width * lines).fill(Number.NaN);
  for (let firstLine = 0; firstLine < lines; firstLine += shareLines) {
    const endLine = Math.min(lines, firstLine + shareLines);
    wasm?.measureExactLanes(grid.address, scratch, measuredAt, firstLine, endLine, work);
  }
  memory.kernels.measureExactly(grid.address, best, exactAt, 0, lines, work);
  const measured = memory.doubles(measuredAt, width * lines);
  const exact = memory.doubles(exactAt, width * lines);
  let points = 0;
  for (let at = 0; at < zs.length; at++) {
    if (zs[at] === Number.POSITIVE_INFINITY) continue;
    points++;
    if (!Object.is(measured[at], exact[at])) {
      throw new Error(`${frame.name}: position ${at} has ${measured[at]} in place of ${exact[at]}`);
    }
  }
  if (memory.bytes(untouched, 64).some((byte) => byte !== 0x5a)) throw new Error(`${frame.name}: wrote beyond`);
  return { points, isTaken: true };
}

function randomGrid(random: Random, nth: number): MadeFrame {
  const width = random.integer(1, random.pick([20, 230]));
  const lines = random.integer(1, random.pick([12, 60]));
  const spread = random.pick([0, 0.001, 0.02, 0.2, 3, 1e6]);
  const steps = random.pick([0, 0, 0.1, 50]);
  const invalidShare = random.pick([0, 0, 0.02, 0.3, 0.8, 0.99, 1]);
  const shadow = random.pick([0, 0, 7, 30]);
  const pitches = [0.1, 0.1, 0.1, 0.11, 0.13, 0.25, 1e-6, 4e5];
  const farShare = random.pick([0, 0.01, 0.1]);
  const heightOf: HeightOf = (column, line) => {
    if (random.chance(invalidShare) || column % 40 < shadow) return Number.NaN;
    const step = Math.floor(column / 9) % 2 === 0 ? 0 : steps;
    const far = random.chance(farShare) ? (random.next() - 0.5) * random.pick([1, 20, 1e5]) : 0;
    return step + far + (random.chance(0.5) ? random.normal() : random.integer(-2, 2)) * spread + line * 1e-3;
  };
  const pitch = random.pick(pitches);
  return made(`random ${nth}`, width, lines, heightOf, {
    xPitchMm: pitch,
    yPitchMm: pitch * random.pick([1, 1, 1, 0.9, 1.7, 0.3]),
    xOriginMm: random.pick([0, -84.8, 300]),
  });
}

t.test("exact lanes have the bits of the exact search, whatever the grid and its shares", async (t) => {
  const seed = Number(process.env.SEED ?? 20_261_123);
  t.comment(`seed ${seed}`);
  const random = createRandom(seed);
  let points = 0;
  let taken = 0;
  for (let nth = 0; nth < 250; nth++) {
    const result = await assertSameBits(randomGrid(random, nth), random.integer(1, 70));
    points += result.points;
    if (result.isTaken) taken++;
  }
  t.ok(taken > 200, `${taken} of 250 grids`);
  t.ok(points > 50_000, `${points} points`);
});

t.test("exact lanes have the bits of the exact search where they have their limits", async (t) => {
  const random = createRandom(31);
  const rough = () => random.normal() * 0.01;
  const far = (mm: number): number => (random.chance(0.02) ? (random.next() - 0.5) * mm : 0);
  const [width, lines] = [203, 97];
  for (const frame of [
    surfaceFrame(5, width, lines),
    made("a plane, all ties", width, lines, () => 5),
    made("a slope", width, lines, (column) => column * 0.05),
    made("one point", 1, 1, () => 1),
    made("one column", 1, lines, rough),
    made("one line", width, 1, rough),
    made("nothing but one point", width, lines, (column, line) => (column === 96 && line === 50 ? 1 : Number.NaN)),
    made("no point", width, lines, () => Number.NaN),
    made("nineteen points", width, lines, (column, line) => (line === 3 && column < 19 ? rough() : Number.NaN)),
    made("twenty points", width, lines, (column, line) => (line === 3 && column < 20 ? rough() : Number.NaN)),
    made("every other position", width, lines, (column, line) => ((column + line) % 2 === 0 ? rough() : Number.NaN)),
    made("steps", width, lines, (column) => (column % 9 < 4 ? 0 : 1000) + rough()),
    made("wide shadows", width, lines, (column, line) =>
      column % 50 < 9 || line % 40 < 5 ? Number.NaN : rough() + far(6),
    ),
    made("points off a surface", width, lines, () => rough() + far(6)),
    made("points farther off than tiles are looked at", width, lines, () => rough() + far(400)),
    made("points off a plane, all ties", width, lines, () => (random.chance(0.02) ? random.integer(1, 4) : 0)),
    made("noise", 120, 40, () => random.next() * 6),
    made("far from the origin", width, lines, () => 1e4 + rough(), { xOriginMm: 5000 }),
  ]) {
    await assertSameBits(frame, 13);
    t.pass(frame.name);
  }
});

t.test("where a point lies in the threshold's doubt all are measured again, by exact lanes", async (t) => {
  const reference = typeScriptKernels();
  const run = async (frame: MadeFrame): Promise<{ bits: Uint8Array; isAgain: boolean }> => {
    const { width, lines } = frame.geometry;
    const grid = await loadFrame(memory, frame);
    boundTiles(memory, grid, 0, lines);
    const plan = planFilter(memory, grid);
    t.equal(plan.way, "lanes", frame.name);
    const sums = measureLines(memory, plan, memory.allocate(scratchBytes(memory, plan)), 0, lines);
    const usedBytes = memory.usedBytes;
    const { bits } = finishFilter(memory, plan, [sums]);
    t.same(bits, filterOutliers(reference, await loadFrame(reference, frame)).bits, frame.name);
    return { bits, isAgain: memory.usedBytes - usedBytes >= 8 * width * lines };
  };
  t.notOk((await run(surfaceFrame(5, 61, 53))).isAgain, "where none does it is known without");
  const [one, other] = await doubtfulFrames(41);
  const [stays, leaves] = [await run(one), await run(other)];
  t.ok(stays.isAgain && leaves.isAgain);
  t.notSame(stays.bits, leaves.bits);
});
