import { lowerBound } from "../../../core/lower-bound.js";
import { DELIVERY_STATUSES } from "../../../core/webhook/delivery.js";
import type { WebhookFigures } from "../../../core/webhook/webhook-response.js";
import { TypedColumn } from "../../columns/typed-column.js";
import { type DeliveryPlaces, deliveryError } from "../../records/webhook-record.js";

const DELIVERED = DELIVERY_STATUSES.indexOf("delivered");
const FAILED = DELIVERY_STATUSES.indexOf("failed");
const LIST_CHUNK = 512;
const MINUTE_US = 60 * 1_000_000;
const DAY_MINUTES = 24 * 60;

/**
 * The deliveries to one webhook: rows of the view's columns in order of creation, and figures of them. The last 24 hours are counted by the minute of
 * creation, so that an answer takes the same short time after a busy day and after an idle one.
 *
 * A hint file has only the latest record of each delivery in its segment. So after a start, a failure of a delivery that was taken later can be
 * missing here, unless it was the delivery's first.
 */
export class DeliveryList {
  readonly #createdAtUs: TypedColumn<Float64Array>;
  readonly #statuses: TypedColumn<Uint8Array>;
  readonly #rows = new TypedColumn(Uint32Array, LIST_CHUNK);
  /** Of each of the last minutes, at its number modulo their count: the minute's number, and what was created in it. */
  readonly #minutes = new Uint32Array(DAY_MINUTES);
  readonly #delivered = new Uint32Array(DAY_MINUTES);
  readonly #failed = new Uint32Array(DAY_MINUTES);
  #lastSuccessAtUs = 0;
  #lastFailureAtUs = 0;
  #lastError: string | null = null;

  /** @param createdAtUs, statuses columns of the view, by row */
  constructor(createdAtUs: TypedColumn<Float64Array>, statuses: TypedColumn<Uint8Array>) {
    this.#createdAtUs = createdAtUs;
    this.#statuses = statuses;
  }

  /**
   * Adds a pending delivery, the last one in the columns. It may be older than others: the record of a missed event comes after its attempt, others
   * come meanwhile. So its place is near the end, where it is cheap to put it in.
   */
  add(row: number): void {
    const rows = this.#rows;
    const createdAtUs = this.#createdAtUs.get(row);
    if (rows.length === 0 || this.#createdAtUs.get(rows.get(rows.length - 1)) <= createdAtUs) {
      rows.push(row);
    } else {
      rows.insert(this.#placeOf(createdAtUs), row);
    }
  }

  /** A record of the delivery came. @param before its status until now @param bytes of the record, as `deliveryError` takes them */
  changed(row: number, before: number, places: DeliveryPlaces, bytes: Uint8Array): void {
    const { status, updatedAtUs, deliveredAtUs, firstFailedAtUs } = places;
    const slot = this.#slotOf(Math.floor(this.#createdAtUs.get(row) / MINUTE_US));
    if (slot !== undefined) {
      this.#count(slot, before, -1);
      this.#count(slot, status, 1);
    }
    this.#lastSuccessAtUs = Math.max(this.#lastSuccessAtUs, deliveredAtUs);
    const failedAtUs = status === FAILED ? updatedAtUs : firstFailedAtUs;
    if (failedAtUs <= this.#lastFailureAtUs) return;
    this.#lastFailureAtUs = failedAtUs;
    this.#lastError = deliveryError(bytes, status === FAILED ? "last" : "first");
  }

  get length(): number {
    return this.#rows.length;
  }

  /** The row at this place, oldest first. */
  row(at: number): number {
    return this.#rows.get(at);
  }

  /** How many of the rows, oldest first, were created before this time; undefined: all. */
  endBefore(beforeUs: number | undefined): number {
    return beforeUs === undefined ? this.#rows.length : this.#placeOf(beforeUs);
  }

  /** @param nowUs ends the 24 hours. Deliveries created in them count, by what they are now. */
  figures(nowUs: number): WebhookFigures {
    const fromUs = nowUs - DAY_MINUTES * MINUTE_US;
    const fromMinute = Math.floor(fromUs / MINUTE_US);
    let [delivered, failed] = [0, 0];
    for (let slot = 0; slot < DAY_MINUTES; slot++) {
      if ((this.#minutes[slot] as number) <= fromMinute) continue;
      delivered += this.#delivered[slot] as number;
      failed += this.#failed[slot] as number;
    }
    // Of the minute in which the 24 hours begin, only the later rows count.
    const end = this.#placeOf((fromMinute + 1) * MINUTE_US);
    for (let at = this.#placeOf(fromUs); at < end; at++) {
      const status = this.#statuses.get(this.#rows.get(at));
      if (status === DELIVERED) delivered++;
      else if (status === FAILED) failed++;
    }
    return {
      ...{ delivered, failed, lastError: this.#lastError },
      lastSuccessAtUs: this.#lastSuccessAtUs || null,
      lastFailureAtUs: this.#lastFailureAtUs || null,
    };
  }

  #placeOf(timeUs: number): number {
    return lowerBound(0, this.#rows.length, (at) => this.#createdAtUs.get(this.#rows.get(at)) < timeUs);
  }

  /** Where the minute is counted; undefined for one more than a day before the newest. */
  #slotOf(minute: number): number | undefined {
    const slot = minute % DAY_MINUTES;
    const present = this.#minutes[slot] as number;
    if (present > minute) return undefined;
    if (present < minute) {
      this.#minutes[slot] = minute;
      this.#delivered[slot] = 0;
      this.#failed[slot] = 0;
    }
    return slot;
  }

  #count(slot: number, status: number, change: 1 | -1): void {
    const counts = status === DELIVERED ? this.#delivered : status === FAILED ? this.#failed : undefined;
    if (counts !== undefined) (counts[slot] as number) += change;
  }
}
