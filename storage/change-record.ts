/**
 * How changes become a log record, and back. A record is a type, an index section (typed-binary: what view and recorder need, so
 * that opening a store decodes no MessagePack) and a MessagePack body.
 *
 * | type | record | index section | body |
 * |---|---|---|---|
 * | 16 | cell changes | origin | `{changes: CellChange[]}` |
 * | 17 | run created | origin, run summary | `{changes: [run_created]}` |
 * | 18 | run delta | origin, run delta | `{changes: RunChange[]}` of one run |
 * | 19 | run ended | origin, run summary with its frame ids | `{run: RunState}` |
 * | 20 | refusal | origin | `{refusal: Refusal}` |
 *
 * The origin names the producer's message that the record commits: name and sequence number, empty and 0 for what the service
 * does by itself. All integers are little-endian; a 53-bit integer is two u32, low first; a time of 0 is null.
 *
 * origin: u8 length of the name, u32 + u32 sequence, then the name's bytes.
 * run summary: the fixed fields of `SUMMARY_HEAD`, then program name, serial number, error message, metadata as JSON text, frame
 * ids of 16 bytes each. A length of 0xffffffff is null.
 * run delta: 16 bytes run id, u8 status after it, u8 code of the change, 16 bytes id of the frame it begins (else zeros).
 */
import { encode } from "@msgpack/msgpack";
import bin from "typed-binary";
import type { CellChange, Change, RunChange, RunEnded } from "../core/change.js";
import { readUuid, writeUuid } from "../core/identifiers.js";
import { isPlainObject, type JsonObject } from "../core/json.js";
import type { Refusal } from "../core/refusal.js";
import { RUN_STATUSES, type RunState, type RunStatus, type RunSummary, summarizeRun } from "../core/run-state.js";
import { decodeMessagePack } from "./message-pack.js";

export const RECORD_TYPE = { cellChanges: 16, runCreated: 17, runDelta: 18, runEnded: 19, refusal: 20 } as const;
export type RecordType = (typeof RECORD_TYPE)[keyof typeof RECORD_TYPE];

/** The producer's message that a record commits; null for the service's own doing. */
export interface Origin {
  producer: string;
  sequence: number;
}

export interface EncodedRecord {
  type: RecordType;
  index: Uint8Array;
  body: Uint8Array;
}

/** What the index section tells, without the body. */
export type RecordIndex =
  | { type: typeof RECORD_TYPE.cellChanges; origin: Origin | null }
  | { type: typeof RECORD_TYPE.refusal; origin: Origin | null }
  | { type: typeof RECORD_TYPE.runCreated; origin: Origin | null; summary: RunSummary }
  | { type: typeof RECORD_TYPE.runEnded; origin: Origin | null; summary: RunSummary; frameIds: string[] }
  | {
      type: typeof RECORD_TYPE.runDelta;
      origin: Origin | null;
      runId: string;
      statusAfter: RunStatus;
      /** The id of the frame that the record begins; null when it begins none. */
      frameId: string | null;
    };

const ORIGIN_HEAD = bin.object({ nameBytes: bin.u8, sequenceLow: bin.u32, sequenceHigh: bin.u32 });
const ORIGIN_HEAD_BYTES = 9;

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
const SUMMARY_HEAD_BYTES = 16 + 16 + 1 + 4 * 17;

const DELTA = bin.object({ runId: bin.u8Array(16), statusAfter: bin.u8, change: bin.u8, frameId: bin.u8Array(16) });
const DELTA_BYTES = 34;

const NULL_LENGTH = 0xffff_ffff;
const HIGH = 0x1_0000_0000;

const textEncoder = new TextEncoder();
/** A byte order mark is a character of the text like any other; broken UTF-8 is a broken record. */
const textDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export class RecordDecodeError extends Error {
  override name = "RecordDecodeError";
}

/**
 * Encodes the changes of one record: cell changes together, or changes of one run. `run` is the run after them (any run change).
 */
