import { type MadeFrame, realFrames, surfaceFrame } from "../../test/helpers/made-frames.js";
import type { BenchmarkContext } from "../harness/benchmark.js";

/** A frame that benchmarks of formats share. */
export interface BenchFrame {
  /** How the names of its benchmarks end. */
  suffix: string;
  what: string;
  of(context: BenchmarkContext): Promise<MadeFrame>;
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

/** The real capture of that name; where there are none, and at smoke size, a made surface of about its size. */
function real(suffix: string, what: string, name: string): BenchFrame {
  return {
    suffix,
    what,
    of: async ({ size, seed }) => {
      if (size === "smoke") return surfaceFrame(seed, SMOKE.width, SMOKE.lines);
      return (await realFrames()).find((frame) => frame.name === name) ?? surfaceFrame(seed, 800, 600);
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
} satisfies Record<string, BenchFrame>;
