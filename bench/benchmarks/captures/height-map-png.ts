import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { heightSource, type MadeFrame } from "../../../test/helpers/captures/made-frames.js";
import { readGreyPng } from "../../../test/helpers/captures/png-reader.js";
import { type KernelMemory, typeScriptKernels, wasmKernels } from "../../../workers/artefacts/kernel-memory.js";
import { encodeHeightMap } from "../../../workers/artefacts/picture/frame-pictures.js";
import type {
  Benchmark,
  BenchmarkContext,
  MissingContestant,
  OpenBenchmark,
  RoundSample,
} from "../../harness/benchmark.js";
import { median } from "../../harness/statistics.js";
import { BENCH_FRAMES, type BenchFrame, openOn } from "../../load/frames/bench-frames.js";
import { FILTER_DEFAULT, FILTER_SUB, startLibpng } from "../../peers/libpng.js";
import { loadSharp } from "../../peers/sharp.js";

type Figure = "time" | "size";

/** One picture after the other for so long: of one that takes some milliseconds a single figure is that of what else the machine did. */
const ROUND_MS = { smoke: 0, full: 250 };

interface Encoded {
  ms: number;
  bytes: number;
}

async function open(context: BenchmarkContext, frame: MadeFrame, figure: Figure): Promise<OpenBenchmark> {
  const { width, lines } = frame.geometry;
  const round = (encode: () => Promise<Encoded>) => async (): Promise<RoundSample> => {
    const begunMs = performance.now();
    const takenMs: number[] = [];
    let last: Encoded;
    do {
      last = await encode();
      takenMs.push(last.ms);
    } while (figure === "time" && performance.now() - begunMs < ROUND_MS[context.size]);
    return {
      value: figure === "time" ? median(takenMs) : last.bytes,
      seconds: takenMs.reduce((sum, ms) => sum + ms, 0) / 1000,
      details: { "size %": (50 * last.bytes) / (width * lines) },
    };
  };
  const encode = (memory: KernelMemory): Promise<Uint8Array> => {
    memory.reset();
    return encodeHeightMap(memory, frame.planes.height, frame.geometry, heightSource(memory, frame));
  };
  const own = (memory: KernelMemory) =>
    round(async () => {
      const start = performance.now();
      const png = await encode(memory);
      return { ms: performance.now() - start, bytes: png.length };
    });
  const wasm = await wasmKernels();
  // The peers get the samples that the height map has, whatever the raw heights are.
  const { samples } = readGreyPng(await encode(wasm));
  const pixels = Uint16Array.from(samples);
  const file = join(context.directory, "heights.raw");
  writeFileSync(file, new Uint8Array(pixels.buffer));
  const runners: OpenBenchmark["runners"] = { wasm: own(wasm), typescript: own(typeScriptKernels()) };
  const missing: MissingContestant[] = [];
  const closers: (() => Promise<void>)[] = [];
  const libpng = startLibpng();
  if ("why" in libpng) {
    for (const name of figure === "time" ? ["libpng-1"] : ["libpng-6"]) missing.push({ name, why: libpng.why });
  } else {
    closers.push(() => libpng.close());
    const [name, level, filter] = figure === "time" ? ["libpng-1", 1, FILTER_SUB] : ["libpng-6", 6, FILTER_DEFAULT];
    runners[name as string] = round(async () => {
      const { seconds, bytes } = await libpng.encode(file, width, lines, level as number, filter as number);
      return { ms: seconds * 1000, bytes };
    });
  }
  if (figure === "time") {
    const loaded = loadSharp();
    if ("why" in loaded) missing.push({ name: "sharp-1", why: loaded.why });
    else {
      runners["sharp-1"] = round(async () => {
        const start = performance.now();
        const image = loaded.sharp(pixels, { raw: { width, height: lines, channels: 1 } });
        const png = await image
          .toColourspace("grey16")
          .png({ compressionLevel: 1, adaptiveFiltering: false })
          .toBuffer();
        const ms = performance.now() - start;
        if (png[24] !== 16) throw new Error(`sharp wrote ${png[24]} bits a sample`);
        return { ms, bytes: png.length };
      });
    }
  }
  return {
    runners,
    missing,
    notes: [
      `${frame.name}: ${width} x ${lines} samples of 16 bits; the size is that of the file over that of the samples`,
    ],
    async close() {
      for (const close of closers) await close();
    },
  };
}

const OWN = [
  { name: "wasm", description: "own filters and deflate in WebAssembly" },
  { name: "typescript", description: "without WebAssembly: sub, and zlib with Huffman codes alone" },
];

const TIMED = [
  ...OWN,
  { name: "libpng-1", description: "libpng, level 1, filter sub" },
  { name: "sharp-1", description: "sharp, compressionLevel 1, one thread" },
];

function timeBenchmark(frame: BenchFrame): Benchmark {
  const { suffix, what } = frame;
  return {
    name: `height-map-png-${suffix}`,
    measures:
      `${what} as a 16-bit PNG: from raw heights in memory to the file in memory, one thread each. sharp and libpng (called from Python by ctypes, ` +
      "timed by Python) encode the same samples from memory to memory. One after the other for a quarter of a second: a round's figure is their median.",
    metric: { name: "time", unit: "ms", better: "lower" },
    contestants: TIMED,
    peer: "libpng-1",
    goals: ["libpng-1", "sharp-1"].map((peer) => ({
      kind: "ratio",
      contestant: "wasm",
      peer,
      ratio: 1 / 3,
      direction: "at-most",
      source: "goal of the formats: 3 times as fast as sharp level 1 and libpng level 1 with sub",
    })),
    rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 2, measured: 9 } },
    timeoutSeconds: { smoke: 120, full: 300 },
    open: openOn(frame, TIMED, (context, made) => open(context, made, "time")),
  };
}

const SIZED = [...OWN, { name: "libpng-6", description: "libpng, level 6, its own choice of filters" }];

function sizeBenchmark(frame: BenchFrame): Benchmark {
  const { suffix, what } = frame;
  return {
    name: `height-map-size-${suffix}`,
    measures: `How large ${what} is as a 16-bit PNG: bytes of the file, beside libpng's at level 6 with the filters that it chooses itself.`,
    metric: { name: "size", unit: "bytes", better: "lower" },
    contestants: SIZED,
    peer: "libpng-6",
    goals: [
      {
        kind: "ratio",
        contestant: "wasm",
        peer: "libpng-6",
        ratio: 1.06,
        direction: "at-most",
        source: "goal of the formats: at most 1.06 times libpng level 6 on real captures",
      },
    ],
    // Sizes are the same every time.
    rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 0, measured: 1 } },
    timeoutSeconds: { smoke: 120, full: 120 },
    open: openOn(frame, SIZED, (context, made) => open(context, made, "size")),
  };
}

const { surface500k, surface3m, surface10m, ...captures } = BENCH_FRAMES;

export const heightMapPngs: readonly Benchmark[] = [
  ...Object.values(BENCH_FRAMES).map(timeBenchmark),
  ...Object.values(captures).map(sizeBenchmark),
];
