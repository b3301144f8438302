import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { itemBytes } from "../../../core/capture/capture.js";
import { vertexBytes } from "../../../core/capture/ply-header.js";
import { heightSource, type MadeFrame, planeSource } from "../../../test/helpers/captures/made-frames.js";
import { packCloud } from "../../../workers/artefacts/cloud/point-cloud.js";
import {
  joinMemory,
  type KernelMemory,
  newSharedMemory,
  type SharedMemory,
  typeScriptKernels,
} from "../../../workers/artefacts/kernel-memory.js";
import type { Benchmark, BenchmarkContext, Goal, OpenBenchmark, RoundSample } from "../../harness/benchmark.js";
import { median } from "../../harness/statistics.js";
import { BENCH_FRAMES, type BenchFrame, openOn } from "../../load/frames/bench-frames.js";
import { frameXyz } from "../../load/frames/frame-xyz.js";
import { startPython } from "../../peers/python-peer.js";

const OPEN3D = `
import sys, time, numpy as np, open3d as o3d
name, target = sys.stdin.readline().split()
xyz = np.fromfile(name, dtype="<f4").reshape(-1, 3)
light = np.fromfile(name + ".light", dtype="u1").reshape(-1, 1)
cloud = o3d.t.geometry.PointCloud(o3d.core.Tensor(xyz))
if len(light): cloud.point["intensity"] = o3d.core.Tensor(light)
print("ready", flush=True)
for line in sys.stdin:
    start = time.perf_counter()
    o3d.t.io.write_point_cloud(target, cloud)
    print(time.perf_counter() - start, flush=True)
`;

const TMPFS = "/dev/shm";
/** Of a piece at most, as the service makes them. */
const PIECE_BYTES = 4 * 1024 * 1024;

/** One cloud after the other for so long: of one that takes half a millisecond a single figure is that of what else the machine did. */
const ROUND_MS = { smoke: 0, full: 250 };
/** More than the caches of a core and those that it shares hold. */
const CACHES_BYTES = 96 * 1024 * 1024;
const CACHE_LINE_BYTES = 64;

/** Where pieces are made. */
interface Places {
  memoryOf(nth: number): Promise<KernelMemory>;
  /** Raw planes lie in each of the memories still, from the time before. */
  areFilled: boolean;
}

/** All pieces of the cloud, one after the other: alone, until all are made. */
async function buildPieces(frame: MadeFrame, { memoryOf, areFilled }: Places): Promise<Uint8Array[]> {
  const { planes, geometry, luminance } = frame;
  const { width, lines } = geometry;
  const lightBytes = planes.luminance === undefined ? 0 : width * itemBytes(planes.luminance.dtype);
  const linesPerPiece = Math.max(1, Math.floor(PIECE_BYTES / (width * vertexBytes(planes))));
  const there = async (): Promise<void> => {};
  const pieces: Uint8Array[] = [];
  for (let first = 0; first < lines; first += linesPerPiece) {
    const memory = await memoryOf(pieces.length);
    memory.reset();
    const source = {
      planes,
      geometry,
      heights: areFilled ? there : heightSource(memory, frame),
      luminance: areFilled ? there : planeSource(memory, luminance ?? new Uint8Array(0), lightBytes),
      mask: null,
      // All at once, so that none takes the place of another.
      blockBytes: frame.height.length,
    };
    const { at, lengthBytes } = await packCloud(memory, source, first, Math.min(first + linesPerPiece, lines));
    pieces.push(memory.wasm === null ? memory.copyOf(at, lengthBytes) : memory.bytes(at, lengthBytes));
  }
  return pieces;
}

/** Has the caches hold these bytes, which are ones. */
function fillCaches(others: Uint8Array): void {
  let sum = 0;
  for (let at = 0; at < others.length; at += CACHE_LINE_BYTES) sum += others[at] as number;
  // So that nobody leaves the reading out.
  if (sum === 0) throw new Error("the bytes are ones");
}

function sample(takenMs: readonly number[], bytes: number): RoundSample {
  const ms = median(takenMs);
  const seconds = takenMs.reduce((sum, taken) => sum + taken, 0) / 1000;
  return { value: ms, seconds, details: { "GB/s": bytes / 1e6 / ms } };
}

