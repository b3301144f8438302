import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadFrame, type MadeFrame } from "../../test/helpers/captures/made-frames.js";
import { filterOutliers } from "../../workers/artefacts/filter/outlier-filter.js";
import { newKernelMemory } from "../../workers/artefacts/kernel-memory.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark } from "../harness/benchmark.js";
import { atMost } from "../harness/goal.js";
import { frameBenchmarks, frameXyz, repeated } from "../load/frames/bench-frames.js";
import { startPython } from "../peers/python-peer.js";

const OPEN3D = `
import sys, time, numpy as np, open3d as o3d
print("ready", flush=True)
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

async function open(context: BenchmarkContext, frame: MadeFrame): Promise<OpenBenchmark> {
  const { xyz, positions } = frameXyz(frame);
  const memory = await newKernelMemory();
  let firstMask: Uint8Array | undefined;
  const check = (mask: Uint8Array): void => {
    firstMask ??= mask;
    if (!Buffer.from(firstMask).equals(mask)) throw new Error(`${frame.name}: contestants keep different points`);
  };
  const filter = async (): Promise<number> => {
    const grid = await loadFrame(memory, frame);
    const startMs = performance.now();
    const { bits } = filterOutliers(memory, grid);
    const ms = performance.now() - startMs;
    check(bits);
    return ms;
  };
  const runners: OpenBenchmark["runners"] = { service: () => repeated(context.size, filter) };
  const notes = [`${frame.name}: ${positions.length} points; both keep the same points, compared every time`];
  const open3d = await startPython(context, ["open3d", "numpy"], OPEN3D);
  if ("why" in open3d) return { runners, missing: [{ name: "open3d", why: open3d.why }], notes };
  const file = join(context.directory, "cloud.xyz");
  writeFileSync(file, new Uint8Array(xyz.buffer, 0, xyz.byteLength));
  const filterByOpen3d = async (): Promise<number> => {
    const seconds = Number(await open3d.ask(file));
    const kept = readFileSync(`${file}.kept`);
    const mask = new Uint8Array(Math.ceil((frame.geometry.width * frame.geometry.lines) / 8));
    for (let byte = 0; byte < kept.length; byte += 4) {
      const at = positions[kept.readUInt32LE(byte)] as number;
      mask[at >> 3] = (mask[at >> 3] as number) | (1 << (at & 7));
    }
    check(mask);
    return 1000 * seconds;
  };
  runners.open3d = () => repeated(context.size, filterByOpen3d);
  return { runners, notes };
}

export const outlierFilters: readonly Benchmark[] = frameBenchmarks({
  name: "outlier-filter",
  measures: (what) =>
    `The outlier filter on ${what}: from z in memory to the mask of inliers. Open3D's remove_statistical_outlier(20, 2.0) with one thread ` +
    "(OMP_NUM_THREADS=1) is timed by Python from its point cloud to the indices of inliers. Reading and decoding are in neither.",
  contestants: [
    { name: "service", description: "the service's kernels, one thread" },
    { name: "open3d", description: "Debian's python3-open3d, one thread" },
  ],
  peer: "open3d",
  goal: ({ captureName }) => {
    const times = captureName === null ? 40 : 30;
    return atMost("service", 1 / times, `${times} times as fast as one thread of Open3D`, "open3d");
  },
  rounds: { warmup: 1, measured: 7 },
  timeoutSeconds: 1800,
  open,
});
