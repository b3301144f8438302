import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { createRandom, type Random } from "../../../../core/random.js";
import { filterOutliers } from "../../../../workers/artefacts/filter/outlier-filter.js";
import { newKernelMemory } from "../../../../workers/artefacts/kernel-memory.js";
import { doubtfulFrames } from "../../../helpers/captures/doubtful-frames.js";
import {
  frameOf,
  loadFrame,
  type MadeFrame,
  noiseFrame,
  plainHeights,
  realFrames,
  surfaceFrame,
} from "../../../helpers/captures/made-frames.js";
import { pythonWith, runPython, skipWithout } from "../../../helpers/captures/python-checker.js";

const memory = await newKernelMemory();
/** More than any search costs. */
const UNLIMITED = 1e15;

/** The definition, point against point, in the order of operations that Open3D has. Gives the mask as one number a position. */
function bruteForce(frame: MadeFrame): Uint8Array {
  const { width, lines, xPitchMm, yPitchMm, xOriginMm, yOriginMm } = frame.geometry;
  const zs = plainHeights(frame);
  const points: [x: number, y: number, z: number, at: number][] = [];
  for (let line = 0; line < lines; line++) {
    for (let column = 0; column < width; column++) {
      const z = zs[line * width + column] as number;
      if (z === Number.POSITIVE_INFINITY) continue;
      const x = Math.fround(xOriginMm + column * xPitchMm);
      points.push([x, Math.fround(yOriginMm + line * yPitchMm), z, line * width + column]);
    }
  }
  const averages = points.map(([x, y, z]) => {
    const nearest: number[] = [];
    for (const [px, py, pz] of points) {
      const square = (px - x) * (px - x) + (py - y) * (py - y) + (pz - z) * (pz - z);
      if (nearest.length === 20 && square >= (nearest[19] as number)) continue;
      let at = Math.min(nearest.length, 19);
      for (; at > 0 && (nearest[at - 1] as number) > square; at--) nearest[at] = nearest[at - 1] as number;
      nearest[at] = square;
    }
    let sum = 0;
    for (const square of nearest) sum += Math.sqrt(square);
    return sum / nearest.length;
  });
  let sum = 0;
  for (const average of averages) if (average > 0) sum += average;
  const mean = sum / averages.length;
  let squares = 0;
  for (const average of averages) if (average > 0) squares += (average - mean) * (average - mean);
  const threshold = mean + 2 * Math.sqrt(squares / (averages.length - 1));
  const mask = new Uint8Array(width * lines);
  for (const [nth, average] of averages.entries()) {
    if (average > 0 && average < threshold) mask[(points[nth] as (typeof points)[number])[3]] = 1;
  }
  return mask;
}

function unpacked(bits: Uint8Array, length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, at) => ((bits[at >> 3] as number) >> (at & 7)) & 1);
}

async function assertAsBruteForce(t: Test, frame: MadeFrame): Promise<void> {
  const wanted = bruteForce(frame);
  const points = plainHeights(frame).filter((z) => z !== Number.POSITIVE_INFINITY).length;
  const result = filterOutliers(memory, await loadFrame(memory, frame));
  const inliers = unpacked(result.bits, wanted.length);
  const differs = inliers.findIndex((bit, at) => bit !== wanted[at]);
  if (differs >= 0) t.fail(`${frame.name}: position ${differs} is ${inliers[differs]}`);
  if (result.points !== points || result.inliers !== wanted.reduce((sum, bit) => sum + bit, 0)) {
    t.fail(`${frame.name}: counts ${result.points} points, ${result.inliers} inliers`);
  }
  t.pass(frame.name);
}

