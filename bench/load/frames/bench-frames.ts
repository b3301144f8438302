import {
  type MadeFrame,
  plainHeights,
  REAL_CAPTURES,
  recordedFrames,
  surfaceFrame,
} from "../../../test/helpers/captures/made-frames.js";
import type { Benchmark, BenchmarkContext, Goal, OpenBenchmark, RoundSample, Size } from "../../harness/benchmark.js";
import { median } from "../../harness/statistics.js";

/** A frame that benchmarks of formats share. */
interface BenchFrame {
  /** How the names of its benchmarks end. */
  suffix: string;
  what: string;
  /** Name of the real capture; null for a made surface. */
  captureName: string | null;
}

const BENCH_FRAMES: readonly BenchFrame[] = [
  { suffix: "surface-10m", what: "a made surface of 10 Mpt", captureName: null },
  { suffix: "moulded-cover", what: "a moulded cover", captureName: "moulded_cover" },
  { suffix: "chip", what: "a chip, confocal", captureName: "chip_confocal_frt" },
];

const SMOKE = { width: 90, lines: 60 };
const FULL = { width: 3200, lines: 3200 };

/** The frame; at smoke size a small made surface. Null: the real capture is not on this machine. */
async function frameOf({ captureName }: BenchFrame, { size, seed }: BenchmarkContext): Promise<MadeFrame | null> {
  if (captureName === null || size === "smoke") {
    const { width, lines } = size === "smoke" ? SMOKE : FULL;
    return surfaceFrame(seed, width, lines);
  }
  return (await recordedFrames()).find(({ name }) => name === captureName) ?? null;
}

/**
 * The same benchmark on each of the frames. Without a frame all contestants are missing, because another frame would give other figures.
 * @param own its `name` without the frame; what it measures on the frame, and its goal
 */
export function frameBenchmarks({
  name,
  measures,
  goal,
  open,
  ...own
}: Pick<Benchmark, "name" | "contestants" | "peer" | "rounds" | "timeoutSeconds"> & {
  measures: (what: string) => string;
  goal: (frame: BenchFrame) => Goal;
  open: (context: BenchmarkContext, made: MadeFrame) => Promise<OpenBenchmark>;
}): Benchmark[] {
  return BENCH_FRAMES.map((frame) => ({
    ...own,
    name: `${name}-${frame.suffix}`,
    measures: `${measures(frame.what)} A round's figure is the median of as many as begin in 0.4 s.`,
    metric: { name: "time", unit: "ms", better: "lower" },
    goals: [goal(frame)],
    open: async (context) => {
      const made = await frameOf(frame, context);
      if (made !== null) return open(context, made);
      const why = `there is no ${REAL_CAPTURES}, and so no capture of ${frame.what}`;
      return { runners: {}, missing: own.contestants.map((one) => ({ name: one.name, why })), notes: [] };
    },
  }));
}

const REPEAT_MS = { smoke: 0, full: 400 };

/** A round measures again and again for a while: a single time of some milliseconds depends on what else runs. @param measure gives ms */
export async function repeated(size: Size, measure: () => number | Promise<number>): Promise<RoundSample> {
  const begunMs = performance.now();
  const takenMs: number[] = [];
  do takenMs.push(await measure());
  while (performance.now() - begunMs < REPEAT_MS[size]);
  return { value: median(takenMs), seconds: takenMs.reduce((sum, ms) => sum + ms, 0) / 1000 };
}

/** Valid points as x, y, z in f32, and the position of each. */
export function frameXyz(frame: MadeFrame): { xyz: Float32Array; positions: Uint32Array } {
  const { width, xOriginMm, yOriginMm, xPitchMm, yPitchMm } = frame.geometry;
  const zs = plainHeights(frame);
  const positions = new Uint32Array(zs.length);
  const xyz = new Float32Array(3 * zs.length);
  let point = 0;
  for (let at = 0; at < zs.length; at++) {
    if (zs[at] === Number.POSITIVE_INFINITY) continue;
    xyz[3 * point] = xOriginMm + (at % width) * xPitchMm;
    xyz[3 * point + 1] = yOriginMm + Math.floor(at / width) * yPitchMm;
    xyz[3 * point + 2] = zs[at] as number;
    positions[point++] = at;
  }
  return { xyz: xyz.slice(0, 3 * point), positions: positions.slice(0, point) };
}
