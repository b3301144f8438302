/**
 * The deliveries of the view, 75 to 90 bytes each, whatever their payload and attempts. Everything else that clients see of a delivery is in its
 * latest record. Before its first attempt it is in the record of the run whose event it delivers.
 */

import { lowerBound } from "../../core/lower-bound.js";
import { DELIVERY_STATUSES, type DeliveryStatus } from "../../core/webhook/delivery.js";
import { RecordLocations } from "../columns/record-locations.js";
import { TypedColumn } from "../columns/typed-column.js";
import { UuidTable } from "../columns/uuid-table.js";
import type { RecordLocation } from "../log/committed-batch.js";
import type { IndexedEvents } from "../records/event-index.js";
import { deliveryPlaces } from "../records/webhook-record.js";

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
const LIST_CHUNK = 512;

/** The deliveries to one webhook: rows in order of creation. */
interface DeliveryList {
  rows: TypedColumn<Uint32Array>;
  /** True when a row came after a younger one. That happens if older records were damaged, or the clock was reset. */
  isUnsorted: boolean;
}

export class ViewDeliveries {
  /** Delivery ids. The entry of an id is its row in the columns. */
  readonly #ids = new UuidTable();
  readonly #statuses = new TypedColumn(Uint8Array);
  readonly #createdAtUs = new TypedColumn(Float64Array);
  /** By row: the entry in `#runs`, or NO_RUN. */
  readonly #runOfRow = new TypedColumn(Uint32Array);
  /** By row: the entry in `#webhooks`. */
  readonly #webhookOfRow = new TypedColumn(Uint32Array);
  readonly #locations = new RecordLocations();
  /** Runs with deliveries. The value counts the changes of a run's deliveries. */
  readonly #runs = new UuidTable();
  readonly #webhooks = new UuidTable();
  /** Rows of deliveries in a pause between two attempts. A pause from before the store was opened has ended with its process. */
  readonly #paused = new Set<number>();
  #hasPauses = true;
  #version = 0;
  /** The deliveries of each webhook, by entry in `#webhooks`. */
  readonly #lists: DeliveryList[] = [];

  get size(): number {
    return this.#ids.size;
  }

  /** Deliveries begin with these events of a run. Known deliveries stay as they are. */
  begin(runId: string, events: IndexedEvents): void {
    if (events.deliveryCount === 0) return;
    this.#version++;
    const run = this.#runs.enter(runId);
    this.#changed(run);
    events.forEachDelivery((bytes, idAt, webhookIdAt, timeUs) => {
      const known = this.#ids.size;
      if (this.#ids.enterBytes(bytes, idAt) < known) return;
      this.#added(this.#webhooks.enterBytes(bytes, webhookIdAt), run, timeUs);
    });
  }

  /** Takes a record of a delivery. @param bytes its index section without the origin @throws RecordDecodeError */
  put(bytes: Uint8Array, location: RecordLocation): void {
    const { idAt, webhookIdAt, runIdAt, status, createdAtUs, isPaused } = deliveryPlaces(bytes);
    this.#version++;
    const run = runIdAt < 0 ? NO_RUN : this.#runs.enterBytes(bytes, runIdAt);
    const known = this.#ids.size;
    const row = this.#ids.enterBytes(bytes, idAt);
    if (row === known) this.#added(this.#webhooks.enterBytes(bytes, webhookIdAt), run, createdAtUs);
    this.#statuses.set(row, status);
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

  /** Deliveries to a webhook, newest first. @param beforeUs only those created before this time; null means all */
  ofWebhook(webhookId: string, beforeUs: number | null, limit: number): DeliveryRow[] {
    const list = this.#lists[this.#webhooks.entryOf(webhookId)];
    if (list === undefined) return [];
    if (list.isUnsorted) this.#sort(list);
    const { rows } = list;
    const isBefore = (at: number): boolean => beforeUs === null || this.#createdAtUs.get(rows.get(at)) < beforeUs;
    const end = lowerBound(0, rows.length, isBefore);
    const page: DeliveryRow[] = [];
    for (let at = end - 1; at >= 0 && page.length < limit; at--) page.push(this.#row(rows.get(at)));
    return page;
  }

  #changed(run: number): void {
    this.#runs.setValueAt(run, this.#runs.valueAt(run) + 1);
  }

  /** Fills the columns for the id that was entered last. @param webhook entry in `#webhooks` @param run entry in `#runs`, or NO_RUN */
  #added(webhook: number, run: number, createdAtUs: number): void {
    const row = this.#statuses.length;
    this.#statuses.push(PENDING);
    this.#createdAtUs.push(createdAtUs);
    this.#runOfRow.push(run);
    this.#locations.push();
    this.#webhookOfRow.push(webhook);
    this.#list(webhook, row, createdAtUs);
  }

  #list(webhook: number, row: number, createdAtUs: number): void {
    let list = this.#lists[webhook];
    if (list === undefined) {
      list = { rows: new TypedColumn(Uint32Array, LIST_CHUNK), isUnsorted: false };
      this.#lists[webhook] = list;
    }
    const { rows } = list;
    if (rows.length > 0 && this.#createdAtUs.get(rows.get(rows.length - 1)) > createdAtUs) list.isUnsorted = true;
    rows.push(row);
  }

  #sort(list: DeliveryList): void {
    const { rows } = list;
    const sorted = Uint32Array.from({ length: rows.length }, (_, at) => rows.get(at));
    sorted.sort((a, b) => this.#createdAtUs.get(a) - this.#createdAtUs.get(b));
    for (const [at, row] of sorted.entries()) rows.set(at, row);
    list.isUnsorted = false;
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
