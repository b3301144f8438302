/** What the index section of a record says, by the record's type. index-layout.ts has the bytes. */
import { readUuid } from "../../core/identifiers.js";
import type { RunStatus, RunSummary } from "../../core/run/run-state.js";
import type { Delivery } from "../../core/webhook/delivery.js";
import type { Resend } from "../../core/webhook/resend.js";
import type { IndexedEvents } from "./event-index.js";
import { type CapturesIndex, type Origin, originBytes } from "./index-layout.js";
import { IndexReader } from "./index-reader.js";
import { decodePlantMessage, PLANT_RECORD_TYPE, type PlantMessage } from "./plant-message.js";
import { decodeResend } from "./resend-record.js";
import { decodeDelivery, decodeWebhookIndex, WEBHOOK_RECORD_TYPE, type WebhookIndex } from "./webhook-record.js";

export type { CapturesIndex, Origin } from "./index-layout.js";
export { RecordDecodeError } from "./record-decode-error.js";

export const RECORD_TYPE = {
  cellChanges: 16,
  runCreated: 17,
  runDelta: 18,
  runEnded: 19,
  refusal: 20,
  ...WEBHOOK_RECORD_TYPE,
  ...PLANT_RECORD_TYPE,
} as const;
export type RecordType = (typeof RECORD_TYPE)[keyof typeof RECORD_TYPE];

/** What an index section says. */
export type RecordIndex =
  | { type: typeof RECORD_TYPE.cellChanges; origin: Origin | null }
  | { type: typeof RECORD_TYPE.refusal; origin: Origin | null }
  | { type: typeof RECORD_TYPE.runCreated; origin: Origin | null; summary: RunSummary }
  | {
      type: typeof RECORD_TYPE.runEnded;
      origin: Origin | null;
      summary: RunSummary;
      frameIds: string[];
      captures: CapturesIndex;
      /** All events of the run; absent when none was emitted. */
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
  | { type: typeof RECORD_TYPE.delivery; origin: Origin | null; delivery: Delivery }
  | { type: typeof RECORD_TYPE.resend; origin: Origin | null; resend: Resend }
  | { type: typeof RECORD_TYPE.plantMessage; origin: Origin | null; message: PlantMessage };

/** The run that the index section names; null for a record of no run. */
export function runOfIndex(index: RecordIndex): string | null {
  switch (index.type) {
    case RECORD_TYPE.runCreated:
    case RECORD_TYPE.runEnded:
      return index.summary.id;
    case RECORD_TYPE.runDelta:
      return index.runId;
    case RECORD_TYPE.delivery:
      return index.delivery.runId;
    default:
      return null;
  }
}

/** True for the record types of this release. Other types are the log's own, or of a newer release. */
export function isKnownRecordType(type: number): type is RecordType {
  return type >= RECORD_TYPE.cellChanges && type <= RECORD_TYPE.plantMessage;
}

/** True for the record types that hold changes or a refusal: all known ones except those of webhooks and of the plant. */
export function isChangeRecordType(type: number): type is Exclude<RecordType, 21 | 22 | 23 | 24> {
  return type >= RECORD_TYPE.cellChanges && type <= RECORD_TYPE.refusal;
}

/** @throws {RecordDecodeError} when the bytes are not exactly an index section of this type */
export function decodeIndex(type: RecordType, index: Uint8Array): RecordIndex {
  const reader = new IndexReader(index);
  const origin = reader.origin();
  const decoded = decodeRest(type, origin, reader);
  reader.end();
  return decoded;
}

/** True when the record has the wanted type and belongs to the run or delivery with this id. It decodes nothing else. */
export function isRecordOf(
  { type, index }: { type: number; index: Uint8Array },
  wantedType: typeof RECORD_TYPE.runEnded | typeof RECORD_TYPE.delivery,
  id: string,
): boolean {
  return type === wantedType && readUuid(index, originBytes(index[0] as number)) === id;
}

/**
 * Only the summary of a run's end, for lists: there may be thousands of frames and events after it. The record's CRC must have been checked.
 *
 * @throws {RecordDecodeError}
 */
export function decodeEndedSummary(index: Uint8Array): RunSummary {
  const reader = new IndexReader(index);
  reader.origin();
  return reader.run().summary();
}

/** What follows the origin in the index section of a delivery's record. */
export function deliveryPart(index: Uint8Array): Uint8Array {
  const reader = new IndexReader(index);
  reader.origin();
  return reader.rest();
}

/** The delivery in a delivery's record. @throws {RecordDecodeError} */
export function decodeStoredDelivery(index: Uint8Array): Delivery {
  return decodeDelivery(deliveryPart(index));
}

function decodeRest(type: RecordType, origin: Origin | null, reader: IndexReader): RecordIndex {
  switch (type) {
    case RECORD_TYPE.cellChanges:
    case RECORD_TYPE.refusal:
      return { type, origin };
    case RECORD_TYPE.runCreated:
      return { type, origin, summary: reader.run().summary() };
    case RECORD_TYPE.runEnded: {
      const run = reader.run();
      const said = { summary: run.summary(), frameIds: run.frameIds() };
      return { type, origin, ...said, captures: reader.captures(), ...reader.events() };
    }
    case RECORD_TYPE.runDelta:
      return { type, origin, ...reader.delta(), ...reader.events() };
    case RECORD_TYPE.webhook:
      return { type, origin, shown: decodeWebhookIndex(reader.rest()) };
    case RECORD_TYPE.delivery:
      return { type, origin, delivery: decodeDelivery(reader.rest()) };
    case RECORD_TYPE.resend:
      return { type, origin, resend: decodeResend(reader.rest()) };
    case RECORD_TYPE.plantMessage:
      return { type, origin, message: decodePlantMessage(reader.rest()) };
  }
}
