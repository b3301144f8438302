import { randomBytes } from "node:crypto";
import { generateUuidV7 } from "../../core/identifiers.js";
import { createRandom } from "../../core/random.js";
import type { ProducerClient } from "../../workers/cell-link/producer-client.js";
import type { ProducedProgram } from "./run-producer.js";

const WIDTH = 3200;
export const BATCH_LINES = 64;
/** u16 height and u16 luminance. */
export const BATCH_BYTES = WIDTH * BATCH_LINES * 4;
const FRAME_BATCHES = 1024 / BATCH_LINES;
/** A head of 4,000 lines a second (cell-link.md, What it must hold): 51.2 MB/s. */
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

export interface OpenCapture {
  frameId: string;
  /** Sends the next batch of lines; `acknowledged` of what it resolves to is the service's answer. */
  sendBatch(): Promise<{ acknowledged: Promise<void> }>;
  /** Ends frame, step and run. */
  end(): Promise<void>;
}

/** A frame of 3,200 x 1,024 points as it is used where a whole frame is processed: begun, with all of its lines acknowledged. */
export async function captureWholeFrame(
  client: ProducerClient,
  program: ProducedProgram,
  batch: Uint8Array,
  batches = FRAME_BATCHES,
): Promise<OpenCapture> {
  const capture = await beginCapture(client, program, batch, batches);
  const sent = await Promise.all(Array.from({ length: batches }, () => capture.sendBatch()));
  await Promise.all(sent.map(({ acknowledged }) => acknowledged));
  return capture;
}

/** A run with one frame that waits for its lines, all of it acknowledged. `batches` may be 0 while their number is not known. */
export async function beginCapture(
  client: ProducerClient,
  program: ProducedProgram,
  batch: Uint8Array,
  batches: number,
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
      height: { dtype: "u16", scale_mm: 0.0005, offset_mm: -16, invalid: [0] },
      luminance: { dtype: "u16", bits: 10 },
    },
    x_pitch_mm: 0.01,
    y_pitch_mm: 0.01,
    capture_timestamp: new Date().toISOString(),
  });
  let firstLine = 0;
  return {
    frameId,
    sendBatch() {
      const message = { type: "frame.lines", id: frameId, first_line: firstLine, line_count: BATCH_LINES };
      firstLine += BATCH_LINES;
      return client.send(message, batch);
    },
    async end() {
      const result = { frame_id: frameId };
      await client.send({ type: "frame.end", id: frameId });
      await client.send({ type: "step.finish", run_id: runId, index: 1, status: "completed", result });
      await client.deliver({ type: "run.finish", id: runId });
    },
  };
}
