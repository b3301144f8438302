import { generateUuidV7 } from "../../../core/identifiers.js";
import { createRandom } from "../../../core/random.js";
import type { RawProducer } from "./raw-producer.js";

const random = createRandom(20_261_120);
let last: string | null = null;

/** A UUIDv7 above every one before. */
export function nextId(): string {
  last = generateUuidV7(1_780_000_000_000, random.bytes(10), last);
  return last;
}

export const PROGRAM_ID = "01900000-0000-7000-8000-000000000001";

export function programPut(id = PROGRAM_ID, steps = 3) {
  const step = (_: unknown, at: number) => ({ type: "capture_frame", name: `step ${at + 1}` });
  return {
    type: "program.put",
    program: { id, name: "Weld seam", status: "active", steps: Array.from({ length: steps }, step) },
  };
}

export const WIDTH = 4;
/** Bytes of a line of `frameBegin`: u16 height and u16 luminance. */
export const LINE_BYTES = WIDTH * 4;

export function frameBegin(id: string, runId: string, stepIndex = 1, height = 0) {
  return {
    type: "frame.begin",
    id,
    run_id: runId,
    step_index: stepIndex,
    session_id: "session-1",
    frame_type: "profile",
    width: WIDTH,
    height,
    planes: {
      height: { dtype: "u16", scale_mm: 0.001, offset_mm: -10, invalid: [0] },
      luminance: { dtype: "u16", bits: 10 },
    },
    x_pitch_mm: 0.01,
    y_pitch_mm: 0.02,
    capture_timestamp: "2026-11-20T10:00:00.123456Z",
  };
}

export function frameLines(id: string, firstLine: number, lineCount: number) {
  return { type: "frame.lines", id, first_line: firstLine, line_count: lineCount };
}

export function seriesAppend(runId: string, stepIndex = 1, channels = 2) {
  return {
    type: "series.append",
    run_id: runId,
    step_index: stepIndex,
    channels,
    first_timestamp: "2026-11-20T10:00:00Z",
    sample_period_us: 100,
    dtype: "f32",
  };
}

/** A running run with an open frame of 10 lines and a running job; step 1 runs. */
export async function runningRun(raw: RawProducer) {
  const runId = nextId();
  const frameId = nextId();
  const jobId = nextId();
  await raw.accept({ type: "run.create", id: runId, program_id: PROGRAM_ID, serial_number: "SN-1" });
  await raw.accept({ type: "run.start", id: runId });
  await raw.accept({ type: "step.start", run_id: runId, index: 1 });
  await raw.accept(frameBegin(frameId, runId));
  await raw.accept(frameLines(frameId, 0, 10), new Uint8Array(10 * LINE_BYTES));
  await raw.accept({ type: "job.start", run_id: runId, id: jobId, name: "fit" });
  return { runId, frameId, jobId };
}
