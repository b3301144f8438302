import { lowerBound } from "../../../core/lower-bound.js";
import { DELIVERY_STATUSES } from "../../../core/webhook/delivery.js";
import type { WebhookFigures } from "../../../core/webhook/webhook-response.js";
import { TypedColumn } from "../../columns/typed-column.js";
import { type DeliveryPlaces, deliveryError } from "../../records/webhook-record.js";

const DELIVERED = DELIVERY_STATUSES.indexOf("delivered");
const FAILED = DELIVERY_STATUSES.indexOf("failed");
const LIST_CHUNK = 512;
const DAY_US = 24 * 60 * 60 * 1_000_000;
/** Rows that leave the counted day whenever one is added: more than one, so that none are left over when somebody asks. */
const LEAVING_ROWS = 4;

/**
 * The deliveries to one webhook: rows of the view's columns in order of creation, and figures of them. What is counted of the last 24 hours goes by
 * `#from`, the first row that still counts: each row enters once and leaves once.
 *
 * A hint file has only the latest record of each delivery in its segment. So after a start, a failure of a delivery that was taken later can be
 * missing here, unless it was the delivery's first.
 */
export class DeliveryList {
  readonly #createdAtUs: TypedColumn<Float64Array>;
  readonly #statuses: TypedColumn<Uint8Array>;
  readonly #rows = new TypedColumn(Uint32Array, LIST_CHUNK);
  /** Place of the first row that counts, and the time from which rows count. */
  #from = 0;
  #fromUs = 0;
  #delivered = 0;
  #failed = 0;
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
      if (createdAtUs < this.#fromUs) this.#from++;
    }
    this.#leave(createdAtUs - DAY_US, LEAVING_ROWS);
  }

  /** A record of the delivery came. @param before its status until now @param bytes of the record, as `deliveryError` takes them */
  changed(row: number, before: number, places: DeliveryPlaces, bytes: Uint8Array): void {
    const { status, updatedAtUs, deliveredAtUs, firstFailedAtUs } = places;
    if (this.#createdAtUs.get(row) >= this.#fromUs) {
      this.#count(before, -1);
      this.#count(status, 1);
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
    this.#leave(nowUs - DAY_US, Number.POSITIVE_INFINITY);
    return {
      ...{ delivered: this.#delivered, failed: this.#failed, lastError: this.#lastError },
      lastSuccessAtUs: this.#lastSuccessAtUs || null,
      lastFailureAtUs: this.#lastFailureAtUs || null,
    };
  }

  #placeOf(timeUs: number): number {
    return lowerBound(0, this.#rows.length, (at) => this.#createdAtUs.get(this.#rows.get(at)) < timeUs);
  }

  /** Rows created before this time count no more; at most so many of them leave now. */
  #leave(fromUs: number, most: number): void {
    for (let left = 0; left < most && this.#from < this.#rows.length; left++) {
      const row = this.#rows.get(this.#from);
      const createdAtUs = this.#createdAtUs.get(row);
      if (createdAtUs >= fromUs) break;
      this.#count(this.#statuses.get(row), -1);
      this.#from++;
      // The next row is younger: no two deliveries of a webhook have the same time.
      this.#fromUs = createdAtUs + 1;
    }
  }

  #count(status: number, change: 1 | -1): void {
    if (status === DELIVERED) this.#delivered += change;
    else if (status === FAILED) this.#failed += change;
  }
}
