/**
 * The index section of a record: what view and recorder need of it, so that opening a store decodes no MessagePack. All integers are
 * little-endian; a 53-bit integer is two u32, low first; a time of 0 is null; a length of 0xffffffff is null.
 *
 * origin, of every record: the producer's message that it commits, empty and 0 for what the service does by itself.
 *
 * | offset | size | field |
 * |---|---|---|
 * | 0 | 1 | n, bytes of the producer's name (ASCII); bit 7: an instance stands behind the name |
 * | 1 | 8 | sequence number |
 * | 9 | n | the name |
 * | 9 + n | 16 | the instance, a UUID, where bit 7 says so |
 *
 * Behind it, of a run delta:
 *
 * | offset | size | field |
 * |---|---|---|
 * | 0 | 16 | run id |
 * | 16 | 1 | run status after the record, its place in RUN_STATUSES |
 * | 17 | 1 | code of the first change, its place in DELTA_KINDS |
 * | 18 | 16 | id of the frame that it begins, else zeros |
 *
 * Behind it, of run created and run ended, the run's summary:
 *
 * | offset | size | field |
 * |---|---|---|
 * | 0 | 16 | run id |
 * | 16 | 16 | program id |
 * | 32 | 1 | low four bits: status; high four: status of the quality report, its place in QUALITY_CODES, 0 in records of before |
 * | 33 | 4 | revision |
 * | 37 | 4 x 8 | created, updated, started, completed at |
 * | 69 | 3 x 4 | steps in all, steps completed, current step (0: null) |
 * | 81 | 4 x 4 | bytes of program name, serial number, error message, metadata as JSON text |
 * | 97 | 4 | f, count of frames |
 * | 101 | … | the four texts, then f frame ids of 16 bytes |
 *
 * And behind it, of run ended, what retention goes by. Records of before it had none of it end here.
 *
 * | offset | size | field |
 * |---|---|---|
 * | 0 | 8 | bytes of the run's capture file that the record names; bit 63: of its captures something is still to be made |
 * | 8 | 8 | when retention removed them |
 *
 * At the end of a run delta and of run ended stand the events that webhooks were told of, where there are any; and webhooks and deliveries
 * have index sections of their own: webhook-record.ts.
 */
import bin from "typed-binary";
import { readUuid, writeUuid } from "../../core/identifiers.js";
import type { JsonObject } from "../../core/json/json.js";
import type { RunChange } from "../../core/link/change.js";
import { REPORT_STATUSES, type ReportStatus } from "../../core/run/quality.js";
import { RUN_STATUSES, type RunStatus, type RunSummary } from "../../core/run/run-state.js";
import type { Delivery } from "../../core/webhook/delivery.js";
import type { EmittedEvent } from "../../core/webhook/emitted-event.js";
import { RecentUuids } from "../columns/recent-uuids.js";
import { SHORT_TEXT_BYTES, ShortTexts } from "../columns/short-texts.js";
import { RecordDecodeError } from "../log/record-decode-error.js";
import {
  decodeDelivery,
  decodeWebhookIndex,
  encodeEvents,
  IndexedEvents,
  WEBHOOK_RECORD_TYPE,
  type WebhookIndex,
} from "./webhook-record.js";

export { RecordDecodeError } from "../log/record-decode-error.js";

export const RECORD_TYPE = {
  cellChanges: 16,
  runCreated: 17,
  runDelta: 18,
  runEnded: 19,
  refusal: 20,
  ...WEBHOOK_RECORD_TYPE,
} as const;
export type RecordType = (typeof RECORD_TYPE)[keyof typeof RECORD_TYPE];

/** The producer's message that a record commits; null for the service's own doing. */
export interface Origin {
  producer: string;
  sequence: number;
  /** The queue that it came from (cell-link.md, Session), a canonical UUID; absent where the producer named none. */
  instance?: string;
}

/** What an ended run keeps of captured bytes. */
export interface CapturesIndex {
  /** Bytes of the run's capture file; null in a record of before retention, which does not say. */
  bytes: number | null;
  /** When retention removed them; null while they are there. With it the record is the tombstone of the file. */
  removedAtUs: number | null;
  /** Something is still to be made of them: the run has another record once it is. */
  isOpen: boolean;
}

