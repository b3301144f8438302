import { LIMITS } from "../../core/limits.js";
import type { Delivery, DeliveryAttempt } from "../../core/webhook/delivery.js";
import { newDelivery } from "../../core/webhook/emit-run-event.js";
import type { EmittedEvent } from "../../core/webhook/emitted-event.js";
import { MisplacedRecordError } from "../log/misplaced-record.js";
import { mapConcurrently } from "../map-concurrently.js";
import { StorageError } from "../storage-error.js";
import type { DeliveryRow, ViewDeliveries } from "../view/deliveries/view-deliveries.js";
import type { RecordReader } from "../view/run-records.js";
import { decodeStoredDelivery, isRecordOf, RECORD_TYPE } from "./record-index.js";
import { decodeDeliveryBody } from "./webhook-record.js";

/** A delivery with its history and its payload. */
export interface DeliveryContent {
  delivery: Delivery;
  /** Oldest first. */
  history: DeliveryAttempt[];
  /** The JSON text that is posted. */
  payload: string;
  /** Only records of the delivery have the payload. */
  isOwnPayload: boolean;
}

/** What is needed of a run to find its deliveries. */
export interface EmittingRun {
  readonly id: string;
  readonly emitted?: readonly Omit<EmittedEvent, "payload">[] | undefined;
}

/** Records of a run's deliveries that are read at a time. Each carries its history, up to a megabyte. */
const OF_RUN_AT_A_TIME = 16;
/** Deliveries of a page that are read at a time. For each, a run's record of many megabytes may be read. */
const ROWS_AT_A_TIME = 4;

type ReadRecord = Awaited<ReturnType<RecordReader["read"]>>;

/** Reads deliveries from their latest record or, before their first attempt, from the run whose event they deliver. */
export class DeliveryRecords {
  readonly #reader: RecordReader;
  readonly #deliveries: ViewDeliveries;
  readonly #eventsOf: (runId: string) => Promise<readonly EmittedEvent[] | undefined>;

  constructor(
    reader: RecordReader,
    deliveries: ViewDeliveries,
    eventsOf: (runId: string) => Promise<readonly EmittedEvent[] | undefined>,
  ) {
    this.#reader = reader;
    this.#deliveries = deliveries;
    this.#eventsOf = eventsOf;
  }

  /** @throws StorageError when the delivery's stored data is damaged or missing */
  async content(row: DeliveryRow): Promise<DeliveryContent> {
    const record = await this.#record(row.id);
    if (record === undefined) {
      const { event, delivery } = await this.#begun(row);
      return { delivery, history: [], payload: event.payload, isOwnPayload: false };
    }
    const delivery = this.#deliveryOf(record);
    const { history, payload } = decodeDeliveryBody(record.body);
    if (payload !== null) return { delivery, history, payload, isOwnPayload: true };
    const event = await this.#event(delivery);
    if (event === undefined) throw lost(delivery.id, delivery.runId);
    return { delivery, history, payload: event.payload, isOwnPayload: false };
  }

  /**
   * A page of these deliveries, in their order: at least one, and as many as a page may hold. Only a few deliveries are read at a time.
   *
   * @param throwIfCancelled ends the reading by throwing, when nobody waits for the page any more
   * @throws StorageError when the stored data of a delivery is damaged or missing
   */
  async page(
    rows: readonly DeliveryRow[],
    toBytes: (delivery: Delivery, payload: string) => Uint8Array,
    throwIfCancelled: () => void,
  ): Promise<Uint8Array[]> {
    const items: Uint8Array[] = [];
    let pageBytes = 0;
    for (let start = 0; start < rows.length; start += ROWS_AT_A_TIME) {
      throwIfCancelled();
      const few = rows.slice(start, start + ROWS_AT_A_TIME);
      for (const item of await Promise.all(few.map((row) => this.#item(row, toBytes)))) {
        pageBytes += item.length;
        if (pageBytes > LIMITS.deliveriesPageBytes && items.length > 0) return items;
        items.push(item);
      }
    }
    return items;
  }

  /** One item of a list. It has no history: no list shows it. */
  async #item(row: DeliveryRow, toBytes: (delivery: Delivery, payload: string) => Uint8Array): Promise<Uint8Array> {
    const record = await this.#record(row.id);
    if (record === undefined) {
      const { event, delivery } = await this.#begun(row);
      return toBytes(delivery, event.payload);
    }
    const delivery = this.#deliveryOf(record);
    const event = await this.#event(delivery);
    const payload = event?.payload ?? decodeDeliveryBody(record.body).payload;
    if (payload === null) throw lost(delivery.id, delivery.runId);
    return toBytes(delivery, payload);
  }

  /** The deliveries of a run, in the order they began: those of its events, then those that resends have caught up on. */
  async ofRun(run: EmittingRun): Promise<Delivery[]> {
    const begun = (run.emitted ?? []).flatMap((event) =>
      event.deliveries.map((delivery) => newDelivery(delivery, event, run.id)),
    );
    const known = new Set(begun.map(({ id }) => id));
    const late = this.#deliveries.lateOf(run.id).filter((id) => !known.has(id));
    const all = [...begun, ...late.map((id) => ({ id }))];
    const read = await mapConcurrently(all, OF_RUN_AT_A_TIME, async (delivery) => {
      const record = await this.#record(delivery.id);
      return record === undefined ? delivery : this.#deliveryOf(record);
    });
    return read.filter((one): one is Delivery => "status" in one);
  }

  /** The delivery as it is now: a pause in its record does not count when nobody waits for its end any more. */
  #deliveryOf({ index }: ReadRecord): Delivery {
    const delivery = decodeStoredDelivery(index);
    return this.#deliveries.isPaused(delivery.id) ? delivery : { ...delivery, nextRetryAtUs: null };
  }

  /** Undefined before its first attempt. */
  async #record(id: string): Promise<ReadRecord | undefined> {
    const location = this.#deliveries.row(id)?.location;
    return location && this.#reader.read(location, (record) => checkIsOf(id, record));
  }

  async #begun({ id, runId }: DeliveryRow): Promise<{ event: EmittedEvent; delivery: Delivery }> {
    const events = runId === null ? undefined : await this.#eventsOf(runId);
    for (const event of events ?? []) {
      const begun = event.deliveries.find((delivery) => delivery.id === id);
      if (begun !== undefined) return { event, delivery: newDelivery(begun, event, runId) };
    }
    throw lost(id, runId);
  }

  /** Undefined if no run's record has the event. */
  async #event({ runId, eventId }: Delivery): Promise<EmittedEvent | undefined> {
    const events = runId === null ? undefined : await this.#eventsOf(runId);
    return events?.find((one) => one.id === eventId);
  }
}

function checkIsOf(id: string, record: ReadRecord): void {
  if (isRecordOf(record, RECORD_TYPE.delivery, id)) return;
  throw new MisplacedRecordError(`the record of delivery ${id} is not at its place`);
}

function lost(deliveryId: string, runId: string | null): StorageError {
  const params = { delivery_id: deliveryId, run_id: runId };
  return new StorageError("record_missing", `the event of delivery ${deliveryId} is lost`, params);
}
