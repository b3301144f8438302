import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { heightSource, surfaceFrame } from "../../test/helpers/made-frames.js";
import { encodeHeightMap } from "../../workers/artefacts/frame-pictures.js";
import { type KernelMemory, typeScriptKernels, wasmKernels } from "../../workers/artefacts/kernel-memory.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../harness/benchmark.js";
import { startPython } from "../peers/python-peer.js";

const PIL = `
import sys, time, io, numpy
from PIL import Image
for line in sys.stdin:
    name, width, height, level = line.split()
    picture = Image.fromarray(numpy.fromfile(name, dtype="<u2").reshape(int(height), int(width)))
    out = io.BytesIO()
    start = time.perf_counter()
    picture.save(out, "png", compress_level=int(level))
    print(time.perf_counter() - start, len(out.getvalue()), flush=True)
`;

async function open({ size, seed, directory }: BenchmarkContext): Promise<OpenBenchmark> {
  const [width, lines] = size === "smoke" ? [90, 60] : [3200, 1000];
  const frame = surfaceFrame(seed, width, lines);
  const file = join(directory, "heights.raw");
  writeFileSync(file, frame.height);
  const own = (memory: KernelMemory) => async (): Promise<RoundSample> => {
    memory.reset();
    const start = performance.now();
    const png = await encodeHeightMap(memory, frame.planes.height, frame.geometry, heightSource(memory, frame));
    const ms = performance.now() - start;
    return { value: ms, seconds: ms / 1000, details: { "size %": (100 * png.length) / frame.height.length } };
  };
  const runners: OpenBenchmark["runners"] = { wasm: own(await wasmKernels()), typescript: own(typeScriptKernels()) };
  const notes = [
    `${width} x ${lines} heights of 16 bits in memory, in one thread; the size is that of the file over that of the plane`,
  ];
  const pil = startPython(["PIL", "numpy"], PIL);
  if ("why" in pil) {
    const missing = ["pil-1", "pil-6"].map((name) => ({ name, why: pil.why }));
    return { runners, missing, notes, close: async () => {} };
  }
  for (const level of [1, 6]) {
    runners[`pil-${level}`] = async () => {
      const [seconds = 0, bytes = 0] = (await pil.ask(`${file} ${width} ${lines} ${level}`)).split(" ").map(Number);
      return { value: seconds * 1000, seconds, details: { "size %": (100 * bytes) / frame.height.length } };
    };
  }
  return { runners, notes, close: () => pil.close() };
}

export const heightMapPng: Benchmark = {
  name: "height-map-png",
  measures:
    "A 16-bit height map as PNG: from the raw plane in memory to the file in memory, one thread. PIL with zlib level 1 and 6 from its picture " +
    "to the file in memory, timed by Python.",
  metric: { name: "time", unit: "ms", better: "lower" },
  contestants: [
    { name: "wasm", description: "own filters and deflate in WebAssembly" },
    { name: "typescript", description: "without WebAssembly: sub, and zlib with Huffman codes alone" },
    { name: "pil-1", description: "PIL, compress_level=1" },
    { name: "pil-6", description: "PIL, compress_level=6" },
  ],
  peer: "pil-1",
  goals: [
    {
      kind: "ratio",
      contestant: "wasm",
      peer: "pil-1",
      ratio: 1 / 3,
      direction: "at-most",
      source: "goal of the formats: at least 3 times as fast as zlib level 1",
    },
  ],
  rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 2, measured: 11 } },
  timeoutSeconds: { smoke: 120, full: 300 },
  open,
};
