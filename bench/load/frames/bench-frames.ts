import {
  type MadeFrame,
  REAL_CAPTURES,
  recordedFrames,
  surfaceFrame,
} from "../../../test/helpers/captures/made-frames.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark } from "../../harness/benchmark.js";

/** A frame that benchmarks of formats share. */
export interface BenchFrame {
  /** How the names of its benchmarks end. */
  suffix: string;
  what: string;
  /** Null: a real capture that is not to be had here. */
  of(context: BenchmarkContext): Promise<MadeFrame | null>;
}

/** Opens a benchmark on a frame; without the frame all its contestants are missing, since figures of another one would say nothing. */
export function openOn(
  { what, of }: BenchFrame,
  contestants: Benchmark["contestants"],
  open: (context: BenchmarkContext, frame: MadeFrame) => Promise<OpenBenchmark>,
): Benchmark["open"] {
  return async (context) => {
    const frame = await of(context);
    if (frame !== null) return open(context, frame);
    const why = `there is no ${REAL_CAPTURES}, and so no capture of ${what}`;
    return { runners: {}, missing: contestants.map(({ name }) => ({ name, why })), notes: [], close: async () => {} };
  };
}

const SMOKE = { width: 90, lines: 60 };

function made(suffix: string, what: string, width: number, lines: number): BenchFrame {
  return {
    suffix,
    what,
    of: async ({ size, seed }) => {
      const { width: columns, lines: rows } = size === "smoke" ? SMOKE : { width, lines };
      return surfaceFrame(seed, columns, rows);
    },
  };
}

/** The real capture of that name; at smoke size a made surface. */
function real(suffix: string, what: string, name: string): BenchFrame {
  return {
    suffix,
    what,
    of: async ({ size, seed }) => {
      if (size === "smoke") return surfaceFrame(seed, SMOKE.width, SMOKE.lines);
      return (await recordedFrames()).find((frame) => frame.name === name) ?? null;
    },
  };
}

export const BENCH_FRAMES = {
  surface500k: made("surface-500k", "a made surface of 0.5 Mpt", 800, 600),
  surface3m: made("surface-3m", "a made surface of 3 Mpt", 3200, 1000),
  surface10m: made("surface-10m", "a made surface of 10 Mpt", 3200, 3200),
  mouldedCover: real("moulded-cover", "a moulded cover", "moulded_cover"),
  chip: real("chip", "a chip, confocal", "chip_confocal_frt"),
  disc: real("disc", "a fixture with wide shadows", "disc_fixture_a"),
  discAgain: real("disc-again", "the same fixture, rotated", "disc_fixture_b"),
  shapePlate: real("shape-plate", "a plate with shapes", "shape_plate"),
  digits: real("digits", "embossed digits", "embossed_digits"),
  groove: real("groove", "a groove specimen in f32", "groove_standard_gelsight"),
  striated: real("striated", "striated metal in f32, without luminance", "striated_metal_labelled"),
} satisfies Record<string, BenchFrame>;
