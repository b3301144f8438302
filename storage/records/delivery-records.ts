import { LIMITS } from "../../core/limits.js";
import type { Delivery, DeliveryAttempt } from "../../core/webhook/delivery.js";
import { newDelivery } from "../../core/webhook/emit-run-event.js";
import type { EmittedEvent } from "../../core/webhook/emitted-event.js";
import { atATime } from "../at-a-time.js";
import { ByteBudget } from "../byte-budget.js";
import type { RecordLocation } from "../log/log-batch.js";
import { MisplacedRecordError, mayHaveMoved } from "../log/misplaced-record.js";
import { StorageError } from "../storage-error.js";
import type { RecordReader } from "../view/run-records.js";
import type { DeliveryRow, ViewDeliveries } from "../view/view-deliveries.js";
import { decodeStoredDelivery, isRecordOf, RECORD_TYPE } from "./record-index.js";
import { decodeDeliveryBody } from "./webhook-record.js";

/** A delivery with all that is stored of it. */
export interface DeliveryContent {
  delivery: Delivery;
  /** Oldest first. */
  history: DeliveryAttempt[];
  /** JSON text, as it is posted. */
  payload: string;
}

/** What of a run tells its deliveries. */
export interface EmittingRun {
  readonly id: string;
  readonly emitted?: readonly Omit<EmittedEvent, "payload">[] | undefined;
}

/** A record has its history beside it, up to a megabyte. */
const OF_RUN_AT_A_TIME = 16;
/** With each, a run's record may be read, of many megabytes. */
const ROWS_AT_A_TIME = 4;
const PAGES_AT_A_TIME = 4;

type ReadRecord = Awaited<ReturnType<RecordReader["read"]>>;

/** Reads deliveries: from their latest record, or from the run whose event they deliver. */
export class DeliveryRecords {
  readonly #reader: RecordReader;
  readonly #deliveries: ViewDeliveries;
  readonly #eventsOf: (runId: string) => Promise<readonly EmittedEvent[] | undefined>;
  readonly #pages = new ByteBudget(PAGES_AT_A_TIME);

  constructor(
    reader: RecordReader,
    deliveries: ViewDeliveries,
    eventsOf: (runId: string) => Promise<readonly EmittedEvent[] | undefined>,
  ) {
    this.#reader = reader;
    this.#deliveries = deliveries;
    this.#eventsOf = eventsOf;
  }

  /** @throws StorageError when what is stored of it is damaged or missing */
  async content(row: DeliveryRow): Promise<DeliveryContent> {
    const record = await this.#record(row.id);
    if (record === undefined) {
      const { event, delivery } = await this.#begun(row);
      return { delivery, history: [], payload: event.payload };
    }
    const delivery = this.#deliveryOf(record);
    const { history, payload } = decodeDeliveryBody(record.body);
    return { delivery, history, payload: payload ?? (await this.#event(delivery)).payload };
  }

  /**
   * As many of these, in their order, as a page may hold, one at least; a few are read at a time, and a few pages.
   * @param throwIfCancelled ends the reading, by what it throws, when nobody waits for the page any more
   * @throws StorageError when what is stored of one is damaged or missing
   */
  page(
    rows: readonly DeliveryRow[],
    toBytes: (delivery: Delivery, payload: string) => Uint8Array,
    throwIfCancelled: () => void,
  ): Promise<Uint8Array[]> {
    return this.#pages.run(1, async () => {
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
    });
  }

  /** Without its history, which no list shows. */
  async #item(row: DeliveryRow, toBytes: (delivery: Delivery, payload: string) => Uint8Array): Promise<Uint8Array> {
    const record = await this.#record(row.id);
    if (record === undefined) {
      const { event, delivery } = await this.#begun(row);
      return toBytes(delivery, event.payload);
    }
    const delivery = this.#deliveryOf(record);
    const own = delivery.runId === null ? decodeDeliveryBody(record.body).payload : null;
    return toBytes(delivery, own ?? (await this.#event(delivery)).payload);
  }

  /** Of a run, in the order they began. */
  async ofRun(run: EmittingRun): Promise<Delivery[]> {
    const begun = (run.emitted ?? []).flatMap((event) =>
      event.deliveries.map((delivery) => newDelivery(delivery, event, run.id)),
    );
    return atATime(begun, OF_RUN_AT_A_TIME, async (delivery) => {
      const record = await this.#record(delivery.id);
      return record === undefined ? delivery : this.#deliveryOf(record);
    });
  }

  /** As it is now: a pause that its record tells of, and that nobody waits for any more, is none. */
  #deliveryOf({ index }: ReadRecord): Delivery {
    const delivery = decodeStoredDelivery(index);
    return this.#deliveries.isPaused(delivery.id) ? delivery : { ...delivery, nextRetryAtUs: null };
  }

  /** Undefined before its first attempt. */
  async #record(id: string): Promise<ReadRecord | undefined> {
    for (;;) {
      const location = this.#deliveries.row(id)?.location;
      if (location === undefined) return undefined;
      try {
        return await this.#reader.read(location, (record) => checkIsOf(id, record));
      } catch (error) {
        // It may have moved, or a later one may have taken its place, while it was read.
        if (!mayHaveMoved(error) || isSame(this.#deliveries.row(id)?.location, location)) throw error;
      }
    }
  }

  async #begun({ id, runId }: DeliveryRow): Promise<{ event: EmittedEvent; delivery: Delivery }> {
    const events = runId === null ? undefined : await this.#eventsOf(runId);
    for (const event of events ?? []) {
      const begun = event.deliveries.find((delivery) => delivery.id === id);
      if (begun !== undefined) return { event, delivery: newDelivery(begun, event, runId) };
    }
    throw lost(id, runId);
  }

  async #event({ id, runId, eventId }: Delivery): Promise<EmittedEvent> {
    const events = runId === null ? undefined : await this.#eventsOf(runId);
    const event = events?.find((one) => one.id === eventId);
    if (event === undefined) throw lost(id, runId);
    return event;
  }
}

function checkIsOf(id: string, record: ReadRecord): void {
  if (isRecordOf(record, RECORD_TYPE.delivery, id)) return;
  throw new MisplacedRecordError(`the record of delivery ${id} is not where it was`);
}

function isSame(a: RecordLocation | undefined, b: RecordLocation): boolean {
  return a !== undefined && a.segmentBase === b.segmentBase && a.offset === b.offset;
}

function lost(deliveryId: string, runId: string | null): StorageError {
  const params = { delivery_id: deliveryId, run_id: runId };
  return new StorageError("record_missing", `the event of delivery ${deliveryId} is not there any more`, params);
}
