/** Encodes index sections: see index-layout.ts for their bytes. */
import bin from "typed-binary";
import { writeUuid } from "../../core/identifiers.js";
import type { RunChange } from "../../core/link/change.js";
import { RUN_STATUSES, type RunStatus, type RunSummary } from "../../core/run/run-state.js";
import type { EmittedEvent } from "../../core/webhook/emitted-event.js";
import { encodeEvents } from "./event-index.js";
import { HIGH, NULL_LENGTH } from "./index-fields.js";
import {
  CAPTURES_BYTES,
  type CapturesIndex,
  DELTA_BYTES,
  DELTA_KINDS,
  INSTANCE_BIT,
  OPEN_BIT,
  ORIGIN_HEAD_BYTES,
  type Origin,
  originBytes,
  QUALITY_CODES,
  SUMMARY_HEAD_BYTES,
  UUID_BYTES,
} from "./index-layout.js";

const SUMMARY_HEAD = bin.object({
  runId: bin.u8Array(16),
  programId: bin.u8Array(16),
  status: bin.u8,
  revision: bin.u32,
  createdAtLow: bin.u32,
  createdAtHigh: bin.u32,
  updatedAtLow: bin.u32,
  updatedAtHigh: bin.u32,
  startedAtLow: bin.u32,
  startedAtHigh: bin.u32,
  completedAtLow: bin.u32,
  completedAtHigh: bin.u32,
  totalSteps: bin.u32,
  completedSteps: bin.u32,
  currentStep: bin.u32,
  programNameBytes: bin.u32,
  serialNumberBytes: bin.u32,
  errorMessageBytes: bin.u32,
  metadataBytes: bin.u32,
  frameCount: bin.u32,
});

const CAPTURES = bin.object({ bytesLow: bin.u32, bytesHigh: bin.u32, removedAtLow: bin.u32, removedAtHigh: bin.u32 });
const textEncoder = new TextEncoder();

/**
 * Origins and deltas are written here by hand and copied out, because every message has one. typed-binary took 1.5 µs of the 20 µs that a message
 * costs. A test compares them with golden bytes, which follow the tables in index-layout.ts.
 */
const scratch = new Uint8Array(ORIGIN_HEAD_BYTES + INSTANCE_BIT + UUID_BYTES + DELTA_BYTES);
const scratchView = new DataView(scratch.buffer);

export function encodeOrigin(origin: Origin | null): Uint8Array {
  return scratch.slice(0, writeOrigin(origin));
}

/** Writes an origin at the start of the scratch memory; returns its length in bytes. */
function writeOrigin(origin: Origin | null): number {
  const name = origin?.producer ?? "";
  const sequence = origin?.sequence ?? 0;
  const instance = origin?.instance;
  if (name.length >= INSTANCE_BIT)
    throw new RangeError(`the producer's name has ${name.length} characters, but must have less than ${INSTANCE_BIT}`);
  scratch[0] = name.length + (instance === undefined ? 0 : INSTANCE_BIT);
  scratchView.setUint32(1, sequence >>> 0, true);
  scratchView.setUint32(5, Math.floor(sequence / HIGH), true);
  for (let i = 0; i < name.length; i++) scratch[ORIGIN_HEAD_BYTES + i] = name.charCodeAt(i);
  if (instance !== undefined) writeUuid(instance, scratch, ORIGIN_HEAD_BYTES + name.length);
  return originBytes(scratch[0] as number);
}

