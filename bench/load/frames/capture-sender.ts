import { randomBytes } from "node:crypto";
import { generateUuidV7 } from "../../../core/identifiers.js";
import { createRandom } from "../../../core/random.js";
import { surfaceFrame } from "../../../test/helpers/captures/made-frames.js";
import type { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import type { ProducedProgram } from "../run-producer.js";

const WIDTH = 3200;
export const BATCH_LINES = 64;
/** u16 height and u16 luminance. */
export const BATCH_BYTES = WIDTH * BATCH_LINES * 4;
const FRAME_LINES = 1024;
const PITCH_MM = 0.01;
/** A head of 4,000 lines a second (workers/cell-link/README.md): 51.2 MB/s. */
export const HEAD_BATCHES_PER_SECOND = 4000 / BATCH_LINES;

/** One batch as the head delivers it: a tilted, rough surface, and a luminance of 10 bits. */
export function surfaceBatch(seed: number): Uint8Array {
  const random = createRandom(seed);
  const values = new Uint16Array(BATCH_BYTES / 2);
  const points = WIDTH * BATCH_LINES;
  for (let i = 0; i < points; i++) {
    values[i] = random.chance(0.02) ? 0 : 20_000 + (i % WIDTH) + Math.round(random.normal() * 12);
    values[points + i] = random.integer(200, 900);
  }
  return new Uint8Array(values.buffer);
}

interface HeightScale {
  scale_mm: number;
  offset_mm: number;
}

const BATCH_SCALE: HeightScale = { scale_mm: 0.0005, offset_mm: -16 };

/** A frame as a head delivers it. */
export interface WholeFrame {
  batches: readonly Uint8Array[];
  scale: HeightScale;
  /** The height plane: u16, row = line. */
  heights: Uint8Array;
}

/**
 * A part's surface with steps, shadows beside them, noise and points far off, so that the filter has the work that a real frame gives it; no two
 * batches are alike. Its luminance has 10 bits, as in `surfaceBatch`.
 */
export function wholeFrame(seed: number, lines = FRAME_LINES): WholeFrame {
  const { height: heights } = surfaceFrame(seed, WIDTH, lines);
  const random = createRandom(seed + 1);
  const luminance = Uint16Array.from({ length: WIDTH * lines }, () => random.integer(200, 900));
  const rows = (plane: Uint8Array, first: number): Uint8Array =>
    plane.subarray(first * WIDTH * 2, (first + BATCH_LINES) * WIDTH * 2);
  const batches = Array.from({ length: lines / BATCH_LINES }, (_, nth) =>
    Buffer.concat([rows(heights, nth * BATCH_LINES), rows(new Uint8Array(luminance.buffer), nth * BATCH_LINES)]),
  );
  // Its shape is made for a pitch of 0.1 mm and 0.002 mm a count. Here all of it is smaller by the same factor.
  return { batches, scale: { scale_mm: 0.0002, offset_mm: 0 }, heights };
}

export interface OpenCapture {
  runId: string;
  frameId: string;
  /** Sends the next batch of lines; `acknowledged` of what it resolves to is the service's answer. */
  sendBatch(): Promise<{ acknowledged: Promise<void> }>;
  /** Ends frame, step and run. */
  end(): Promise<void>;
}

/** A run with one frame whose lines are all acknowledged. Only its end is missing. */
export async function captureWholeFrame(
  client: ProducerClient,
  program: ProducedProgram,
  { batches, scale }: WholeFrame,
): Promise<OpenCapture> {
  const capture = await openCapture(client, program, (nth) => batches[nth] as Uint8Array, batches.length, scale);
  const sent = await Promise.all(batches.map(() => capture.sendBatch()));
  await Promise.all(sent.map(({ acknowledged }) => acknowledged));
  return capture;
}

/** A run with one frame that waits for its lines: the same batch again and again. `batches` is 0 if their number is not known yet. */
export function beginCapture(
  client: ProducerClient,
  program: ProducedProgram,
  batch: Uint8Array,
  batches: number,
): Promise<OpenCapture> {
  return openCapture(client, program, () => batch, batches, BATCH_SCALE);
}

async function openCapture(
  client: ProducerClient,
  program: ProducedProgram,
  batchOf: (nth: number) => Uint8Array,
  batches: number,
  scale: HeightScale,
): Promise<OpenCapture> {
  const runId = client.nextRunId();
  const frameId = generateUuidV7(Date.now(), randomBytes(10));
  await client.send({ type: "run.create", id: runId, program_id: program.id });
  await client.send({ type: "run.start", id: runId });
  await client.send({ type: "step.start", run_id: runId, index: 1 });
  await client.deliver({
    type: "frame.begin",
    id: frameId,
    run_id: runId,
    step_index: 1,
    session_id: "bench",
    frame_type: "profile",
    width: WIDTH,
    height: batches * BATCH_LINES,
    planes: {
      height: { dtype: "u16", ...scale, invalid: [0] },
      luminance: { dtype: "u16", bits: 10 },
    },
    x_pitch_mm: PITCH_MM,
    y_pitch_mm: PITCH_MM,
    capture_timestamp: new Date().toISOString(),
  });
  let sent = 0;
  return {
    runId,
    frameId,
    sendBatch() {
      const nth = sent++;
      const message = { type: "frame.lines", id: frameId, first_line: nth * BATCH_LINES, line_count: BATCH_LINES };
      return client.send(message, batchOf(nth));
    },
    async end() {
      const result = { frame_id: frameId };
      await client.send({ type: "frame.end", id: frameId });
      await client.send({ type: "step.finish", run_id: runId, index: 1, status: "completed", result });
      await client.deliver({ type: "run.finish", id: runId });
    },
  };
}
