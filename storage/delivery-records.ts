import type { Delivery, DeliveryAttempt } from "../core/delivery.js";
import { newDelivery } from "../core/emit-run-event.js";
import type { EmittedEvent } from "../core/emitted-event.js";
import type { RunState } from "../core/run-state.js";
import type { RecordLocation } from "./log-batch.js";
import { isReadDamage } from "./read-damage.js";
import { decodeIndex, RECORD_TYPE } from "./record-index.js";
import type { RecordReader } from "./run-records.js";
import { StorageError } from "./storage-error.js";
import type { DeliveryRow, ViewDeliveries } from "./view-deliveries.js";
import { decodeDeliveryBody } from "./webhook-record.js";

/** A delivery with all that is stored of it. */
export interface DeliveryContent {
  delivery: Delivery;
  /** Oldest first. */
  history: DeliveryAttempt[];
  /** JSON text, as it is posted. */
  payload: string;
}

type ReadRecord = Awaited<ReturnType<RecordReader["read"]>>;

/** Reads deliveries: from their latest record, or from the run whose event they deliver. */
export class DeliveryRecords {
  readonly #reader: RecordReader;
  readonly #deliveries: ViewDeliveries;
  readonly #runOf: (runId: string) => Promise<RunState | undefined>;

  constructor(
    reader: RecordReader,
    deliveries: ViewDeliveries,
    runOf: (runId: string) => Promise<RunState | undefined>,
  ) {
    this.#reader = reader;
    this.#deliveries = deliveries;
    this.#runOf = runOf;
  }

  /** @throws StorageError when what is stored of it is damaged or missing */
  async content(row: DeliveryRow): Promise<DeliveryContent> {
    const record = await this.#record(row.id);
    if (record === undefined) {
      const { event, delivery } = await this.#begun(row);
      return { delivery, history: [], payload: event.payload };
    }
    const delivery = deliveryOf(row.id, record);
    const { history, payload } = decodeDeliveryBody(record.body);
    return { delivery, history, payload: payload ?? (await this.#event(delivery)).payload };
  }

  /** Of a run, in the order they began. */
  async ofRun(run: RunState): Promise<Delivery[]> {
    const begun = (run.emitted ?? []).flatMap((event) =>
      event.deliveries.map((delivery) => newDelivery(delivery, event, run.id)),
    );
    return Promise.all(
      begun.map(async (delivery) => {
        const record = await this.#record(delivery.id);
        return record === undefined ? delivery : deliveryOf(delivery.id, record);
      }),
    );
  }

  /** Undefined before its first attempt. */
  async #record(id: string): Promise<ReadRecord | undefined> {
    for (;;) {
      const location = this.#deliveries.row(id)?.location;
      if (location === undefined) return undefined;
      try {
        return await this.#reader.read(location);
      } catch (error) {
        // It may have moved, or a later one may have taken its place, while it was read.
        if (!isReadDamage(error) || isSame(this.#deliveries.row(id)?.location, location)) throw error;
      }
    }
  }

  async #begun({ id, runId }: DeliveryRow): Promise<{ event: EmittedEvent; delivery: Delivery }> {
    const run = runId === null ? undefined : await this.#runOf(runId);
    for (const event of run?.emitted ?? []) {
      const begun = event.deliveries.find((delivery) => delivery.id === id);
      if (begun !== undefined) return { event, delivery: newDelivery(begun, event, runId) };
    }
    throw lost(id, runId);
  }

  async #event({ id, runId, eventId }: Delivery): Promise<EmittedEvent> {
    const run = runId === null ? undefined : await this.#runOf(runId);
    const event = run?.emitted?.find((one) => one.id === eventId);
    if (event === undefined) throw lost(id, runId);
    return event;
  }
}

function deliveryOf(id: string, { type, index }: ReadRecord): Delivery {
  const decoded = type === RECORD_TYPE.delivery ? decodeIndex(type, index) : undefined;
  if (decoded?.type !== RECORD_TYPE.delivery || decoded.delivery.id !== id) {
    throw new Error(`the record of delivery ${id} is not where it was`);
  }
  return decoded.delivery;
}

function isSame(a: RecordLocation | undefined, b: RecordLocation): boolean {
  return a !== undefined && a.segmentBase === b.segmentBase && a.offset === b.offset;
}

function lost(deliveryId: string, runId: string | null): StorageError {
  const params = { delivery_id: deliveryId, run_id: runId };
  return new StorageError("record_missing", `the event of delivery ${deliveryId} is not there any more`, params);
}
