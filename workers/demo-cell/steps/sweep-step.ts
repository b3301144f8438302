import type { JsonObject } from "../../../core/json/json.js";
import type { ProgramStep } from "../../../core/run/program.js";
import { formatTimeUs } from "../../../core/timestamps.js";
import { heightsMm } from "./capture.js";
import type { RunContext } from "./run-context.js";

const APPENDS = 3;
/** Scale of an i32 channel: hundredths of a micrometre. The lowest code means no measurement. */
const I32_SCALE = 0.00001;
const I32_INVALID = -0x8000_0000;

/** Moves confocal heads along the part and appends what they measure. Each channel has its own track. */
export async function sweepProfile(run: RunContext, step: ProgramStep, index: number): Promise<JsonObject> {
  const channels = Number(step.params?.channels ?? 2);
  const samples = Number(step.params?.samples ?? 600);
  const periodUs = Number(step.params?.sample_period_us ?? 1000);
  const integers = step.params?.encoding === "i32";
  const track = await tracks(run, channels);
  const rows = Math.floor(samples / APPENDS);
  const startUs = Date.now() * 1000;
  let invalid = 0;
  for (let append = 0; append < APPENDS; append++) {
    await run.pace.work((rows * periodUs) / 1000);
    const values = integers ? new Int32Array(rows * channels) : new Float32Array(rows * channels);
    for (let row = 0; row < rows; row++) {
      for (let channel = 0; channel < channels; channel++) {
        const zMm = track(channel, (append * rows + row) / (rows * APPENDS)) + 0.0004 * run.random.normal();
        const lost = Number.isNaN(zMm) || run.random.chance(0.012);
        if (lost) invalid++;
        values[row * channels + channel] = integers
          ? lost
            ? I32_INVALID
            : Math.round(zMm / I32_SCALE)
          : lost
            ? Number.NaN
            : zMm;
      }
    }
    await run.say(
      {
        type: "series.append",
        run_id: run.runId,
        step_index: index,
        channels,
        first_timestamp: formatTimeUs(startUs + append * rows * periodUs),
        sample_period_us: periodUs,
        ...(integers ? { dtype: "i32", scale: I32_SCALE, offset: 0, invalid: [I32_INVALID] } : { dtype: "f32" }),
      },
      new Uint8Array(values.buffer),
    );
  }
  return { channels, samples: rows * APPENDS, invalid_values: invalid };
}

/**
 * Height of channel c at the share `t` (0 to 1) of the way along x. It comes from the part's capture if there is one.
 */
async function tracks(run: RunContext, channels: number): Promise<(channel: number, t: number) => number> {
  const inspection = await run.inspect();
  if (inspection === undefined) return (channel, t) => 0.2 * channel + 0.05 * Math.sin(t * 12);
  const { capture } = inspection;
  const zMm = heightsMm(capture);
  return (channel, t) => {
    const line = Math.round(((channel + 1) / (channels + 1)) * (capture.lines - 1));
    return zMm[line * capture.width + Math.floor(t * (capture.width - 1))] as number;
  };
}
