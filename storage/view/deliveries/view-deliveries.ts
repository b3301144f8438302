/**
 * The deliveries of the view, 76 to 91 bytes each, whatever their payload and attempts. Everything else that clients see of a delivery is in its
 * latest record. Before its first attempt it is in the record of the run whose event it delivers.
 */

import { DELIVERY_STATUSES, type DeliveryStatus } from "../../../core/webhook/delivery.js";
import { EVENT_NAMES, type EventName } from "../../../core/webhook/webhook.js";
import type { WebhookFigures } from "../../../core/webhook/webhook-response.js";
import { RecordLocations } from "../../columns/record-locations.js";
import { TypedColumn } from "../../columns/typed-column.js";
import { UuidTable } from "../../columns/uuid-table.js";
import type { RecordLocation } from "../../log/committed-batch.js";
import type { IndexedEvents } from "../../records/event-index.js";
import { deliveryPlaces } from "../../records/webhook-record.js";
import { DeliveryList } from "./delivery-list.js";

/** Which deliveries of a webhook; what is left out holds for every one. */
export interface DeliveryFilter {
  /** Only those created before this time. */
  readonly beforeUs?: number | undefined;
  readonly status?: DeliveryStatus | undefined;
  readonly eventName?: EventName | undefined;
}

/** What is known of a delivery without reading it. */
export interface DeliveryRow {
  readonly id: string;
  readonly webhookId: string;
  readonly status: DeliveryStatus;
  readonly runId: string | null;
  readonly createdAtUs: number;
  /** Where its latest record lies; undefined before its first attempt. */
  readonly location: RecordLocation | undefined;
}

const PENDING = DELIVERY_STATUSES.indexOf("pending");
/** Stands for a run's entry when there is no run. */
const NO_RUN = 0xffff_ffff;
const NO_FIGURES: WebhookFigures = {
  ...{ delivered: 0, failed: 0, lastSuccessAtUs: null, lastFailureAtUs: null, lastError: null },
};
/** How many rows are looked at in one go, for those that match a filter: some tenths of a millisecond. */
const SEARCHED_ROWS = 8_192;
/** The same, where texts of ids are made. */
const CHOSEN_ROWS = 1_024;

export class ViewDeliveries {
  /** Delivery ids. The entry of an id is its row in the columns. */
  readonly #ids = new UuidTable();
  readonly #statuses = new TypedColumn(Uint8Array);
  readonly #eventNames = new TypedColumn(Uint8Array);
  readonly #createdAtUs = new TypedColumn(Float64Array);
  /** By row: the entry in `#runs`, or NO_RUN. */
  readonly #runOfRow = new TypedColumn(Uint32Array);
  /** By row: the entry in `#webhooks`. */
  readonly #webhookOfRow = new TypedColumn(Uint32Array);
  readonly #locations = new RecordLocations();
  /** Runs with deliveries. The value counts the changes of a run's deliveries. */
  readonly #runs = new UuidTable();
  readonly #webhooks = new UuidTable();
  /**
   * By the run's entry: rows that came with a record of their own, and not with an event of the run. Those of events that a start reads later leave
   * again, so that only those remain that resends have caught up on.
   */
  readonly #late = new Map<number, number[]>();
  /** Rows of deliveries in a pause between two attempts. A pause from before the store was opened has ended with its process. */
  readonly #paused = new Set<number>();
  #hasPauses = true;
  #version = 0;
  /** The deliveries of each webhook, by entry in `#webhooks`. */
  readonly #lists: DeliveryList[] = [];

  /** Deliveries begin with these events of a run. Known deliveries stay as they are. */
  begin(runId: string, events: IndexedEvents): void {
    if (events.deliveryCount === 0) return;
    this.#version++;
    const run = this.#runs.enter(runId);
    this.#changed(run);
    events.forEachDelivery((bytes, idAt, webhookIdAt, timeUs, eventName) => {
      const known = this.#ids.size;
      const row = this.#ids.enterBytes(bytes, idAt);
      if (row < known) {
        this.#isOfEvent(run, row);
        return;
      }
      this.#added(this.#webhooks.enterBytes(bytes, webhookIdAt), run, timeUs, eventName);
    });
  }