/** @param captures null for a run that has not ended */
export function encodeSummary(
  head: Uint8Array,
  summary: RunSummary,
  frameIds: readonly string[],
  captures: CapturesIndex | null,
  events: readonly EmittedEvent[] = [],
): Uint8Array {
  const texts = [
    summary.programName,
    summary.serialNumber,
    summary.errorMessage,
    summary.metadata === null ? null : JSON.stringify(summary.metadata),
  ].map((text) => (text === null ? null : textEncoder.encode(text)));
  const [programName, serialNumber, errorMessage, metadata] = texts;
  const textBytes = texts.reduce((sum, text) => sum + (text?.length ?? 0), 0);
  const capturesBytes = captures === null ? 0 : CAPTURES_BYTES;
  const eventBytes = encodeEvents(events);
  const bytes = new Uint8Array(
    head.length + SUMMARY_HEAD_BYTES + textBytes + 16 * frameIds.length + capturesBytes + eventBytes.length,
  );
  bytes.set(head);
  const runId = new Uint8Array(16);
  writeUuid(summary.id, runId, 0);
  const programId = new Uint8Array(16);
  writeUuid(summary.programId, programId, 0);
  const writer = new bin.BufferWriter(bytes.buffer, { endianness: "little", byteOffset: head.length });
  SUMMARY_HEAD.write(writer, {
    runId,
    programId,
    status: RUN_STATUSES.indexOf(summary.status) + 16 * QUALITY_CODES.indexOf(summary.qualityStatus),
    revision: summary.revision,
    createdAtLow: summary.createdAtUs % HIGH,
    createdAtHigh: Math.floor(summary.createdAtUs / HIGH),
    updatedAtLow: summary.updatedAtUs % HIGH,
    updatedAtHigh: Math.floor(summary.updatedAtUs / HIGH),
    startedAtLow: (summary.startedAtUs ?? 0) % HIGH,
    startedAtHigh: Math.floor((summary.startedAtUs ?? 0) / HIGH),
    completedAtLow: (summary.completedAtUs ?? 0) % HIGH,
    completedAtHigh: Math.floor((summary.completedAtUs ?? 0) / HIGH),
    totalSteps: summary.progress.totalSteps,
    completedSteps: summary.progress.completedSteps,
    currentStep: summary.progress.currentStep ?? 0,
    programNameBytes: programName?.length ?? NULL_LENGTH,
    serialNumberBytes: serialNumber?.length ?? NULL_LENGTH,
    errorMessageBytes: errorMessage?.length ?? NULL_LENGTH,
    metadataBytes: metadata?.length ?? NULL_LENGTH,
    frameCount: frameIds.length,
  });
  let at = head.length + SUMMARY_HEAD_BYTES;
  for (const text of texts) {
    if (text === null) continue;
    bytes.set(text, at);
    at += text.length;
  }
  for (const frameId of frameIds) {
    writeUuid(frameId, bytes, at);
    at += 16;
  }
  if (captures !== null) {
    const removedAtUs = captures.removedAtUs ?? 0;
    CAPTURES.write(new bin.BufferWriter(bytes.buffer, { endianness: "little", byteOffset: at }), {
      bytesLow: captures.bytes % HIGH,
      bytesHigh: Math.floor(captures.bytes / HIGH) + (captures.isOpen ? OPEN_BIT : 0),
      removedAtLow: removedAtUs % HIGH,
      removedAtHigh: Math.floor(removedAtUs / HIGH),
    });
  }
  bytes.set(eventBytes, bytes.length - eventBytes.length);
  return bytes;
}

/** The index section of a run delta, with its origin. */
export function encodeDelta(
  origin: Origin | null,
  change: Exclude<RunChange, { kind: "run_created" }>,
  statusAfter: RunStatus,
): Uint8Array {
  const at = writeOrigin(origin);
  const end = at + DELTA_BYTES;
  writeUuid(change.runId, scratch, at);
  scratch[at + 16] = RUN_STATUSES.indexOf(statusAfter);
  scratch[at + 17] = DELTA_KINDS.indexOf(change.kind);
  if (change.kind === "frame_begun") writeUuid(change.frame.id, scratch, at + 18);
  else scratch.fill(0, at + 18, end);
  const delta = scratch.slice(0, end);
  if (change.kind !== "run_started" || change.event === undefined) return delta;
  return Buffer.concat([delta, encodeEvents([change.event])]);
}
