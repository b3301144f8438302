import { itemBytes } from "../../core/capture/capture.js";
import { vertexBytes } from "../../core/capture/ply-header.js";
import { heightSource, type MadeFrame, planeSource } from "../../test/helpers/captures/made-frames.js";
import { packCloud } from "../../workers/artefacts/cloud/point-cloud.js";
import { type KernelMemory, newKernelMemory } from "../../workers/artefacts/kernel-memory.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../harness/benchmark.js";
import { atMost } from "../harness/goal.js";
import { frameBenchmarks, frameXyz, repeated } from "../load/frames/bench-frames.js";

/** Largest size of a piece, as in the service. */
const PIECE_BYTES = 4 * 1024 * 1024;
/** More than all caches of the processor hold. */
const CACHES_BYTES = { smoke: 1, full: 96 * 1024 * 1024 };
const CACHE_LINE_BYTES = 64;

/**
 * All pieces of the cloud, one after the other.
 * @param memoryOf each piece has a memory of its own
 * @param areFilled the memories still hold the raw planes of the time before
 */
async function buildPieces(
  frame: MadeFrame,
  memoryOf: (nth: number) => Promise<KernelMemory>,
  areFilled: boolean,
): Promise<Uint8Array[]> {
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
      // One block holds everything, so that no block replaces another.
      blockBytes: frame.height.length,
    };
    const { at, lengthBytes } = await packCloud(memory, source, first, Math.min(first + linesPerPiece, lines));
    pieces.push(memory.bytes(at, lengthBytes));
  }
  return pieces;
}

/** Fills the caches with these bytes, which are ones. */
function fillCaches(others: Uint8Array): void {
  let sum = 0;
  for (let at = 0; at < others.length; at += CACHE_LINE_BYTES) sum += others[at] as number;
  // The sum is used, so that the compiler does not leave the reads out.
  if (sum === 0) throw new Error("the bytes are ones");
}

async function open(context: BenchmarkContext, frame: MadeFrame): Promise<OpenBenchmark> {
  const memories: KernelMemory[] = [];
  const memoryOf = async (nth: number): Promise<KernelMemory> => {
    const memory = memories[nth] ?? (await newKernelMemory());
    memories[nth] = memory;
    return memory;
  };
  const build = (areFilled: boolean): Promise<Uint8Array[]> => buildPieces(frame, memoryOf, areFilled);
  const whole = Buffer.concat(await build(false));
  const points = frameXyz(frame).positions.length;
  if (whole.length !== points * vertexBytes(frame.planes) || !Buffer.concat(await build(true)).equals(whole)) {
    throw new Error(`${frame.name}: not always the same vertices, or not of all points`);
  }
  const kept = new Uint8Array(whole.length).fill(1);
  const others = new Uint8Array(CACHES_BYTES[context.size]).fill(1);
  const round = (make: () => unknown) => async (): Promise<RoundSample> => {
    const sample = await repeated(context.size, async () => {
      fillCaches(others);
      const startMs = performance.now();
      await make();
      return performance.now() - startMs;
    });
    return { ...sample, details: { "GB/s": whole.length / 1e6 / sample.value } };
  };
  const copy = (): void => {
    for (let at = 0; at < whole.length; at += PIECE_BYTES) kept.set(whole.subarray(at, at + PIECE_BYTES), at);
  };
  return {
    runners: { service: round(() => build(true)), memcpy: round(copy) },
    notes: [`${frame.name}: ${whole.length} bytes in pieces of ${PIECE_BYTES}; one thread each`],
  };
}

export const plyBuilds: readonly Benchmark[] = frameBenchmarks({
  name: "ply-build",
  measures: (what) =>
    `All vertices of ${what} as binary PLY, in the pieces that a download takes. The raw planes and the result are both in the kernels' memory. ` +
    "The peer copies as many bytes, piece by piece, to memory that was used before. Before each measurement the caches are filled with other bytes. " +
    "So neither the service nor the peer finds its input or output there.",
  contestants: [
    { name: "service", description: "decoding and packing by the service's kernels" },
    { name: "memcpy", description: "a copy of the same size" },
  ],
  peer: "memcpy",
  goal: () => atMost("service", 1.5, "goal of the formats: at most 1.5 times a copy of the same size", "memcpy"),
  rounds: { warmup: 2, measured: 11 },
  timeoutSeconds: 300,
  open,
});