/** Heights of every sort that a small grid can have. */
function randomFrame(random: Random, nth: number): MadeFrame {
  const width = random.integer(1, 16);
  const lines = random.integer(1, 16);
  const dtype = random.pick(["u16", "i16", "i32", "f32"] as const);
  const spread = random.pick([0, 1, 3, 50, 30_000]);
  const invalidShare = random.pick([0, 0.05, 0.5, 0.9, 1]);
  const code = dtype === "u16" ? 0 : -32_768;
  const values = Array.from({ length: width * lines }, () => {
    if (random.chance(invalidShare)) return dtype === "f32" && random.chance(0.5) ? Number.NaN : code;
    const base = 31_000 + random.integer(-spread, spread);
    const huge = random.chance(0.02) ? random.integer(-500, 500) * 60 : 0;
    return Math.max(1, Math.min(dtype === "i16" ? 32_767 : 65_535, base + huge));
  });
  const pitches = [0.1, 0.1, 0.024, 1e-3, 0.73, 5, 1e-9, 1e6];
  return frameOf(
    `random ${nth}: ${width} x ${lines} ${dtype}, spread ${spread}, invalid ${invalidShare}`,
    dtype,
    {
      width,
      lines,
      xPitchMm: random.pick(pitches),
      yPitchMm: random.pick(pitches),
      xOriginMm: random.pick([0, -84.8, 300]),
    },
    values,
    { scale_mm: random.pick([0.01, 0.000_01, 1, 7]), offset_mm: random.pick([0, -300.5]), invalid: [code] },
  );
}

t.test("the points of the definition are kept on small random grids", async (t) => {
  const seed = Number(process.env.SEED ?? 20_261_121);
  t.comment(`seed ${seed}`);
  const random = createRandom(seed);
  for (let nth = 0; nth < 150; nth++) await assertAsBruteForce(t, randomFrame(random, nth));
});

type HeightOf = (column: number, line: number) => number;

function made(name: string, width: number, lines: number, heightOf: HeightOf, geometry = {}): MadeFrame {
  const values = Array.from({ length: width * lines }, (_, at) => heightOf(at % width, Math.floor(at / width)));
  return frameOf(`${name}, ${width} x ${lines}`, "f32", { width, lines, ...geometry }, values);
}

/** Distances by the lanes, which search through the grid, and by the tree, which have nothing in common: within the lanes' error. */
async function assertSameDistances(t: Test, frame: MadeFrame): Promise<void> {
  const { kernels } = memory;
  const grid = await loadFrame(memory, frame);
  const { address, width, lines, zs, stride, offsets } = grid;
  const count = width * lines;
  const points = kernels.boundTiles(address);
  const [scratch, lanesAt, untouched] = [memory.allocate(2_048), memory.allocate(4 * count), memory.allocate(64)];
  const treeAt = memory.allocate(8 * count);
  memory.bytes(untouched, 64).fill(0x5a);
  if (offsets.count <= 80 || grid.leastSquaredMm <= 1e-30) return;
  t.equal(kernels.measureLanes(address, scratch, lanesAt, UNLIMITED), 1);
  t.ok(
    memory.bytes(untouched, 64).every((byte) => byte === 0x5a),
    `${frame.name}: nothing is written beyond`,
  );
  kernels.measureByTree(address, scratch, treeAt, points, memory.allocate(kernels.treeBytes(points)));
  const tree = memory.doubles(treeAt, count);
  const approximate = memory.singles(lanesAt, count);
  let worst = 0;
  for (let at = 0; at < count; at++) {
    const height = memory.singles(zs + 4 * stride * Math.floor(at / width), width)[at % width];
    if (height === Number.POSITIVE_INFINITY) continue;
    const distance = tree[at] as number;
    if (distance > 0) worst = Math.max(worst, Math.abs((approximate[at] as number) / distance - 1));
  }
  t.ok(worst <= 5 * 2 ** -24, `${frame.name}: the lanes are off by ${worst}`);
}

t.test("both searches find the same distances on random grids", async (t) => {
  const seed = Number(process.env.SEED ?? 20_261_123);
  t.comment(`seed ${seed}`);
  const random = createRandom(seed);
  for (let nth = 0; nth < 200; nth++) await assertSameDistances(t, steppedFrame(random, nth));
});

