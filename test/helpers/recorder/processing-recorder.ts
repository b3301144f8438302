import { join } from "node:path";
import type { Test } from "tap";
import type { FrameState } from "../../../core/capture/capture.js";
import { formatsOf } from "../../../core/run/run-files.js";
import type { RunState } from "../../../core/run/run-state.js";
import { capturePath } from "../../../storage/captures/capture-path.js";
import { NearMaker } from "../captures/near-maker.js";
import { frameBegin, frameLines, nextId, PROGRAM_ID, programPut } from "../link/link-messages.js";
import type { RawProducer } from "../link/raw-producer.js";
import { type HarnessOptions, RecorderHarness, temporaryDirectory } from "./recorder-harness.js";

export const WIDTH = 40;
export const LINES = 30;
export const ALL_FORMATS = ["npy", "raw.ply", "png", "luminance.png", "ply"];

/** A recorder that processes captures as its maker lets it, and a producer with a program. */
export async function startProcessing(t: Test, options: HarnessOptions = {}) {
  const maker = new NearMaker();
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t), { artefacts: maker, ...options });
  const raw = await recorder.connect("controller");
  await raw.accept(programPut());
  return { maker, recorder, raw };
}

/** A run whose step 1 runs. */
export async function startRun(raw: RawProducer): Promise<string> {
  const runId = nextId();
  await raw.accept({ type: "run.create", id: runId, program_id: PROGRAM_ID });
  await raw.accept({ type: "run.start", id: runId });
  await raw.accept({ type: "step.start", run_id: runId, index: 1 });
  return runId;
}

/** A surface with one point far above it, u16 height and u16 luminance. */
export function surface(): Buffer {
  const height = new Uint16Array(WIDTH * LINES).map((_, at) => 20_000 + (at % WIDTH) * 3 + Math.floor(at / WIDTH));
  height[5 * WIDTH + 7] = 60_000;
  height[0] = 0;
  const luminance = new Uint16Array(WIDTH * LINES).map((_, at) => at % 1024);
  return Buffer.concat([Buffer.from(height.buffer), Buffer.from(luminance.buffer)]);
}

/** A whole frame of step 1. */
export async function sendFrame(raw: RawProducer, runId: string, bytes = surface()): Promise<string> {
  const frameId = nextId();
  await raw.accept({ ...frameBegin(frameId, runId), width: WIDTH });
  if (bytes.length > 0) await raw.accept(frameLines(frameId, 0, LINES), bytes);
  await raw.accept({ type: "frame.end", id: frameId });
  return frameId;
}

export function frameOf(run: RunState, frameId: string): FrameState {
  return run.frames.find(({ id }) => id === frameId) as FrameState;
}

export function captureFileOf(recorder: RecorderHarness, runId: string): string {
  return join(recorder.directory, "captures", capturePath(runId, "capture"));
}

/** Conditions for `RecorderHarness.until`. */
export const hasFormats =
  (recorder: RecorderHarness, runId: string, frameId: string, formats: readonly string[]) => (): boolean =>
    formats.every((format) => formatsOf(frameOf(recorder.run(runId), frameId)).includes(format as never));
export const hasEnded = (recorder: RecorderHarness, runId: string) => (): boolean =>
  recorder.run(runId).completedAtUs !== null;
