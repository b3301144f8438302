import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadFrame, type MadeFrame, noiseFrame } from "../../../test/helpers/captures/made-frames.js";
import { filterOutliers } from "../../../workers/artefacts/filter/outlier-filter.js";
import { type KernelMemory, typeScriptKernels, wasmKernels } from "../../../workers/artefacts/kernel-memory.js";
import type { Benchmark, BenchmarkContext, Goal, OpenBenchmark, RoundSample } from "../../harness/benchmark.js";
import { median } from "../../harness/statistics.js";
import { BENCH_FRAMES, type BenchFrame, openOn } from "../../load/frames/bench-frames.js";
import { frameXyz } from "../../load/frames/frame-xyz.js";
import { startPython } from "../../peers/python-peer.js";

const OPEN3D = `
import sys, time, numpy as np, open3d as o3d
for line in sys.stdin:
    name = line.strip()
    xyz = np.fromfile(name, dtype="<f4").reshape(-1, 3).astype(np.float64)
    cloud = o3d.geometry.PointCloud(o3d.utility.Vector3dVector(xyz))
    start = time.perf_counter()
    kept = cloud.remove_statistical_outlier(20, 2.0)[1]
    seconds = time.perf_counter() - start
    np.asarray(kept, dtype="<u4").tofile(name + ".kept")
    print(seconds, flush=True)
`;

/** One filter after the other for so long: of one that takes some milliseconds a single figure is that of what else the machine did. */
const ROUND_MS = { smoke: 0, full: 400 };

async function open(context: BenchmarkContext, frame: MadeFrame): Promise<OpenBenchmark> {
  const { xyz, positions } = frameXyz(frame);
  const file = join(context.directory, "cloud.xyz");
  writeFileSync(file, new Uint8Array(xyz.buffer, 0, xyz.byteLength));
  const open3d = startPython(["open3d", "numpy"], OPEN3D);
  const masks: Uint8Array[] = [];
  const check = (mask: Uint8Array): void => {
    const [first] = masks;
    if (first === undefined) masks.push(mask);
    else if (!Buffer.from(first).equals(mask)) throw new Error(`${frame.name}: contestants keep different points`);
  };
  /** @param filter gives the milliseconds that it took, and the mask */
  const round = (filter: () => Promise<{ ms: number; mask: Uint8Array }>) => async (): Promise<RoundSample> => {
    const begunMs = performance.now();
    const takenMs: number[] = [];
    do {
      const { ms, mask } = await filter();
      check(mask);
      takenMs.push(ms);
    } while (performance.now() - begunMs < ROUND_MS[context.size]);
    const ms = median(takenMs);
    const seconds = takenMs.reduce((sum, taken) => sum + taken, 0) / 1000;
    return { value: ms, seconds, details: { "ns/point": (ms * 1e6) / positions.length } };
  };
  const own = (memory: KernelMemory) =>
    round(async () => {
      const grid = await loadFrame(memory, frame);
      const start = performance.now();
      const { bits } = filterOutliers(memory, grid);
      return { ms: performance.now() - start, mask: bits };
    });
  const runners: OpenBenchmark["runners"] = {
    wasm: own(await wasmKernels()),
    typescript: own(typeScriptKernels()),
  };
  const notes = [
    `${frame.name}: ${positions.length} points; one thread each; all keep the same points, compared every time`,
  ];
  if ("why" in open3d) return { runners, missing: [{ name: "open3d", why: open3d.why }], notes, close: async () => {} };
  runners.open3d = round(async () => {
    const seconds = Number(await open3d.ask(file));
    const kept = readFileSync(`${file}.kept`);
    const mask = new Uint8Array(Math.ceil((frame.geometry.width * frame.geometry.lines) / 8));
    for (let byte = 0; byte < kept.length; byte += 4) {
      const at = positions[kept.readUInt32LE(byte)] as number;
      mask[at >> 3] = (mask[at >> 3] as number) | (1 << (at & 7));
    }
    return { ms: 1000 * seconds, mask };
  });
  return { runners, notes, close: () => open3d.close() };
}

const CONTESTANTS = [
  { name: "wasm", description: "the kernels as WebAssembly, with lanes of SIMD" },
  { name: "typescript", description: "the same kernels compiled by tsc" },
  { name: "open3d", description: "Debian's python3-open3d" },
];

function filterBenchmark(
  frame: BenchFrame,
  /** Times as fast as Open3D: WebAssembly, TypeScript. */
  goals: { wasm?: number; typescript?: number },
): Benchmark {
  const { suffix, what } = frame;
  return {
    name: `outlier-filter-${suffix}`,
    measures:
      `The outlier filter on ${what}: from z in memory to the mask of inliers, in one thread. Open3D's remove_statistical_outlier(20, 2.0) with ` +
      "one thread (OMP_NUM_THREADS=1), timed by Python from its point cloud to the indices of inliers. Reading and decoding are in neither. A round's figure is " +
      "the median of as many as begin in 0.4 s.",
    metric: { name: "time", unit: "ms", better: "lower" },
    contestants: CONTESTANTS,
    peer: "open3d",
    goals: Object.entries(goals).map(
      ([contestant, times]): Goal => ({
        kind: "ratio",
        contestant,
        peer: "open3d",
        ratio: 1 / times,
        direction: "at-most",
        source: `goal of the formats: ${times} times as fast as Open3D`,
      }),
    ),
    rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 1, measured: 7 } },
    timeoutSeconds: { smoke: 120, full: 1800 },
    open: openOn(frame, CONTESTANTS, open),
  };
}

const { surface500k, surface3m, surface10m, mouldedCover, chip, disc, ...otherCaptures } = BENCH_FRAMES;

export const outlierFilters: readonly Benchmark[] = [
  filterBenchmark(surface500k, { typescript: 8 }),
  filterBenchmark(surface3m, { typescript: 8 }),
  filterBenchmark(surface10m, { wasm: 40, typescript: 8 }),
  filterBenchmark(mouldedCover, { wasm: 30, typescript: 8 }),
  filterBenchmark(chip, { wasm: 30, typescript: 8 }),
  filterBenchmark(disc, { wasm: 10, typescript: 8 }),
  ...Object.values(otherCaptures).map((frame) => filterBenchmark(frame, { typescript: 8 })),
  filterBenchmark(
    {
      suffix: "noise",
      what: "a cube of noise",
      of: async ({ size, seed }) => noiseFrame(seed, size === "smoke" ? 60 : 600, size === "smoke" ? 50 : 500),
    },
    { wasm: 1, typescript: 1 },
  ),
];