/** Steps, shadows, points far off, and pitches within the range of f32. */
function steppedFrame(random: Random, nth: number): MadeFrame {
  const width = random.integer(1, random.pick([20, 230]));
  const lines = random.integer(1, random.pick([12, 60]));
  const spread = random.pick([0, 0.001, 0.02, 0.2, 3, 1e6]);
  const steps = random.pick([0, 0, 0.1, 50]);
  const invalidShare = random.pick([0, 0, 0.02, 0.3, 0.8, 0.99, 1]);
  const shadow = random.pick([0, 0, 7, 30]);
  const pitch = random.pick([0.1, 0.1, 0.1, 0.11, 0.13, 0.25, 1e-6, 4e5]);
  const farShare = random.pick([0, 0.01, 0.1]);
  const heightOf: HeightOf = (column, line) => {
    if (random.chance(invalidShare) || column % 40 < shadow) return Number.NaN;
    const step = Math.floor(column / 9) % 2 === 0 ? 0 : steps;
    const far = random.chance(farShare) ? (random.next() - 0.5) * random.pick([1, 20, 1e5]) : 0;
    return step + far + (random.chance(0.5) ? random.normal() : random.integer(-2, 2)) * spread + line * 1e-3;
  };
  return made(`random ${nth}`, width, lines, heightOf, {
    xPitchMm: pitch,
    yPitchMm: pitch * random.pick([1, 1, 1, 0.9, 1.7, 0.3]),
    xOriginMm: random.pick([0, -84.8, 300]),
  });
}

t.test("both searches find the same distances where they have their limits", async (t) => {
  const random = createRandom(31);
  const rough = () => random.normal() * 0.01;
  const far = (mm: number): number => (random.chance(0.02) ? (random.next() - 0.5) * mm : 0);
  const [width, lines] = [203, 97];
  for (const frame of [
    surfaceFrame(5, width, lines),
    noiseFrame(9, 70, 40),
    made("a plane, all ties", width, lines, () => 5),
    made("heights of few steps", 60, 50, () => random.integer(0, 5)),
    made("one place", 60, 50, () => 0, { xPitchMm: 1e-30, yPitchMm: 1e-30 }),
    made("a slope with points off it", width, lines, (column) => column * 0.02 + rough() + far(8)),
    made("one point", 1, 1, () => 1),
    made("a line", 2_100, 1, () => 0),
    made("a line across", 1, 2_100, () => 0, { yPitchMm: 0.024 }),
    made("nothing but one point", width, lines, (column, line) => (column === 96 && line === 50 ? 1 : Number.NaN)),
    made("no point", width, lines, () => Number.NaN),
    made("nineteen points", width, lines, (column, line) => (line === 3 && column < 19 ? rough() : Number.NaN)),
    made("twenty points", width, lines, (column, line) => (line === 3 && column < 20 ? rough() : Number.NaN)),
    made("every other position", width, lines, (column, line) => ((column + line) % 2 === 0 ? rough() : Number.NaN)),
    made("steps", width, lines, (column) => (column % 9 < 4 ? 0 : 1000) + rough()),
    made("wide shadows", width, lines, (column, line) =>
      column % 50 < 9 || line % 40 < 5 ? Number.NaN : rough() + far(6),
    ),
    made("points farther off than the grid is wide", width, lines, () => rough() + far(400)),
    made("points off a plane, all ties", width, lines, () => (random.chance(0.02) ? random.integer(1, 4) : 0)),
    made("a surface as rough as its pitch", width, lines, () => random.normal() * 0.1 + far(8)),
    made("a surface twice as rough", width, lines, () => (random.chance(0.2) ? Number.NaN : random.normal() * 0.2)),
    made("columns three times as far apart as lines", width, lines, () => rough() + far(2), { xPitchMm: 0.21 }),
    made("lines three times as far apart as columns", width, lines, () => rough() + far(2), { xPitchMm: 0.023 }),
    made("far from the origin", width, lines, () => 1e4 + rough(), { xOriginMm: 5000 }),
  ]) {
    await assertSameDistances(t, frame);
  }
});

t.test(
  "a search that costs too much is given up: noise is for the tree, a surface with a stripe of it is not",
  async (t) => {
    const random = createRandom(12);
    const [width, lines] = [300, 300];
    for (const [noisyLines, isNoise] of [
      [300, true],
      [200, true],
      [5, false],
      [0, false],
    ] as const) {
      const frame = made("partly noise", width, lines, (_, line) =>
        line >= lines - noisyLines ? random.next() * 30 : random.normal() * 0.01,
      );
      const grid = await loadFrame(memory, frame);
      filterOutliers(memory, grid);
      const bytes = (memory.usedBytes - grid.zs) / (width * lines);
      t.equal(bytes > 20, isNoise, `${noisyLines} lines of noise: ${bytes} bytes a position`);
    }
  },
);