async function open(context: BenchmarkContext, frame: MadeFrame): Promise<OpenBenchmark> {
  const memories: SharedMemory[] = [];
  // As the service does: each piece is made in the memory of one that nobody reads any more, by kernels that join it.
  const ownMemory = (nth: number): Promise<KernelMemory> => {
    const memory = memories[nth] ?? newSharedMemory();
    memories[nth] = memory;
    return joinMemory(memory);
  };
  const plain = typeScriptKernels();
  const plainPlaces: Places = { memoryOf: async () => plain, areFilled: false };
  const whole = Buffer.concat(await buildPieces(frame, { memoryOf: ownMemory, areFilled: false }));
  const ownPlaces: Places = { memoryOf: ownMemory, areFilled: true };
  const { xyz, positions } = frameXyz(frame);
  const isWhole = whole.length === positions.length * vertexBytes(frame.planes);
  for (const places of [plainPlaces, ownPlaces]) {
    const again = Buffer.concat(await buildPieces(frame, places));
    if (!isWhole || !again.equals(whole)) {
      throw new Error(`${frame.name}: not always the same vertices, or not of all points`);
    }
  }
  const kept = new Uint8Array(whole.length).fill(1);
  const others = new Uint8Array(context.size === "smoke" ? 1 : CACHES_BYTES).fill(1);
  const empty = (): void => fillCaches(others);
  const used = (): void => {};
  /** @param build gives the milliseconds that it took; @param before what is done with the caches first */
  const round = (build: () => number | Promise<number>, before: () => void) => async (): Promise<RoundSample> => {
    const begunMs = performance.now();
    const takenMs: number[] = [];
    do {
      before();
      takenMs.push(await build());
    } while (performance.now() - begunMs < ROUND_MS[context.size]);
    return sample(takenMs, whole.length);
  };
  const own = (places: Places) => async (): Promise<number> => {
    const start = performance.now();
    const pieces = await buildPieces(frame, places);
    const ms = performance.now() - start;
    const lengthBytes = pieces.reduce((sum, { length }) => sum + length, 0);
    if (lengthBytes !== whole.length) throw new Error(`${lengthBytes} bytes, not ${whole.length}`);
    return ms;
  };
  const copy = (): number => {
    const start = performance.now();
    for (let at = 0; at < whole.length; at += PIECE_BYTES) kept.set(whole.subarray(at, at + PIECE_BYTES), at);
    return performance.now() - start;
  };
  const copyToFreshMemory = (): number => {
    const start = performance.now();
    const copies: Uint8Array[] = [];
    for (let at = 0; at < whole.length; at += PIECE_BYTES) {
      copies.push(Uint8Array.prototype.slice.call(whole, at, at + PIECE_BYTES));
    }
    return performance.now() - start;
  };
  const runners: OpenBenchmark["runners"] = {
    "wasm-cold": round(own(ownPlaces), empty),
    "typescript-cold": round(own(plainPlaces), empty),
    "memcpy-cold": round(copy, empty),
    "memcpy-fresh": round(copyToFreshMemory, empty),
    "wasm-cached": round(own(ownPlaces), used),
    "memcpy-cached": round(copy, used),
  };
  const notes = [`${frame.name}: ${whole.length} bytes in pieces of ${PIECE_BYTES}; every contestant has one thread`];
  const none = (why: string) => ({ runners, missing: [{ name: "open3d", why }], notes, close: async () => {} });
  if (!existsSync(TMPFS)) return none(`there is no ${TMPFS}`);
  const open3d = startPython(["open3d", "numpy"], OPEN3D);
  if ("why" in open3d) return none(open3d.why);
  const file = join(context.directory, "cloud.xyz");
  writeFileSync(file, new Uint8Array(xyz.buffer, 0, xyz.byteLength));
  const shift = Math.max(0, (frame.planes.luminance?.bits ?? 8) - 8);
  const light = frame.luminance;
  const lights =
    frame.planes.luminance?.dtype === "u16" && light !== null
      ? new Uint16Array(light.buffer, light.byteOffset, light.length / 2)
      : light;
  writeFileSync(
    `${file}.light`,
    lights === null ? new Uint8Array(0) : Uint8Array.from(positions, (at) => (lights[at] as number) >> shift),
  );
  const folder = mkdtempSync(join(TMPFS, "ply-build-"));
  await open3d.ask(`${file} ${join(folder, "cloud.ply")}`);
  runners.open3d = async () => sample([Number(await open3d.ask("again")) * 1000], whole.length);
  return {
    runners,
    notes,
    async close() {
      await open3d.close();
      rmSync(folder, { recursive: true });
    },
  };
}

const CONTESTANTS = [
  { name: "wasm-cold", description: "decoding, and packing by stores of 16 bytes, in WebAssembly" },
  {
    name: "typescript-cold",
    description: "the same kernels compiled by tsc, with a copy of the raw planes and of the vertices",
  },
  { name: "memcpy-cold", description: "a copy of the same size" },
  { name: "memcpy-fresh", description: "the same to memory of its own each time" },
  { name: "wasm-cached", description: "as wasm-cold, again and again, with whatever of it the caches hold" },
  { name: "memcpy-cached", description: "as memcpy-cold, again and again, with whatever of it the caches hold" },
  { name: "open3d", description: "Debian's python3-open3d: t.io.write_point_cloud" },
];

function plyBenchmark(frame: BenchFrame): Benchmark {
  const { suffix, what } = frame;
  return {
    name: `ply-build-${suffix}`,
    measures:
      `All vertices of ${what} as binary PLY, in the pieces in which a download takes them: from raw planes in the kernels' memory to bytes in memory of ` +
      "their own; the planes of a piece lie there as a whole, where the service has heights block by block as it reads them. The peer copies bytes of the same size, piece by piece, to memory that copies before have used, as is that of our pieces from the second " +
      "download on. Beside it the same to memory of its own, as a program copies that keeps none for it. Before each of these the caches are filled with other " +
      "bytes: what is read and what is written is in none of them, for us and for the copy. The cached ones, without a goal, show what caches are worth: below " +
      "some MB a copy goes from cache to cache. A round's figure is the median of as many as begin in a quarter of a second. Open3D's tensor writer writes " +
      "points and intensities, which it has as f32 and u8, to tmpfs, once a round, timed by Python.",
    metric: { name: "time", unit: "ms", better: "lower" },
    contestants: CONTESTANTS,
    peer: "memcpy-cold",
    goals: [
      ...["memcpy-cold", "memcpy-fresh"].map(
        (peer): Goal => ({
          kind: "ratio",
          contestant: "wasm-cold",
          peer,
          ratio: 1.5,
          direction: "at-most",
          source: "goal of the formats: at most 1.5 times a copy of the same size",
        }),
      ),
      {
        kind: "ratio",
        contestant: "wasm-cold",
        peer: "open3d",
        ratio: 1 / 8,
        direction: "at-most",
        source: "goal of the formats: 8 times as fast as Open3D's tensor writer",
      },
    ],
    rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 2, measured: 11 } },
    timeoutSeconds: { smoke: 120, full: 300 },
    open: openOn(frame, CONTESTANTS, open),
  };
}

export const plyBuilds: readonly Benchmark[] = Object.values(BENCH_FRAMES).map(plyBenchmark);