export function encodeChanges(
  origin: Origin | null,
  changes: readonly Change[],
  run: RunState | undefined,
): EncodedRecord {
  const [first] = changes;
  if (first === undefined) throw new Error("a record without changes");
  const head = encodeOrigin(origin);
  switch (first.kind) {
    case "cell_put":
    case "component_put":
    case "component_deleted":
    case "program_put":
    case "program_deleted":
      return { type: RECORD_TYPE.cellChanges, index: head, body: encode({ changes }) };
    case "run_ended":
      return {
        type: RECORD_TYPE.runEnded,
        index: encodeSummary(
          head,
          summarizeRun(first.run),
          first.run.frames.map((frame) => frame.id),
        ),
        body: encode({ run: first.run }),
      };
    default: {
      if (run === undefined) throw new Error(`${first.kind} without its run`);
      if (first.kind === "run_created") {
        return {
          type: RECORD_TYPE.runCreated,
          index: encodeSummary(head, summarizeRun(run), []),
          body: encode({ changes }),
        };
      }
      return { type: RECORD_TYPE.runDelta, index: encodeDelta(head, first, run.status), body: encode({ changes }) };
    }
  }
}

export function encodeRefusal(origin: Origin, refusal: Refusal): EncodedRecord {
  return { type: RECORD_TYPE.refusal, index: encodeOrigin(origin), body: encode({ refusal }) };
}

/**
 * Changes of a record of any type but refusal.
 *
 * @throws {RecordDecodeError} The body is not one that `encodeChanges` makes.
 */
export function decodeChanges(type: number, body: Uint8Array): Change[] {
  switch (type) {
    case RECORD_TYPE.runEnded: {
      const run = decodeBody(body).run;
      if (!isPlainObject(run) || typeof run.id !== "string") throw new RecordDecodeError("a run's end without its run");
      return [{ kind: "run_ended", runId: run.id, run: run as unknown as RunState } satisfies RunEnded];
    }
    case RECORD_TYPE.cellChanges:
    case RECORD_TYPE.runCreated:
    case RECORD_TYPE.runDelta: {
      const { changes } = decodeBody(body);
      const kinds = KINDS_OF[type];
      if (!Array.isArray(changes) || changes.length === 0) throw new RecordDecodeError("a record without changes");
      for (const change of changes) {
        if (!isPlainObject(change) || !kinds.includes(String(change.kind))) {
          throw new RecordDecodeError(`a record of type ${type} with a change that is none of ${kinds.join(", ")}`);
        }
      }
      return changes as Change[];
    }
    default:
      throw new RecordDecodeError(`record type ${type} holds no changes`);
  }
}

/** @throws {RecordDecodeError} The body is not one that `encodeRefusal` makes. */
export function decodeRefusal(body: Uint8Array): Refusal {
  const { refusal } = decodeBody(body);
  if (!isPlainObject(refusal) || typeof refusal.code !== "string")
    throw new RecordDecodeError("a refusal without code");
  return refusal as unknown as Refusal;
}

function decodeBody(body: Uint8Array): Record<string, unknown> {
  let value: unknown;
  try {
    value = decodeMessagePack(body);
  } catch (error) {
    throw new RecordDecodeError(`the body is not MessagePack: ${String(error)}`);
  }
  if (!isPlainObject(value)) throw new RecordDecodeError("the body is not a map");
  return value;
}

/** True for the record types of this file; others are the log's own, or of a newer version. */
export function isChangeRecordType(type: number): type is RecordType {
  return type >= RECORD_TYPE.cellChanges && type <= RECORD_TYPE.refusal;
}

/** @throws {RecordDecodeError} The bytes are not, to the last one, an index section of this type. */
export function decodeIndex(type: RecordType, index: Uint8Array): RecordIndex {
  const reader = new IndexReader(index);
  const origin = reader.origin();
  const decoded = decodeRest(type, origin, reader);
  reader.end();
  return decoded;
}