t.test("where a point lies in the threshold's doubt all are measured exactly", async (t) => {
  const run = async (frame: MadeFrame): Promise<{ bits: Uint8Array; isExact: boolean }> => {
    const { width, lines } = frame.geometry;
    const grid = await loadFrame(memory, frame);
    const { bits } = filterOutliers(memory, grid);
    const wanted = bruteForce(frame);
    t.same(unpacked(bits, wanted.length), wanted, frame.name);
    const bytes = (memory.usedBytes - grid.tiles.maxima) / (width * lines);
    return { bits, isExact: bytes > 8 };
  };
  t.notOk((await run(surfaceFrame(5, 61, 53))).isExact, "where none does it is known without");
  const [stays, leaves] = await doubtfulFrames(41);
  const [one, other] = [await run(stays), await run(leaves)];
  t.ok(one.isExact && other.isExact);
  t.notSame(one.bits, other.bits);
});

t.test("sums are those of the distances that are positive", async (t) => {
  const random = createRandom(14);
  const [width, lines] = [53, 31];
  const values = Array.from({ length: width * lines }, () => (random.chance(0.4) ? Number.NaN : 1));
  const distances = values.map(() => Math.fround(random.pick([0, 0.3, 1, random.next()])));
  const grid = await loadFrame(memory, frameOf("sums", "f32", { width, lines }, values));
  const at = memory.allocate(4 * width * lines);
  memory.singles(at, distances.length).set(distances);
  const sums = memory.allocate(8 * 5);
  const some = distances.filter((_, nth) => values[nth] === 1);
  const positive = some.filter((d) => d > 0);
  const total = (of: (d: number) => number): number => positive.reduce((sum, d) => sum + of(d), 0);
  for (const around of [0, 0.4]) {
    memory.kernels.sumDistances(grid.address, at, around, sums);
    const found = [...memory.doubles(sums, 5)];
    const [sum, squares, spread] = [
      total((d) => d),
      total((d) => (d - around) ** 2),
      total((d) => d * Math.abs(d - around)),
    ];
    const wanted = [some.length, positive.length, sum, squares, spread];
    t.ok(
      found.every((one, nth) => Math.abs(one - (wanted[nth] as number)) < 1e-9),
      `${found} and ${wanted}`,
    );
  }
});

t.test("the points of the definition are kept where lanes, tiles and the tree have their limits", async (t) => {
  const random = createRandom(7);
  const width = 49;
  const lines = 43;
  const rough = () => random.normal() * 0.02;
  for (const frame of [
    made("a plane, all ties", width, lines, () => 5),
    made("a slope", width, lines, (column) => column * 0.05),
    made("steps higher than any neighbourhood", width, lines, (column) => (column % 9 < 4 ? 0 : 1000) + rough()),
    made("points far above a surface", width, lines, () => (random.chance(0.02) ? random.next() * 30 : rough())),
    made("a wide shadow", width, lines, (column, line) =>
      column > 5 && column < 40 && line % 20 > 2 ? Number.NaN : rough(),
    ),
    made("two points far apart from each other", width, lines, (column, line) =>
      (column === 0 && line === 0) || (column === 48 && line === 42) ? rough() : Number.NaN,
    ),
    made("fewer than twenty points", width, lines, (column, line) =>
      column % 13 === 0 && line % 16 === 0 ? rough() : Number.NaN,
    ),
    made("half of it invalid", width, lines, () => (random.chance(0.5) ? Number.NaN : rough())),
    made("noise", width, lines, () => random.next() * 6),
    made("noise that is high", width, lines, () => random.next() * 1e4),
    made("all the same column of points", width, lines, () => rough(), { xPitchMm: 1e-12, xOriginMm: 1000 }),
    made("lines far apart", width, lines, () => rough(), { yPitchMm: 7.3 }),
    made("columns close together", width, lines, () => rough(), { xPitchMm: 0.002 }),
    made("coordinates that f32 hardly tells apart", width, lines, () => rough(), { xPitchMm: 1e-4, xOriginMm: 5000 }),
    made("too large for f32 squares", width, lines, () => rough() * 1e20, { xPitchMm: 1e18, yPitchMm: 1e18 }),
    made("infinite heights are no measurements", width, lines, () =>
      random.chance(0.1) ? Number.POSITIVE_INFINITY : rough(),
    ),
  ]) {
    await assertAsBruteForce(t, frame);
  }
});

