import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { createRandom, type Random } from "../../../../core/random.js";
import {
  boundTiles,
  filterOutliers,
  finishFilter,
  measureLines,
  planFilter,
  scratchBytes,
} from "../../../../workers/artefacts/filter/outlier-filter.js";
import { type KernelMemory, typeScriptKernels, wasmKernels } from "../../../../workers/artefacts/kernel-memory.js";
import { NEAR_ERROR } from "../../../../workers/artefacts/kernels/near-distances.js";
import {
  GRID_WORDS,
  OFFSET_COUNT,
  SCRATCH_BYTES,
  TILE_MAXIMA,
  TILE_MINIMA,
} from "../../../../workers/artefacts/kernels/neighbour-search.js";
import {
  COUNT,
  COUNTED,
  DECIDED,
  DEVIATION,
  MEAN,
  OPEN,
  SPREAD,
  STATISTICS_WORDS,
} from "../../../../workers/artefacts/kernels/outlier-statistics.js";
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

const kernels: [name: string, memory: KernelMemory][] = [
  ["TypeScript", typeScriptKernels()],
  ["WebAssembly", await wasmKernels()],
];

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
      nearest.push(square);
      nearest.sort((a, b) => a - b);
      nearest.length = Math.min(nearest.length, 20);
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
  for (const [name, memory] of kernels) {
    const result = filterOutliers(memory, await loadFrame(memory, frame));
    const inliers = unpacked(result.bits, wanted.length);
    const differs = inliers.findIndex((bit, at) => bit !== wanted[at]);
    if (differs >= 0) t.fail(`${name}: ${frame.name}: position ${differs} is ${inliers[differs]}`);
    if (result.points !== points || result.inliers !== wanted.reduce((sum, bit) => sum + bit, 0)) {
      t.fail(`${name}: ${frame.name}: counts ${result.points} points, ${result.inliers} inliers`);
    }
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

t.test("both kernels keep the points of the definition on small random grids", async (t) => {
  const seed = Number(process.env.SEED ?? 20_261_121);
  t.comment(`seed ${seed}`);
  const random = createRandom(seed);
  for (let nth = 0; nth < 150; nth++) await assertAsBruteForce(t, randomFrame(random, nth));
});

t.test("the tree finds the mean distances of the exact search, bit by bit", async (t) => {
  const random = createRandom(11);
  // Along a line the way to the point before, and its worst, are just as far as the worst of the last one is.
  const frames = [
    frameOf("a line", "f32", { width: 2_100, lines: 1 }, new Float32Array(2_100)),
    frameOf("a line across", "f32", { width: 1, lines: 2_100, yPitchMm: 0.024 }, new Float32Array(2_100)),
    noiseFrame(9, 70, 40),
    frameOf(
      "ties",
      "f32",
      { width: 60, lines: 50 },
      Float32Array.from({ length: 3_000 }, () => random.integer(0, 5)),
    ),
    frameOf("one place", "f32", { width: 60, lines: 50, xPitchMm: 1e-30, yPitchMm: 1e-30 }, new Float32Array(3_000)),
  ];
  for (const frame of frames) {
    const { width, lines } = frame.geometry;
    const count = width * lines;
    for (const [name, memory] of kernels) {
      const grid = await loadFrame(memory, frame);
      boundTiles(memory, grid, 0, lines);
      const exact = memory.allocate(8 * count);
      memory.kernels.measureExactly(grid.address, memory.allocate(SCRATCH_BYTES), exact, 0, lines, 1e9);
      const wanted = memory.doubles(exact, count).slice();
      const plan = { grid, way: "tree", distances: memory.allocate(8 * count) } as const;
      finishFilter(memory, plan, [measureLines(memory, plan, memory.allocate(SCRATCH_BYTES), 0, lines)]);
      const found = memory.doubles(plan.distances, count);
      const differs = wanted.findIndex((distance, at) => !Object.is(distance, found[at]));
      t.equal(differs, -1, `${name}, ${frame.name}: ${wanted[differs]}, the tree ${found[differs]}`);
    }
  }
});

t.test(
  "a frame of which two thirds are noise is searched by the tree, a surface with a stripe of it is not",
  async (t) => {
    const random = createRandom(12);
    const planned = async (noisyLines: number, memory: KernelMemory, lines = 300): Promise<string> => {
      const width = 300;
      // Without a measurement in the first column.
      const heights = Float32Array.from({ length: width * lines }, (_, at) => {
        if (at % width === 0) return Number.NaN;
        return at >= width * (lines - noisyLines) ? random.next() * 30 : random.normal() * 0.01;
      });
      const grid = await loadFrame(memory, frameOf("partly noise", "f32", { width, lines }, heights));
      boundTiles(memory, grid, 0, lines);
      return planFilter(memory, grid).way;
    };
    for (const [name, memory] of kernels) {
      t.equal(await planned(300, memory), "tree", name);
      for (const lines of [256, 320]) t.equal(await planned(lines, memory, lines), "tree", `${name}, ${lines} lines`);
      t.equal(await planned(200, memory), "tree", name);
      t.not(await planned(5, memory), "tree", name);
      t.not(await planned(0, memory), "tree", name);
    }
  },
);

t.test(
  "both kernels keep the points of the definition where lanes, tiles and the tree have their limits",
  async (t) => {
    const random = createRandom(7);
    const width = 49;
    const lines = 43;
    const made = (name: string, heightOf: (column: number, line: number) => number, geometry = {}): MadeFrame => {
      const values = Array.from({ length: width * lines }, (_, at) => heightOf(at % width, Math.floor(at / width)));
      return frameOf(name, "f32", { width, lines, ...geometry }, values);
    };
    const rough = () => random.normal() * 0.02;
    for (const frame of [
      made("a plane, all ties", () => 5),
      made("a slope", (column) => column * 0.05),
      made("steps higher than any neighbourhood", (column) => (column % 9 < 4 ? 0 : 1000) + rough()),
      made("points far above a surface", () => (random.chance(0.02) ? random.next() * 30 : rough())),
      made("a wide shadow", (column, line) => (column > 5 && column < 40 && line % 20 > 2 ? Number.NaN : rough())),
      made("two points far apart from each other", (column, line) =>
        (column === 0 && line === 0) || (column === 48 && line === 42) ? rough() : Number.NaN,
      ),
      made("fewer than twenty points", (column, line) => (column % 13 === 0 && line % 16 === 0 ? rough() : Number.NaN)),
      made("half of it invalid", () => (random.chance(0.5) ? Number.NaN : rough())),
      made("noise", () => random.next() * 6),
      made("noise that is high", () => random.next() * 1e4),
      made("all the same column of points", () => rough(), { xPitchMm: 1e-12, xOriginMm: 1000 }),
      made("lines far apart", () => rough(), { yPitchMm: 7.3 }),
      made("columns close together", () => rough(), { xPitchMm: 0.002 }),
      made("coordinates that f32 hardly tells apart", () => rough(), { xPitchMm: 1e-4, xOriginMm: 5000 }),
      made("too large for f32 squares", () => rough() * 1e20, { xPitchMm: 1e18, yPitchMm: 1e18 }),
      made("infinite heights are no measurements", () => (random.chance(0.1) ? Number.POSITIVE_INFINITY : rough())),
    ]) {
      await assertAsBruteForce(t, frame);
    }
  },
);

t.test("parts joined are the whole", async (t) => {
  for (const frame of [surfaceFrame(3, 203, 97), noiseFrame(4, 90, 60)]) {
    for (const [name, memory] of kernels) {
      const whole = filterOutliers(memory, await loadFrame(memory, frame));
      for (const parts of [2, 3, 7]) {
        const grid = await loadFrame(memory, frame);
        boundTiles(memory, grid, 0, grid.lines);
        const plan = planFilter(memory, grid);
        const share = Math.ceil(grid.lines / parts);
        const sums = [];
        for (let part = parts - 1; part >= 0; part--) {
          const scratch = memory.allocate(scratchBytes(memory, plan));
          sums.push(measureLines(memory, plan, scratch, part * share, Math.min(grid.lines, (part + 1) * share)));
        }
        t.same(finishFilter(memory, plan, sums), whole, `${name}: ${frame.name} in ${parts} parts`);
      }
    }
  }
});

/** SHA-256 of the mask; each was the same with Open3D 0.16.1 when it was put here. */
const GOLDEN: [frame: MadeFrame, points: number, inliers: number, sha256: string][] = [
  [surfaceFrame(1, 320, 200), 61_758, 61_440, "d58999a6b9451395b57931534ab5da9e334b4403e2ab3f6ee3340b1c2f8cdd00"],
  [surfaceFrame(2, 517, 303), 150_194, 149_361, "50eb1b5472c9fe16885a0f1c02c12eb7740e76dd84207866dd95c740a56c32e9"],
  [noiseFrame(3, 120, 80), 9_600, 9_228, "5bb7f84b9b73ee6c480da7490a06313a24ffe60f289863e4139e01cac9869a9b"],
];

t.test(
  "what is done for several at a time is what is done for one: bounds of tiles, and the mask within every doubt",
  async (t) => {
    const random = createRandom(12);
    for (const [width, lines] of [
      [1, 1],
      [8, 8],
      [53, 31],
      [130, 17],
    ] as const) {
      const values = Array.from({ length: width * lines }, () =>
        random.chance(0.4) ? Number.NaN : random.normal() * 3,
      );
      const frame = frameOf("tiles", "f32", { width, lines }, values);
      const results = await Promise.all(
        kernels.map(async ([, memory]) => {
          const grid = await loadFrame(memory, frame);
          const tiles = Math.ceil(width / 8) * Math.ceil(lines / 8);
          for (let tileLine = 0; tileLine < Math.ceil(lines / 8); tileLine++) {
            memory.kernels.boundTiles(grid.address, tileLine);
          }
          const words = memory.words(grid.address, GRID_WORDS);
          const bounds = [TILE_MINIMA, TILE_MAXIMA].map((word) => [...memory.singles(words[word] as number, tiles)]);
          const best = memory.allocate(SCRATCH_BYTES);
          const distances = memory.allocate(8 * width * lines);
          const mask = memory.allocate(width * lines);
          const masks: unknown[] = [];
          for (const itemBytes of [4, 8] as const) {
            // As many below, within and above the doubt; exact distances are far above it.
            const made = Float64Array.from(values, (_, at) => [0, 0.5, 0.999, 1, 1.001, 2][at % 6] as number);
            (itemBytes === 4 ? memory.singles(distances, made.length) : memory.doubles(distances, made.length)).set(
              made,
            );
            for (const [low, high] of [
              [1, 1],
              [0.99, 1.01],
              [1e9, 2e9],
            ] as const) {
              memory.bytes(mask, width * lines).fill(0);
              const outcome = memory.kernels.markInliers(
                ...([grid.address, best, distances, itemBytes, mask, 0, lines, low, high, 1e-6, 1e9] as const),
              );
              // An undecided mask is void.
              masks.push([outcome, outcome === DECIDED && [...memory.bytes(mask, Math.ceil((width * lines) / 8))]]);
            }
          }
          return { bounds, masks };
        }),
      );
      t.same(results[1], results[0], `${width} x ${lines}`);
    }
  },
);

t.test("both kernels sum up the same distances, but for rounding", async (t) => {
  const random = createRandom(14);
  const [width, lines] = [53, 31];
  const values = Array.from({ length: width * lines }, () => (random.chance(0.4) ? Number.NaN : 1));
  const distances = values.map(() => Math.fround(random.pick([0, -1, 0.3, 1, random.next()])));
  for (const itemBytes of [4, 8] as const) {
    for (const around of [0, 0.4]) {
      const found: number[][] = [];
      for (const [, memory] of kernels) {
        const grid = await loadFrame(memory, frameOf("sums", "f32", { width, lines }, values));
        const at = memory.allocate(8 * width * lines);
        (itemBytes === 4 ? memory.singles(at, distances.length) : memory.doubles(at, distances.length)).set(distances);
        const sums = memory.allocate(8 * STATISTICS_WORDS);
        memory.kernels.approximateSums(grid.address, at, itemBytes, 3, 29, around, sums);
        found.push([...memory.doubles(sums, STATISTICS_WORDS)]);
      }
      const some = distances.filter((_, nth) => nth >= 3 * width && nth < 29 * width && values[nth] === 1);
      const positive = some.filter((d) => d > 0);
      const total = (of: (d: number) => number): number => positive.reduce((sum, d) => sum + of(d), 0);
      const wanted: number[] = [];
      wanted[COUNT] = some.length;
      wanted[COUNTED] = positive.length;
      wanted[OPEN] = some.filter((d) => d < 0).length;
      wanted[MEAN] = total((d) => d);
      wanted[DEVIATION] = total((d) => (d - around) ** 2);
      wanted[SPREAD] = total((d) => d * Math.abs(d - around));
      for (const sums of found) {
        t.ok(
          sums.every((sum, word) => Math.abs(sum - (wanted[word] as number)) < 1e-9),
          `${sums} and ${wanted}`,
        );
      }
    }
  }
});

t.test("approximate distances are right within their error, also of points far off a surface", async (t) => {
  const random = createRandom(21);
  const [width, lines] = [403, 203];
  const rough = () => random.normal() * 0.01;
  const made = (name: string, heightOf: (column: number, line: number) => number, geometry = {}): MadeFrame => {
    const values = Array.from({ length: width * lines }, (_, at) => heightOf(at % width, Math.floor(at / width)));
    return frameOf(name, "f32", { width, lines, ...geometry }, values);
  };
  const far = (mm: number): number => (random.chance(0.01) ? (random.next() - 0.5) * mm : 0);
  for (const frame of [
    surfaceFrame(5, width, lines),
    made("a slope with points off it", (column) => column * 0.02 + rough() + far(8)),
    made("points farther off than tiles are looked at", () => rough() + far(400)),
    made("points beside shadows", (column, line) => (column % 50 < 9 || line % 40 < 5 ? Number.NaN : rough() + far(6))),
    made("points off a plane, all ties", () => (random.chance(0.01) ? random.integer(1, 4) : 0)),
    made("a surface half as rough as its pitch", () => random.normal() * 0.05 + far(8)),
    made("a surface as rough as its pitch", () => random.normal() * 0.1 + far(8)),
    made("a surface twice as rough as its pitch", () => (random.chance(0.2) ? Number.NaN : random.normal() * 0.2)),
    made("columns three times as far apart as lines", () => rough() + far(2), { xPitchMm: 0.21 }),
    made("lines three times as far apart as columns", () => rough() + far(2), { xPitchMm: 0.023 }),
  ]) {
    const zs = plainHeights(frame);
    for (const [name, memory] of kernels) {
      const grid = await loadFrame(memory, frame);
      boundTiles(memory, grid, 0, lines);
      const plan = planFilter(memory, grid);
      const scratch = memory.allocate(scratchBytes(memory, plan));
      t.equal(plan.way, memory.wasm === null ? "near" : "lanes", `${name}: ${frame.name}`);
      // In shares as threads take them, and the last first.
      for (const firstLine of [140, 70, 0])
        measureLines(memory, plan, scratch, firstLine, Math.min(lines, firstLine + 70));
      const exactAt = memory.allocate(8 * width * lines);
      memory.kernels.measureExactly(grid.address, scratch, exactAt, 0, lines, 1e9);
      const exact = memory.doubles(exactAt, width * lines);
      const isLanes = plan.way === "lanes";
      const items = [plan.distances, width * lines] as const;
      const measured = Float64Array.from(isLanes ? memory.singles(...items) : memory.doubles(...items));
      let worst = 0;
      let open = 0;
      for (const [at, distance] of measured.entries()) {
        if (zs[at] === Number.POSITIVE_INFINITY) continue;
        if (distance < 0) open++;
        else worst = Math.max(worst, Math.abs(distance / (exact[at] as number) - 1));
      }
      t.ok(worst <= (isLanes ? 5 * 2 ** -24 : NEAR_ERROR), `${name}: ${frame.name}: off by ${worst}`);
      t.ok(open < 100, `${name}: ${frame.name}: ${open} open`);
    }
  }
});

t.test(
  "near distances are right within their error wherever the table of positions ends, by both kernels",
  async (t) => {
    const random = createRandom(22);
    const [width, lines] = [130, 61];
    for (const [name, roughMm] of [
      ["smooth", 0.01],
      ["as rough as its pitch", 0.1],
      ["rougher", 0.3],
    ] as const) {
      const values = Array.from({ length: width * lines }, () =>
        random.chance(0.1) ? Number.NaN : random.normal() * roughMm + (random.chance(0.01) ? 5 * random.next() : 0),
      );
      const frame = frameOf(name, "f32", { width, lines }, values);
      for (const [kernel, memory] of kernels) {
        const grid = await loadFrame(memory, frame);
        boundTiles(memory, grid, 0, lines);
        const [nearAt, exactAt] = [memory.allocate(8 * width * lines), memory.allocate(8 * width * lines)];
        const scratch = memory.allocate(memory.kernels.nearScratchBytes(grid.address));
        memory.kernels.measureExactly(grid.address, scratch, exactAt, 0, lines, 1e9);
        for (const offsets of [21, 25, 29, 60, 100, 101, 160]) {
          memory.words(grid.address, GRID_WORDS)[OFFSET_COUNT] = offsets;
          memory.kernels.measureNear(grid.address, scratch, nearAt, 0, lines, 1e9);
          const exact = memory.doubles(exactAt, width * lines);
          const worst = memory
            .doubles(nearAt, width * lines)
            .reduce(
              (most, d, at) => (Number.isNaN(values[at]) ? most : Math.max(most, Math.abs(d / exact[at]! - 1))),
              0,
            );
          t.ok(worst <= NEAR_ERROR, `${kernel}: ${name}, ${offsets} positions: off by ${worst}`);
        }
      }
    }
  },
);

t.test("golden point sets of seeded surfaces", async (t) => {
  for (const [frame, points, inliers, sha256] of GOLDEN) {
    for (const [name, memory] of kernels) {
      const result = filterOutliers(memory, await loadFrame(memory, frame));
      const digest = createHash("sha256").update(result.bits).digest("hex");
      t.same([result.points, result.inliers, digest], [points, inliers, sha256], `${name}: ${frame.name}`);
    }
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
    for (const [name, memory] of kernels) {
      const { bits } = filterOutliers(memory, await loadFrame(memory, frame));
      t.ok(Buffer.from(bits).equals(wanted), `${name}: ${frame.name}: ${kept.length} points`);
    }
  }
  t.comment(`${frames.length} clouds: the same points as Open3D, by both kernels`);
});
