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
  /** By the minute of creation, for the newest day at least. */
  readonly #delivered = new Map<number, number>();
  readonly #failed = new Map<number, number>();
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
    const minute = Math.floor(this.#createdAtUs.get(row) / MINUTE_US);
    this.#count(minute, before, -1);
    this.#count(minute, status, 1);
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
    const since = (counts: ReadonlyMap<number, number>): number => {
      let sum = 0;
      for (const [minute, count] of counts) if (minute > fromMinute) sum += count;
      return sum;
    };
    let [delivered, failed] = [since(this.#delivered), since(this.#failed)];
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

  #count(minute: number, status: number, change: 1 | -1): void {
    const counts = status === DELIVERED ? this.#delivered : status === FAILED ? this.#failed : undefined;
    if (counts === undefined) return;
    counts.set(minute, (counts.get(minute) ?? 0) + change);
    for (const old of counts.keys()) {
      if (old > minute - DAY_MINUTES) break;
      counts.delete(old);
    }
  }
}