  /** Takes a record of a delivery. @param bytes its index section without the origin @throws RecordDecodeError */
  put(bytes: Uint8Array, location: RecordLocation): void {
    const places = deliveryPlaces(bytes);
    const { idAt, webhookIdAt, runIdAt, status, createdAtUs, isPaused } = places;
    this.#version++;
    const run = runIdAt < 0 ? NO_RUN : this.#runs.enterBytes(bytes, runIdAt);
    const known = this.#ids.size;
    const row = this.#ids.enterBytes(bytes, idAt);
    if (row === known) {
      this.#added(this.#webhooks.enterBytes(bytes, webhookIdAt), run, createdAtUs, places.eventName);
      if (run !== NO_RUN) this.#late.set(run, [...(this.#late.get(run) ?? []), row]);
    }
    const before = this.#statuses.get(row);
    this.#statuses.set(row, status);
    this.#lists[this.#webhookOfRow.get(row)]?.changed(row, before, places, bytes);
    this.#locations.set(row, location);
    if (run !== NO_RUN) this.#changed(run);
    if (isPaused && this.#hasPauses) this.#paused.add(row);
    else this.#paused.delete(row);
  }

  /** Ends all pauses: the process that waited for the next attempts has ended, and the remaining attempts begin again. */
  endPauses(): void {
    this.#version++;
    this.#paused.clear();
  }

  /** Ends all pauses, and ignores those of later records: nobody waits for attempts any more. */
  endPausesForGood(): void {
    this.#hasPauses = false;
    this.endPauses();
  }

  /** True in the pause before the next attempt. */
  isPaused(id: string): boolean {
    return this.#paused.size > 0 && this.#paused.has(this.#ids.entryOf(id));
  }

  /** Undefined for an unknown delivery. */
  row(id: string): DeliveryRow | undefined {
    const row = this.#ids.entryOf(id);
    return row < 0 ? undefined : this.#row(row);
  }

  /** Changes whenever any delivery has changed, or is shown in another way. */
  get version(): number {
    return this.#version;
  }

  /** How often the run's deliveries have changed since the store was opened. With the run's updated_at it identifies the bytes of an answer. */
  changesOf(runId: string): number {
    return this.#runs.get(runId) ?? 0;
  }

  /**
   * Deliveries to a webhook that match the filter, newest first. It looks at a bounded number of them, then yields, so that its caller can let others
   * work.
   */
  *search(webhookId: string, filter: DeliveryFilter, limit: number): Generator<undefined, DeliveryRow[]> {
    const found: DeliveryRow[] = [];
    const list = this.#lists[this.#webhooks.entryOf(webhookId)];
    const { beforeUs, status, eventName } = filter;
    const wantedStatus = status && DELIVERY_STATUSES.indexOf(status);
    const wantedName = eventName && EVENT_NAMES.indexOf(eventName);
    let looked = 0;
    for (let at = list?.endBefore(beforeUs) ?? 0; list !== undefined && at > 0 && found.length < limit; at--) {
      const row = list.row(at - 1);
      const isStatus = wantedStatus === undefined || this.#statuses.get(row) === wantedStatus;
      if (isStatus && (wantedName === undefined || this.#eventNames.get(row) === wantedName))
        found.push(this.#row(row));
      if (++looked % SEARCHED_ROWS !== 0) continue;
      yield undefined;
      // Meanwhile older ones may have come in between.
      at = list.endBefore(this.#createdAtUs.get(row)) + 1;
    }
    return found;
  }

  /**
   * Deliveries to a webhook that were created from one time on and before another, oldest first, a bounded number at a time. It looks at all of them
   * with `isWanted` of status and event.
   */
  *between(
    webhookId: string,
    sinceUs: number,
    untilUs: number,
    isWanted: (status: DeliveryStatus, eventName: EventName) => boolean,
  ): Generator<Pick<DeliveryRow, "id" | "createdAtUs">[], void> {
    const list = this.#lists[this.#webhooks.entryOf(webhookId)];
    if (list === undefined) return;
    let found: Pick<DeliveryRow, "id" | "createdAtUs">[] = [];
    let [looked, end] = [0, list.endBefore(untilUs)];
    for (let at = list.endBefore(sinceUs); at < end; at++) {
      const row = list.row(at);
      const [status, eventName] = [
        DELIVERY_STATUSES[this.#statuses.get(row)]!,
        EVENT_NAMES[this.#eventNames.get(row)]!,
      ];
      if (isWanted(status, eventName)) {
        found.push({ id: this.#ids.idAt(row), createdAtUs: this.#createdAtUs.get(row) });
      }
      if (++looked % CHOSEN_ROWS !== 0) continue;
      yield found;
      found = [];
      at = list.endBefore(this.#createdAtUs.get(row));
      end = list.endBefore(untilUs);
    }
    yield found;
  }

  /**
   * Which events of which runs a webhook has deliveries of, whatever came of them. It looks at a bounded number of deliveries between two yields. The
   * answer is the last value.
   */
  *eventsOf(webhookId: string): Generator<(runId: string, eventName: EventName) => boolean, void> {
    const list = this.#lists[this.#webhooks.entryOf(webhookId)];
    const events = new Uint8Array(this.#runs.size);
    const has = (runId: string, eventName: EventName): boolean => {
      const of = events[this.#runs.entryOf(runId)] ?? 0;
      return (of & (1 << EVENT_NAMES.indexOf(eventName))) !== 0;
    };
    for (let at = 0; list !== undefined && at < list.length; at++) {
      const row = list.row(at);
      const run = this.#runOfRow.get(row);
      if (run < events.length) events[run] = (events[run] as number) | (1 << this.#eventNames.get(row));
      if ((at + 1) % SEARCHED_ROWS === 0) yield has;
    }
    yield has;
  }

  /** How a webhook's deliveries went. @param nowUs ends the 24 hours that are counted */
  figuresOf(webhookId: string, nowUs: number): WebhookFigures {
    return this.#lists[this.#webhooks.entryOf(webhookId)]?.figures(nowUs) ?? NO_FIGURES;
  }

  /** Ids of a run's deliveries that did not begin with an event in its record, in the order they began. */
  lateOf(runId: string): string[] {
    return (this.#late.get(this.#runs.entryOf(runId)) ?? []).map((row) => this.#ids.idAt(row));
  }

  #isOfEvent(run: number, row: number): void {
    const late = this.#late.get(run);
    if (late === undefined) return;
    const rest = late.filter((one) => one !== row);
    if (rest.length > 0) this.#late.set(run, rest);
    else this.#late.delete(run);
  }

  #changed(run: number): void {
    this.#runs.setValueAt(run, this.#runs.valueAt(run) + 1);
  }

  /** Fills the columns for the id that was entered last. @param webhook entry in `#webhooks` @param run entry in `#runs`, or NO_RUN */
  #added(webhook: number, run: number, createdAtUs: number, eventName: number): void {
    const row = this.#statuses.length;
    this.#statuses.push(PENDING);
    this.#eventNames.push(eventName);
    this.#createdAtUs.push(createdAtUs);
    this.#runOfRow.push(run);
    this.#locations.push();
    this.#webhookOfRow.push(webhook);
    this.#lists[webhook] ??= new DeliveryList(this.#createdAtUs, this.#statuses);
    this.#lists[webhook].add(row);
  }

  #row(row: number): DeliveryRow {
    const run = this.#runOfRow.get(row);
    return {
      id: this.#ids.idAt(row),
      webhookId: this.#webhooks.idAt(this.#webhookOfRow.get(row)),
      status: DELIVERY_STATUSES[this.#statuses.get(row)]!,
      runId: run === NO_RUN ? null : this.#runs.idAt(run),
      createdAtUs: this.#createdAtUs.get(row),
      location: this.#locations.get(row),
    };
  }
}