/** SHA-256 of the mask; each was the same with Open3D 0.16.1 when it was put here. */
const GOLDEN: [frame: MadeFrame, points: number, inliers: number, sha256: string][] = [
  [surfaceFrame(1, 320, 200), 61_758, 61_440, "d58999a6b9451395b57931534ab5da9e334b4403e2ab3f6ee3340b1c2f8cdd00"],
  [surfaceFrame(2, 517, 303), 150_194, 149_361, "50eb1b5472c9fe16885a0f1c02c12eb7740e76dd84207866dd95c740a56c32e9"],
  [noiseFrame(3, 120, 80), 9_600, 9_228, "5bb7f84b9b73ee6c480da7490a06313a24ffe60f289863e4139e01cac9869a9b"],
];

t.test("golden point sets of seeded surfaces", async (t) => {
  for (const [frame, points, inliers, sha256] of GOLDEN) {
    const result = filterOutliers(memory, await loadFrame(memory, frame));
    const digest = createHash("sha256").update(result.bits).digest("hex");
    t.same([result.points, result.inliers, digest], [points, inliers, sha256], frame.name);
  }
});

const OPEN3D = `
import sys, numpy as np, open3d as o3d
for name in sys.argv[1:]:
    xyz = np.fromfile(name, dtype="<f4").reshape(-1, 3).astype(np.float64)
    cloud = o3d.geometry.PointCloud(o3d.utility.Vector3dVector(xyz))
    kept = cloud.remove_statistical_outlier(20, 2.0)[1]
    np.asarray(kept, dtype="<u4").tofile(name + ".kept")
`;
const open3d = pythonWith("open3d", "numpy");

t.test("the same points as Open3D keeps", { skip: skipWithout(open3d, "Open3D") }, async (t) => {
  const folder = t.testdir();
  const frames = [...(await realFrames(t)), ...GOLDEN.map(([frame]) => frame), surfaceFrame(11, 500, 300)];
  const files = frames.map((_, nth) => join(folder, `${nth}.xyz`));
  const positions: Uint32Array[] = [];
  for (const [nth, frame] of frames.entries()) {
    const { width, xOriginMm, yOriginMm, xPitchMm, yPitchMm } = frame.geometry;
    const zs = plainHeights(frame);
    const valid = Uint32Array.from(zs.keys()).filter((at) => zs[at] !== Number.POSITIVE_INFINITY);
    const xyz = new Float32Array(3 * valid.length);
    for (const [point, at] of valid.entries()) {
      xyz[3 * point] = xOriginMm + (at % width) * xPitchMm;
      xyz[3 * point + 1] = yOriginMm + Math.floor(at / width) * yPitchMm;
      xyz[3 * point + 2] = zs[at] as number;
    }
    positions.push(valid);
    writeFileSync(files[nth] as string, new Uint8Array(xyz.buffer));
  }
  runPython(open3d as string, OPEN3D, ...files);
  for (const [nth, frame] of frames.entries()) {
    const file = readFileSync(`${files[nth]}.kept`);
    const kept = new Uint32Array(file.buffer.slice(file.byteOffset, file.byteOffset + file.length));
    const wanted = new Uint8Array(Math.ceil((frame.geometry.width * frame.geometry.lines) / 8));
    for (const point of kept) {
      const at = (positions[nth] as Uint32Array)[point] as number;
      wanted[at >> 3] = (wanted[at >> 3] as number) | (1 << (at & 7));
    }
    const { bits } = filterOutliers(memory, await loadFrame(memory, frame));
    t.ok(Buffer.from(bits).equals(wanted), `${frame.name}: ${kept.length} points`);
  }
  t.comment(`${frames.length} clouds: the same points as Open3D`);
});
