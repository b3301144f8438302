import type { Test } from "tap";
import type { Planes } from "../../../core/capture/capture.js";
import type { Defect } from "../../../core/run/quality.js";
import { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import { batchPayload, type Capture } from "../../../workers/demo-cell/steps/capture.js";
import { nextId } from "../link/link-messages.js";
import { ServiceProcess } from "../process/service-process.js";
import { until } from "../until.js";

const PROGRAM = "01900000-0000-7000-8000-0000000000f4";
const BATCH_LINES = 200;
/** What processing makes of a frame with luminance, and of one without. */
const FORMATS = { with: 5, without: 4 };

export interface TakenFrame {
  runId: string;
  frameId: string;
}

/** A height map by a formula: z of column and line in mm, NaN for no measurement. */
export function madeCapture(
  size: { width: number; lines: number; xPitchMm?: number; yPitchMm?: number; hasLuminance?: boolean },
  zMm: (column: number, line: number) => number,
): Capture {
  const { width, lines, xPitchMm = 0.05, yPitchMm = 0.1, hasLuminance = true } = size;
  const height: Planes["height"] = { dtype: "u16", scale_mm: 0.001, offset_mm: -30, invalid: [0] };
  const heights = new Uint16Array(width * lines);
  const luminance = new Uint8Array(hasLuminance ? width * lines : 0);
  for (let line = 0, at = 0; line < lines; line++) {
    for (let column = 0; column < width; column++, at++) {
      const z = zMm(column, line);
      heights[at] = Number.isNaN(z) ? 0 : Math.round((z - height.offset_mm) / height.scale_mm);
      if (hasLuminance) luminance[at] = (column + 3 * line) % 256;
    }
  }
  return {
    ...{ width, lines, xPitchMm, yPitchMm, xOriginMm: -10, yOriginMm: 5 },
    planes: hasLuminance ? { height, luminance: { dtype: "u8", bits: 8 } } : { height },
    height: new Uint8Array(heights.buffer),
    luminance: hasLuminance ? luminance : undefined,
    metadata: {},
  };
}

/** Its size, for `madeCapture`. */
export const SMALL = { width: 300, lines: 200, xPitchMm: 0.05, yPitchMm: 0.1 };

/** z in mm of a step with texture, and a hole without measurement: every point is another than its neighbours. */
export function surface(column: number, line: number): number {
  if (column >= 100 && column < 120 && line >= 50 && line < 70) return Number.NaN;
  const step = column >= 150 ? 2 : 0;
  return step + 0.002 * (column % 7) + 0.005 * (line % 11);
}

/** Flying points, which the filter removes. */
export function withOutliers(column: number, line: number): number {
  return column % 50 === 25 && line % 40 === 20 ? 25 : surface(column, line);
}

export const bump = (column: number, line: number): number =>
  surface(column, line) + (Math.hypot(column - 40, line - 40) < 10 ? 0.25 : 0);

/** A cell that takes the frames that a test gives it, one in each run. */
export class FrameCell {
  readonly #producer: ProducerClient;
  readonly #base: string;

  private constructor(service: ServiceProcess) {
    this.#base = `http://127.0.0.1:${service.port}`;
    this.#producer = new ProducerClient({ address: { path: service.cellSocketPath }, producer: "frame-cell" });
  }

  /** With a service of its own. */
  static async startFor(t: Test): Promise<{ service: ServiceProcess; cell: FrameCell }> {
    const service = await ServiceProcess.startFor(t);
    const cell = new FrameCell(service);
    t.teardown(() => cell.close());
    await cell.#producer.welcomed();
    const steps = [{ type: "capture_frame", name: "Scan face" }];
    await cell.say("program.put", { program: { id: PROGRAM, name: "Faces", status: "active", steps } });
    return { service, cell };
  }

  say(type: string, fields: object, payload?: Uint8Array): Promise<void> {
    return this.#producer.deliver({ type, ...fields }, payload);
  }

  /** Makes a run with one frame in a step that goes on, and waits until all formats of the frame are there. */
  async begin(serialNumber: string, capture: Capture): Promise<TakenFrame> {
    const runId = this.#producer.nextRunId();
    const frameId = nextId();
    await this.say("run.create", { id: runId, program_id: PROGRAM, serial_number: serialNumber });
    await this.say("run.start", { id: runId });
    await this.say("step.start", { run_id: runId, index: 1 });
    await this.#send(runId, frameId, capture);
    await this.#until<{ available_formats?: string[] }>(
      `/sensor/frames/${frameId}/files`,
      ({ available_formats: made = [] }) =>
        made.length >= (capture.luminance === undefined ? FORMATS.without : FORMATS.with),
    );
    return { runId, frameId };
  }

  /** Makes a run with one frame, and waits until it is completed. */
  async take(
    serialNumber: string,
    capture: Capture,
    defects: (frameId: string) => Defect[] = () => [],
  ): Promise<TakenFrame> {
    const { runId, frameId } = await this.begin(serialNumber, capture);
    const finished = { run_id: runId, index: 1, status: "completed", result: { frame_id: frameId } };
    await this.say("step.finish", finished);
    const job = nextId();
    const check = { name: "flatness", status: "passed", value: 0.1 };
    await this.say("job.start", { run_id: runId, id: job, name: "inspector" });
    const found = { checks: [check], defects: defects(frameId) };
    await this.say("job.finish", { run_id: runId, id: job, status: "completed", ...found });
    await this.say("run.finish", { id: runId });
    await this.#until<{ status: string }>(`/runs/${runId}`, ({ status }) => status === "completed");
    return { runId, frameId };
  }

  /** A run that fails while its frame is still taken. @returns the frame's id */
  async breakOff(capture: Capture): Promise<string> {
    const runId = this.#producer.nextRunId();
    const frameId = nextId();
    await this.say("run.create", { id: runId, program_id: PROGRAM });
    await this.say("run.start", { id: runId });
    await this.say("step.start", { run_id: runId, index: 1 });
    await this.#send(runId, frameId, capture, false);
    await this.say("run.fail", { id: runId, error_message: "the sensor was unplugged" });
    return frameId;
  }

  async #send(runId: string, frameId: string, capture: Capture, isWhole = true): Promise<void> {
    const { width, lines, planes } = capture;
    await this.say("frame.begin", {
      ...{ id: frameId, run_id: runId, step_index: 1, session_id: "session-1", frame_type: "height_map" },
      ...{ width, height: lines, planes, x_pitch_mm: capture.xPitchMm, y_pitch_mm: capture.yPitchMm },
      ...{ x_origin_mm: capture.xOriginMm, y_origin_mm: capture.yOriginMm, sensor_id: "ljx-1" },
      capture_timestamp: "2026-11-20T10:00:00Z",
    });
    for (let first = 0; first < lines; first += BATCH_LINES) {
      const count = Math.min(BATCH_LINES, lines - first);
      const batch = { id: frameId, first_line: first, line_count: count };
      await this.say("frame.lines", batch, batchPayload(capture, first, count));
    }
    if (isWhole) await this.say("frame.end", { id: frameId });
  }

  /** What was acknowledged may not be shown yet. */
  async #until<Shape>(path: string, isSo: (answer: Shape) => boolean): Promise<void> {
    await until(path, async () => isSo(await this.get<Shape>(path)));
  }

  async get<Shape>(path: string): Promise<Shape> {
    return (await (await fetch(this.#base + path)).json()) as Shape;
  }

  async bytes(path: string): Promise<Buffer> {
    return Buffer.from(await (await fetch(this.#base + path)).arrayBuffer());
  }

  close(): Promise<void> {
    return this.#producer.close();
  }
}