/** A summary as it is stored: records of before do not say what the quality report says. */
export type StoredSummary = Omit<RunSummary, "qualityStatus"> & { qualityStatus: ReportStatus | null | undefined };

/** What the index section tells, without the body. */
export type RecordIndex =
  | { type: typeof RECORD_TYPE.cellChanges; origin: Origin | null }
  | { type: typeof RECORD_TYPE.refusal; origin: Origin | null }
  | { type: typeof RECORD_TYPE.runCreated; origin: Origin | null; summary: StoredSummary }
  | {
      type: typeof RECORD_TYPE.runEnded;
      origin: Origin | null;
      summary: StoredSummary;
      frameIds: string[];
      captures: CapturesIndex;
      /** All events of the run; absent when webhooks were told of none. */
      events?: IndexedEvents;
    }
  | {
      type: typeof RECORD_TYPE.runDelta;
      origin: Origin | null;
      runId: string;
      statusAfter: RunStatus;
      /** The id of the frame that the record begins; null when it begins none. */
      frameId: string | null;
      /** The event that the record emits; absent when it emits none. */
      events?: IndexedEvents;
    }
  | { type: typeof RECORD_TYPE.webhook; origin: Origin | null; shown: WebhookIndex }
  | { type: typeof RECORD_TYPE.delivery; origin: Origin | null; delivery: Delivery };

const ORIGIN_HEAD_BYTES = 9;
/** In the byte that holds the length of the producer's name. */
const INSTANCE_BIT = 0x80;
const UUID_BYTES = 16;

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

const CAPTURES = bin.object({
  bytesLow: bin.u32,
  bytesHigh: bin.u32,
  removedAtLow: bin.u32,
  removedAtHigh: bin.u32,
});
const CAPTURES_BYTES = 16;
/** Of the high half of the bytes, which are below 2^53. */
const OPEN_BIT = 0x8000_0000;

/** Undefined: not said. */
const QUALITY_CODES = [undefined, null, ...REPORT_STATUSES] as const;

const DELTA_BYTES = 34;

const NO_EVENTS = {};

const NULL_LENGTH = 0xffff_ffff;
const HIGH = 0x1_0000_0000;

const textEncoder = new TextEncoder();
/** A byte order mark is a character of the text like any other; broken UTF-8 is a broken record. */
const textDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** True for the record types of this release; others are the log's own, or of a newer version. */
export function isKnownRecordType(type: number): type is RecordType {
  return type >= RECORD_TYPE.cellChanges && type <= RECORD_TYPE.delivery;
}

