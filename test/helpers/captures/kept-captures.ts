import { createHash } from "node:crypto";
import type { RunState } from "../../../core/run/run-state.js";
import type { ContractClient } from "../http/contract-client.js";
import { frameBegin, frameLines, LINE_BYTES, nextId, PROGRAM_ID, programPut } from "../link/link-messages.js";
import type { RawProducer } from "../link/raw-producer.js";

export const REPORT = Buffer.from("%PDF-1.7 all good");
export const IMAGE = Buffer.from("an image that a co-processor made");

export interface KeptRun {
  id: string;
  frameId: string;
  /** What its capture file holds. */
  captures: Buffer;
}

/** A running run with a whole frame of one line a `fill`, a report, and an image that was made from the frame. */
export async function runWithCaptures(producer: RawProducer, fill: number, id = nextId()): Promise<KeptRun> {
  const frameId = nextId();
  const lines = Buffer.alloc(2 * LINE_BYTES, fill);
  await producer.accept(programPut());
  await producer.accept({ type: "run.create", id, program_id: PROGRAM_ID, serial_number: `SN-${fill}` });
  await producer.accept({ type: "run.start", id });
  await producer.accept(frameBegin(frameId, id));
  await producer.accept(frameLines(frameId, 0, 2), lines);
  await producer.accept({ type: "frame.end", id: frameId });
  const file = { type: "file.put", run_id: id };
  await producer.accept({ ...file, name: "report.pdf", content_type: "application/pdf" }, REPORT);
  await producer.accept({ ...file, name: "marked.png", content_type: "image/png" }, IMAGE);
  return { id, frameId, captures: Buffer.concat([lines, IMAGE]) };
}

/** Bytes that retention counts for each. */
export const CAPTURED_BYTES = 2 * LINE_BYTES + IMAGE.length;

/**
 * The same where captures are processed, at most and nearly: with two small pictures, a preview with its palette, a mask
 * and the points of two lines, twice.
 */
export const PROCESSED_BYTES = CAPTURED_BYTES + 1_400;
export const PROCESSED_FORMATS = ["npy", "raw.ply", "png", "luminance.png", "ply"];
/** What a frame lists besides. */
const OFFERED_FORMATS = [...PROCESSED_FORMATS, "preview.png"];

/** Resolves when the frame has all its formats. */
export async function untilAllFormats(client: ContractClient, { frameId }: KeptRun): Promise<void> {
  const hasAll = (files: { available_formats: string[] }): boolean =>
    files.available_formats.length === OFFERED_FORMATS.length;
  await client.until("/sensor/frames/{frame_id}/files", hasAll, { path: { frame_id: frameId } });
}

/** For comparisons that print little. */
export function digest(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex").slice(0, 16);
}

export function isRemoved(run: RunState): boolean {
  return run.capturesRemovedAtUs !== null;
}
