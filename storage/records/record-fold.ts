import type { CellChange } from "../../core/link/change.js";
import type { RunStatus } from "../../core/run/run-state.js";
import type { Resend } from "../../core/webhook/resend.js";
import type { LogRecord, RecordLocation } from "../log/committed-batch.js";
import { decodeChanges } from "./change-record.js";
import type { IndexedEvents } from "./event-index.js";
import { IndexReader } from "./index-reader.js";
import type { IndexedRun } from "./indexed-run.js";
import { decodePlantMessage, type PlantMessage } from "./plant-message.js";
import { type CapturesIndex, isKnownRecordType, type Origin, RECORD_TYPE } from "./record-index.js";
import { decodeResend } from "./resend-record.js";
import { decodeWebhookIndex, type WebhookIndex } from "./webhook-record.js";

/** What the index section of a run delta says. */
export interface IndexedDelta {
  runId: string;
  statusAfter: RunStatus;
  /** The id of the frame that the record begins; null when it begins none. */
  frameId: string | null;
  /** The event that the record emits; absent when it emits none. */
  events?: IndexedEvents;
}

/** What the index section of a run's end says. Nothing of it is kept by reference: its bytes are those of the batch. */
export interface IndexedEnd {
  run: IndexedRun;
  captures: CapturesIndex;
  /** All events of the run; absent when none was emitted. */
  events?: IndexedEvents;
}

/** A state that is folded from the log: what each kind of record does to it. */
export interface FoldedState {
  /** Any record of a producer's message, before what else it says. */
  message(origin: Origin, record: LogRecord): void;
  cellChange(change: CellChange, timeUs: number): void;
  runCreated(run: IndexedRun, record: LogRecord, origin: Origin | null): void;
  runDelta(delta: IndexedDelta, record: LogRecord, origin: Origin | null): void;
  runEnded(end: IndexedEnd, record: LogRecord, location: RecordLocation): void;
  webhook(shown: WebhookIndex, record: LogRecord): void;
  /** @param index the index section without the origin: webhook-record.ts */
  delivery(index: Uint8Array, location: RecordLocation): void;
  resend(resend: Resend, record: LogRecord): void;
  /** The records that follow are those of a cell's message. Only the log of a hub has this. */
  plantMessage?(message: PlantMessage, record: LogRecord): void;
}

/**
 * Folds a record into a state. It decodes no more than a state needs: no text and no id of a run, and only the bodies
 * of cell changes. The log's own records say nothing here.
 *
 * @throws RecordDecodeError
 */
export function foldRecord(record: LogRecord, location: RecordLocation, state: FoldedState): void {
  const { type } = record;
  if (!isKnownRecordType(type)) return;
  const reader = new IndexReader(record.index);
  const origin = reader.origin();
  if (origin !== null) state.message(origin, record);
  switch (type) {
    case RECORD_TYPE.refusal:
      reader.end();
      return;
    case RECORD_TYPE.cellChanges:
      reader.end();
      for (const change of decodeChanges(type, record.body)) state.cellChange(change as CellChange, record.timeUs);
      return;
    case RECORD_TYPE.runCreated: {
      const run = reader.run();
      reader.end();
      state.runCreated(run, record, origin);
      return;
    }
    case RECORD_TYPE.runDelta: {
      const delta = { ...reader.delta(), ...reader.events() };
      reader.end();
      state.runDelta(delta, record, origin);
      return;
    }
    case RECORD_TYPE.runEnded:
      state.runEnded(readEnd(reader), record, location);
      return;
    case RECORD_TYPE.webhook:
      state.webhook(decodeWebhookIndex(reader.rest()), record);
      return;
    case RECORD_TYPE.delivery:
      state.delivery(reader.rest(), location);
      return;
    case RECORD_TYPE.resend:
      state.resend(decodeResend(reader.rest()), record);
      return;
    case RECORD_TYPE.plantMessage:
      state.plantMessage?.(decodePlantMessage(reader.rest()), record);
      return;
  }
}

/** What the index section of a run's end says. @throws RecordDecodeError */
export function indexedEnd(index: Uint8Array): IndexedEnd {
  const reader = new IndexReader(index);
  reader.origin();
  return readEnd(reader);
}

function readEnd(reader: IndexReader): IndexedEnd {
  const end = { run: reader.run(), captures: reader.captures(), ...reader.events() };
  reader.end();
  return end;
}