/** True for the record types that hold changes or a refusal: all known ones but those of webhooks. */
export function isChangeRecordType(type: number): type is Exclude<RecordType, 21 | 22> {
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

/** True for a record of this type that is of the run, or the delivery, of this id: tells it from any other, and decodes nothing else. */
export function isRecordOf(
  { type, index }: { type: number; index: Uint8Array },
  wantedType: typeof RECORD_TYPE.runEnded | typeof RECORD_TYPE.delivery,
  id: string,
): boolean {
  return type === wantedType && readUuid(index, originBytes(index[0] as number)) === id;
}

/**
 * The summary of a run's end alone, of which its frames and events may be thousands: what a list takes of a record whose CRC was checked.
 * @throws {RecordDecodeError}
 */
export function decodeEndedSummary(index: Uint8Array): StoredSummary {
  const reader = new IndexReader(index);
  reader.origin();
  return reader.summary(false).summary;
}

/** What stands behind the origin in the index section of a delivery's record. */
export function deliveryPart(index: Uint8Array): Uint8Array {
  const reader = new IndexReader(index);
  reader.origin();
  return reader.rest();
}

/** The delivery that a delivery's record tells of. @throws {RecordDecodeError} */
export function decodeStoredDelivery(index: Uint8Array): Delivery {
  return decodeDelivery(deliveryPart(index));
}

function decodeRest(type: RecordType, origin: Origin | null, reader: IndexReader): RecordIndex {
  switch (type) {
    case RECORD_TYPE.cellChanges:
    case RECORD_TYPE.refusal:
      return { type, origin };
    case RECORD_TYPE.runCreated:
      return { type, origin, summary: reader.summary().summary };
    case RECORD_TYPE.runEnded:
      return { type, origin, ...reader.summary(), captures: reader.captures(), ...reader.events() };
    case RECORD_TYPE.runDelta:
      return { type, origin, ...reader.delta(), ...reader.events() };
    case RECORD_TYPE.webhook:
      return { type, origin, shown: decodeWebhookIndex(reader.rest()) };
    case RECORD_TYPE.delivery:
      return { type, origin, delivery: decodeDelivery(reader.rest()) };
  }
}

/**
 * Origins and deltas, which every message's record has, are written here by hand and copied out: by typed-binary they took 1.5 µs of the
 * 20 that a message costs. Golden bytes hold them to the tables above.
 */
const scratch = new Uint8Array(ORIGIN_HEAD_BYTES + INSTANCE_BIT + UUID_BYTES + DELTA_BYTES);
const scratchView = new DataView(scratch.buffer);

export function encodeOrigin(origin: Origin | null): Uint8Array {
  return scratch.slice(0, writeOrigin(origin));
}

/** Writes it at the scratch's begin; gives its length in bytes. */
function writeOrigin(origin: Origin | null): number {
  const name = origin?.producer ?? "";
  const sequence = origin?.sequence ?? 0;
  const instance = origin?.instance;
  if (name.length >= INSTANCE_BIT) throw new RangeError(`a producer's name of ${name.length} characters`);
  scratch[0] = name.length + (instance === undefined ? 0 : INSTANCE_BIT);
  scratchView.setUint32(1, sequence >>> 0, true);
  scratchView.setUint32(5, Math.floor(sequence / HIGH), true);
  for (let i = 0; i < name.length; i++) scratch[ORIGIN_HEAD_BYTES + i] = name.charCodeAt(i);
  if (instance !== undefined) writeUuid(instance, scratch, ORIGIN_HEAD_BYTES + name.length);
  return originBytes(scratch[0] as number);
}

/** Of the whole origin, by its first byte. */
function originBytes(first: number): number {
  return ORIGIN_HEAD_BYTES + (first & ~INSTANCE_BIT) + (first & INSTANCE_BIT ? UUID_BYTES : 0);
}

/** @param captures null for a run that has not ended */
export function encodeSummary(
  head: Uint8Array,
  summary: StoredSummary,
  frameIds: readonly string[],
  captures: (CapturesIndex & { bytes: number }) | null,
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

/** Kinds of the changes of a run delta, by their code. */
export const DELTA_KINDS = [
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
  "artefact_stored",
  "artefact_failed",
] as const satisfies readonly Exclude<RunChange["kind"], "run_created">[];

const FRAME_BEGUN = DELTA_KINDS.indexOf("frame_begun");

/** An index section of a run delta, origin and all; good until the next call of any of these. */
export function encodeDeltaShared(
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
  const delta = scratch.subarray(0, end);
  if (change.kind !== "run_started" || change.event === undefined) return delta;
  return Buffer.concat([delta, encodeEvents([change.event])]);
}

/** Of the records that follow each other many are of one producer and of few runs. */
const names = new ShortTexts("values");
const runIds = new RecentUuids();
const instances = new RecentUuids();

/** Reads by hand what the tables above describe: every record of a store passes here at open. */
class IndexReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  origin(): Origin | null {
    const at = this.#take(ORIGIN_HEAD_BYTES);
    const first = this.#bytes[at] as number;
    const nameBytes = first & ~INSTANCE_BIT;
    const sequence = this.#u53(at + 1);
    const nameAt = this.#take(nameBytes);
    const hasInstance = (first & INSTANCE_BIT) !== 0;
    const instanceAt = this.#take(hasInstance ? UUID_BYTES : 0);
    if (nameBytes === 0) return null;
    const producer = this.#name(nameAt, instanceAt);
    return hasInstance
      ? { producer, sequence, instance: instances.read(this.#bytes, instanceAt) }
      : { producer, sequence };
  }

  #name(start: number, end: number): string {
    const known = end - start <= SHORT_TEXT_BYTES ? names.read(this.#bytes, start, end) : undefined;
    return known ?? String.fromCharCode(...this.#bytes.subarray(start, end));
  }

  delta(): { runId: string; statusAfter: RunStatus; frameId: string | null } {
    const at = this.#take(DELTA_BYTES);
    const code = this.#bytes[at + 17] as number;
    if (DELTA_KINDS[code] === undefined) throw new RecordDecodeError(`change code ${code}`);
    return {
      runId: runIds.read(this.#bytes, at),
      statusAfter: statusOf(this.#bytes[at + 16] as number),
      frameId: code === FRAME_BEGUN ? readUuid(this.#bytes, at + 18) : null,
    };
  }

  summary(withFrames = true): { summary: StoredSummary; frameIds: string[] } {
    const at = this.#take(SUMMARY_HEAD_BYTES);
    const createdAtUs = this.#u53(at + 37);
    const updatedAtUs = this.#u53(at + 45);
    const startedAtUs = this.#u53(at + 53);
    const completedAtUs = this.#u53(at + 61);
    const currentStep = this.#u32(at + 77);
    const programName = this.#text(this.#u32(at + 81));
    const serialNumber = this.#nullableText(this.#u32(at + 85));
    const errorMessage = this.#nullableText(this.#u32(at + 89));
    const metadata = this.#nullableText(this.#u32(at + 93));
    const frameIds: string[] = [];
    const frames = withFrames ? this.#u32(at + 97) : 0;
    for (let count = frames; count > 0; count--) frameIds.push(readUuid(this.#bytes, this.#take(16)));
    return {
      summary: {
        id: readUuid(this.#bytes, at),
        programId: readUuid(this.#bytes, at + 16),
        programName,
        status: statusOf((this.#bytes[at + 32] as number) & 15),
        qualityStatus: qualityStatusOf((this.#bytes[at + 32] as number) >>> 4),
        serialNumber,
        revision: this.#u32(at + 33),
        metadata: metadata === null ? null : parseMetadata(metadata),
        createdAtUs,
        updatedAtUs,
        startedAtUs: startedAtUs === 0 ? null : startedAtUs,
        completedAtUs: completedAtUs === 0 ? null : completedAtUs,
        errorMessage,
        progress: {
          totalSteps: this.#u32(at + 69),
          completedSteps: this.#u32(at + 73),
          currentStep: currentStep === 0 ? null : currentStep,
        },
      },
      frameIds,
    };
  }

  captures(): CapturesIndex {
    if (this.#at === this.#bytes.length) return { bytes: null, removedAtUs: null, isOpen: false };
    const at = this.#take(CAPTURES_BYTES);
    const high = this.#u32(at + 4);
    const isOpen = high >= OPEN_BIT;
    const removedAtUs = this.#u53(at + 8);
    return {
      bytes: this.#u32(at) + (isOpen ? high - OPEN_BIT : high) * HIGH,
      removedAtUs: removedAtUs === 0 ? null : removedAtUs,
      isOpen,
    };
  }

  /** Where there are any, the last part. */
  events(): { events?: IndexedEvents } {
    return this.#at === this.#bytes.length ? NO_EVENTS : { events: new IndexedEvents(this.rest()) };
  }

  /** All that is left. */
  rest(): Uint8Array {
    return this.#bytes.subarray(this.#take(this.#bytes.length - this.#at));
  }

  end(): void {
    const left = this.#bytes.length - this.#at;
    if (left !== 0) throw new RecordDecodeError(`${left} bytes behind the index section`);
  }

  /** Where the next `length` bytes begin. */
  #take(length: number): number {
    const at = this.#at;
    if (length > this.#bytes.length - at) {
      throw new RecordDecodeError(`index section ends at byte ${this.#bytes.length}`);
    }
    this.#at = at + length;
    return at;
  }

  #u32(at: number): number {
    const bytes = this.#bytes as { [index: number]: number };
    return (
      ((bytes[at] as number) |
        ((bytes[at + 1] as number) << 8) |
        ((bytes[at + 2] as number) << 16) |
        ((bytes[at + 3] as number) << 24)) >>>
      0
    );
  }

  #u53(at: number): number {
    return this.#u32(at) + this.#u32(at + 4) * HIGH;
  }

  #text(length: number): string {
    const at = this.#take(length);
    try {
      return textDecoder.decode(this.#bytes.subarray(at, at + length));
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

function qualityStatusOf(code: number): StoredSummary["qualityStatus"] {
  if (code >= QUALITY_CODES.length) throw new RecordDecodeError(`code ${code} of a quality report's status`);
  return QUALITY_CODES[code];
}

function statusOf(code: number): RunStatus {
  const status = RUN_STATUSES[code];
  if (status === undefined) throw new RecordDecodeError(`run status code ${code}`);
  return status;
}
