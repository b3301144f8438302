import { heightSource, type MadeFrame } from "../../test/helpers/captures/made-frames.js";
import { readGreyPng } from "../../test/helpers/captures/png-reader.js";
import { newKernelMemory } from "../../workers/artefacts/kernel-memory.js";
import { encodeHeightMap } from "../../workers/artefacts/picture/height-map-png.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../harness/benchmark.js";
import { atMost } from "../harness/goal.js";
import { frameBenchmarks, repeated } from "../load/frames/bench-frames.js";
import { loadPeer } from "../peers/peer-package.js";

/** The part of sharp that is used here (https://sharp.pixelplumbing.com). */
interface SharpImage {
  toColourspace(name: string): SharpImage;
  png(options: { compressionLevel: number; adaptiveFiltering: boolean }): SharpImage;
  toBuffer(): Promise<Buffer>;
}

interface Sharp {
  (input: Uint16Array, options: { raw: { width: number; height: number; channels: 1 } }): SharpImage;
  concurrency(threads: number): number;
  cache(isOn: boolean): unknown;
}

async function open(context: BenchmarkContext, frame: MadeFrame): Promise<OpenBenchmark> {
  const { width, lines } = frame.geometry;
  const memory = await newKernelMemory();
  const round = (encode: () => Promise<Uint8Array>) => async (): Promise<RoundSample> => {
    let bytes = 0;
    const sample = await repeated(context.size, async () => {
      const startMs = performance.now();
      bytes = (await encode()).length;
      return performance.now() - startMs;
    });
    return { ...sample, details: { "size %": (50 * bytes) / (width * lines) } };
  };
  const encode = (): Promise<Uint8Array> => {
    memory.reset();
    return encodeHeightMap(memory, frame.planes.height, frame.geometry, heightSource(memory, frame));
  };
  const runners: OpenBenchmark["runners"] = { service: round(encode) };
  const notes = [`${frame.name}: ${width} x ${lines} samples; size: of the file, beside that of the samples`];
  const peer = loadPeer<Sharp>("sharp");
  if ("why" in peer) return { runners, missing: [{ name: "sharp", why: peer.why }], notes };
  const sharp = peer.loaded;
  sharp.concurrency(1);
  sharp.cache(false);
  // sharp gets the samples of the height map, whatever the raw heights are.
  const pixels = Uint16Array.from(readGreyPng(await encode()).samples);
  runners.sharp = round(async () => {
    const image = sharp(pixels, { raw: { width, height: lines, channels: 1 } }).toColourspace("grey16");
    const png = await image.png({ compressionLevel: 1, adaptiveFiltering: false }).toBuffer();
    if (png[24] !== 16) throw new Error(`sharp wrote ${png[24]} bits a sample`);
    return png;
  });
  return { runners, notes };
}

export const heightMapPngs: readonly Benchmark[] = frameBenchmarks({
  name: "height-map-png",
  measures: (what) =>
    `${what} as a 16-bit PNG: from raw heights in memory to the file in memory. sharp encodes the same samples from memory to memory.`,
  contestants: [
    { name: "service", description: "the service's own filters and deflate, one thread" },
    { name: "sharp", description: "sharp, compressionLevel 1, one thread" },
  ],
  peer: "sharp",
  goal: () => atMost("service", 1 / 3, "3 times as fast as sharp level 1", "sharp"),
  rounds: { warmup: 2, measured: 9 },
  timeoutSeconds: 300,
  open,
});