function decodeRest(type: RecordType, origin: Origin | null, reader: IndexReader): RecordIndex {
  switch (type) {
    case RECORD_TYPE.cellChanges:
    case RECORD_TYPE.refusal:
      return { type, origin };
    case RECORD_TYPE.runCreated:
      return { type, origin, summary: reader.summary().summary };
    case RECORD_TYPE.runEnded:
      return { type, origin, ...reader.summary() };
    case RECORD_TYPE.runDelta:
      return { type, origin, ...reader.delta() };
  }
}

function encodeOrigin(origin: Origin | null): Uint8Array {
  const name = textEncoder.encode(origin?.producer ?? "");
  const bytes = new Uint8Array(ORIGIN_HEAD_BYTES + name.length);
  const sequence = origin?.sequence ?? 0;
  ORIGIN_HEAD.write(new bin.BufferWriter(bytes.buffer, { endianness: "little" }), {
    nameBytes: name.length,
    sequenceLow: sequence % HIGH,
    sequenceHigh: Math.floor(sequence / HIGH),
  });
  bytes.set(name, ORIGIN_HEAD_BYTES);
  return bytes;
}

function encodeSummary(head: Uint8Array, summary: RunSummary, frameIds: readonly string[]): Uint8Array {
  const texts = [
    summary.programName,
    summary.serialNumber,
    summary.errorMessage,
    summary.metadata === null ? null : JSON.stringify(summary.metadata),
  ].map((text) => (text === null ? null : textEncoder.encode(text)));
  const [programName, serialNumber, errorMessage, metadata] = texts;
  const textBytes = texts.reduce((sum, text) => sum + (text?.length ?? 0), 0);
  const bytes = new Uint8Array(head.length + SUMMARY_HEAD_BYTES + textBytes + 16 * frameIds.length);
  bytes.set(head);
  const runId = new Uint8Array(16);
  writeUuid(summary.id, runId, 0);
  const programId = new Uint8Array(16);
  writeUuid(summary.programId, programId, 0);
  const writer = new bin.BufferWriter(bytes.buffer, { endianness: "little", byteOffset: head.length });
  SUMMARY_HEAD.write(writer, {
    runId,
    programId,
    status: RUN_STATUSES.indexOf(summary.status),
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
  return bytes;
}

const DELTA_KINDS = [
  "run_started",
  "step_started",
  "step_finished",
  "frame_begun",
  "frame_lines_stored",
  "frame_ended",
  "series_appended",
  "check_added",
  "defect_added",
  "job_started",
  "job_finished",
  "file_stored",
  "event_added",
  "run_finalizing",
] as const satisfies readonly Exclude<RunChange["kind"], "run_created">[];

const KINDS_OF: Record<16 | 17 | 18, readonly string[]> = {
  [RECORD_TYPE.cellChanges]: [
    "cell_put",
    "component_put",
    "component_deleted",
    "program_put",
    "program_deleted",
  ] satisfies CellChange["kind"][],
  [RECORD_TYPE.runCreated]: ["run_created"],
  [RECORD_TYPE.runDelta]: DELTA_KINDS,
};

function encodeDelta(
  head: Uint8Array,
  change: Exclude<RunChange, { kind: "run_created" }>,
  statusAfter: RunStatus,
): Uint8Array {
  const bytes = new Uint8Array(head.length + DELTA_BYTES);
  bytes.set(head);
  const runId = new Uint8Array(16);
  writeUuid(change.runId, runId, 0);
  const frameId = new Uint8Array(16);
  if (change.kind === "frame_begun") writeUuid(change.frame.id, frameId, 0);
  DELTA.write(new bin.BufferWriter(bytes.buffer, { endianness: "little", byteOffset: head.length }), {
    runId,
    statusAfter: RUN_STATUSES.indexOf(statusAfter),
    change: DELTA_KINDS.indexOf(change.kind),
    frameId,
  });
  return bytes;
}

class IndexReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  origin(): Origin | null {
    const head = ORIGIN_HEAD.read(this.#reader(ORIGIN_HEAD_BYTES));
    const producer = this.#text(head.nameBytes);
    return head.nameBytes === 0 ? null : { producer, sequence: head.sequenceHigh * HIGH + head.sequenceLow };
  }

  delta(): { runId: string; statusAfter: RunStatus; frameId: string | null } {
    const delta = DELTA.read(this.#reader(DELTA_BYTES));
    if (DELTA_KINDS[delta.change] === undefined) throw new RecordDecodeError(`change code ${delta.change}`);
    const begins = delta.frameId.some((byte) => byte !== 0);
    return {
      runId: readUuid(delta.runId),
      statusAfter: statusOf(delta.statusAfter),
      frameId: begins ? readUuid(delta.frameId) : null,
    };
  }

  summary(): { summary: RunSummary; frameIds: string[] } {
    const head = SUMMARY_HEAD.read(this.#reader(SUMMARY_HEAD_BYTES));
    const programName = this.#text(head.programNameBytes);
    const serialNumber = this.#nullableText(head.serialNumberBytes);
    const errorMessage = this.#nullableText(head.errorMessageBytes);
    const metadata = this.#nullableText(head.metadataBytes);
    const startedAtUs = head.startedAtHigh * HIGH + head.startedAtLow;
    const completedAtUs = head.completedAtHigh * HIGH + head.completedAtLow;
    const frameIds: string[] = [];
    for (let i = 0; i < head.frameCount; i++) frameIds.push(readUuid(this.#take(16)));
    return {
      summary: {
        id: readUuid(head.runId),
        programId: readUuid(head.programId),
        programName,
        status: statusOf(head.status),
        serialNumber,
        revision: head.revision,
        metadata: metadata === null ? null : parseMetadata(metadata),
        createdAtUs: head.createdAtHigh * HIGH + head.createdAtLow,
        updatedAtUs: head.updatedAtHigh * HIGH + head.updatedAtLow,
        startedAtUs: startedAtUs === 0 ? null : startedAtUs,
        completedAtUs: completedAtUs === 0 ? null : completedAtUs,
        errorMessage,
        progress: {
          totalSteps: head.totalSteps,
          completedSteps: head.completedSteps,
          currentStep: head.currentStep === 0 ? null : head.currentStep,
        },
      },
      frameIds,
    };
  }

  #take(length: number): Uint8Array {
    const slice = this.#bytes.subarray(this.#at, this.#at + length);
    if (slice.length !== length) throw new RecordDecodeError(`index section ends at byte ${this.#bytes.length}`);
    this.#at += length;
    return slice;
  }

  #reader(length: number) {
    const slice = this.#take(length);
    return new bin.BufferReader(slice.buffer as ArrayBuffer, { endianness: "little", byteOffset: slice.byteOffset });
  }

  end(): void {
    const left = this.#bytes.length - this.#at;
    if (left !== 0) throw new RecordDecodeError(`${left} bytes behind the index section`);
  }

  #text(length: number): string {
    const bytes = this.#take(length);
    try {
      return textDecoder.decode(bytes);
    } catch {
      throw new RecordDecodeError(`text that is not UTF-8 before byte ${this.#at}`);
    }
  }

  #nullableText(length: number): string | null {
    return length === NULL_LENGTH ? null : this.#text(length);
  }
}

function parseMetadata(text: string): JsonObject {
  try {
    return JSON.parse(text) as JsonObject;
  } catch {
    throw new RecordDecodeError("metadata that is not JSON");
  }
}

function statusOf(code: number): RunStatus {
  const status = RUN_STATUSES[code];
  if (status === undefined) throw new RecordDecodeError(`run status code ${code}`);
  return status;
}
