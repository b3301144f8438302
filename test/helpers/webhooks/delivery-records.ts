import { setImmediate as eventLoopTurn } from "node:timers/promises";
import { endRun } from "../../../core/run/run-end.js";
import type { RunState } from "../../../core/run/run-state.js";
import type { Delivery } from "../../../core/webhook/delivery.js";
import { NO_SECRETS } from "../../../core/webhook/webhook.js";
import type { WebhookChange } from "../../../core/webhook/webhook-change.js";
import type { RecordLocation } from "../../../storage/log/committed-batch.js";
import { RECORD_HEADER_BYTES, recordLength, writeRecordHeader } from "../../../storage/log/record-format.js";
import { encodeChanges } from "../../../storage/records/change-record.js";
import { deliveryPart } from "../../../storage/records/record-index.js";
import { encodeWebhookChange } from "../../../storage/records/webhook-record.js";
import type { ViewDeliveries } from "../../../storage/view/deliveries/view-deliveries.js";
import { View } from "../../../storage/view/view.js";
import { RecorderState } from "../../../workers/recorder/recorder-state.js";
import { RUN_ID, stateWithRun } from "../link/cell-messages.js";
import { EVENT, WEBHOOK, WEBHOOK_ID } from "./webhook-fixtures.js";

export type Encoded = { type: number; index: Uint8Array; body: Uint8Array };

export function endedRun(emitted?: RunState["emitted"]): RunState {
  const run = stateWithRun("running").runs.get(RUN_ID) as RunState;
  const ended = endRun(run, { status: "completed", errorMessage: null, notes: [] }, EVENT.timeUs);
  return emitted === undefined ? ended : { ...ended, emitted };
}

/** The part of its record that stands behind the origin. */
export const stored = (delivery: Delivery): Uint8Array =>
  deliveryPart(encodeWebhookChange({ kind: "delivery_put", delivery, history: [], payload: null }).index);

export const recordOfEnd = (run: RunState): Encoded =>
  encodeChanges(null, [{ kind: "run_ended", runId: RUN_ID, run }], undefined);

/** Deliveries to a webhook, newest first. @param beforeUs only those created before this time; null means all */
export function deliveriesOf(view: ViewDeliveries, webhookId: string, beforeUs: number | null, limit: number) {
  // Without a filter there is one piece of work.
  const { done, value } = view.search(webhookId, { beforeUs: beforeUs ?? undefined }, limit).next();
  return done === true ? value : [];
}

/** A page as it is shown: each delivery with its payload. */
export async function listed(view: View, beforeUs: number | null, limit: number): Promise<[Delivery, string][]> {
  const toBytes = (delivery: Delivery, payload: string) => Buffer.from(JSON.stringify([delivery, payload]));
  const items = await view.listDeliveries(deliveriesOf(view.deliveries, WEBHOOK_ID, beforeUs, limit), toBytes);
  return items.map((item) => JSON.parse(Buffer.from(item).toString()));
}

/** A log of these records in memory, for the view and for reading back. */
export class RecordsInMemory {
  readonly view: View;
  readonly state = new RecorderState();
  readonly #records = new Map<number, Encoded>();
  #offset = 0;
  #sequence = 0;
  #openReads = 0;
  mostOpenReads = 0;
  /** Each read finds another record than the wanted one. */
  misplaces = false;

  constructor() {
    const read = async ({ offset }: RecordLocation, check?: (record: unknown, position: number) => void) => {
      this.mostOpenReads = Math.max(this.mostOpenReads, ++this.#openReads);
      await eventLoopTurn();
      this.#openReads--;
      const record = this.#records.get(offset);
      if (record === undefined) throw new Error(`no record at ${offset}`);
      if (this.misplaces)
        check?.(encodeWebhookChange({ kind: "webhook_put", webhook: WEBHOOK, secrets: NO_SECRETS }), 0);
      return record as Encoded & { flags: number; sequence: number; timeUs: number };
    };
    const readMany = (locations: readonly RecordLocation[], check?: () => void) =>
      Promise.all(locations.map((location) => read(location, check)));
    this.view = new View({ reader: { read, readMany, readSync: () => undefined } as never });
  }

  add(record: Encoded): void {
    this.view.fold.applyBatch(this.append(record));
  }

  /** The record's batch, of which the view does not know yet. */
  append(record: Encoded): Parameters<View["fold"]["applyBatch"]>[0] {
    const { type, index, body } = record;
    const length = recordLength(index.length, body.length);
    const bytes = new Uint8Array(length);
    bytes.set(index, RECORD_HEADER_BYTES);
    bytes.set(body, RECORD_HEADER_BYTES + index.length);
    const sequence = ++this.#sequence;
    const header = { type, flags: 0, sequence, timeUs: EVENT.timeUs + sequence, durableUpTo: 0 };
    const lengths = { indexLength: index.length, bodyLength: body.length };
    writeRecordHeader(bytes, new DataView(bytes.buffer), 0, { ...header, ...lengths }, 0, this.#offset);
    const offset = this.#offset;
    this.state.replay({ ...header, index, body }, { segmentBase: 1, offset, length });
    this.#records.set(offset, record);
    this.#offset += length;
    return { bytes, segmentBase: 1, offset, lastSequence: sequence };
  }

  put(change: WebhookChange): void {
    this.add(encodeWebhookChange(change));
  }
}
