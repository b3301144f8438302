/**
 * The events that a run's record emits, with the deliveries that begin with them. They are at the end of its index section (index-layout.ts):
 *
 * | offset | size | field |
 * |---|---|---|
 * | 0 | 4 | e, count of events |
 * | 4 | … | each event: id (16), name (1), three zeros, time (8), d, count of deliveries (4), then d times: id (16), webhook id (16), on_failure_mode (1), settled (1), two zeros |
 */
import { readUuid, writeUuid } from "../../core/identifiers.js";
import type { EmittedDelivery, EmittedEvent } from "../../core/webhook/emitted-event.js";
import { EVENT_NAMES, type EventName, ON_FAILURE_MODES } from "../../core/webhook/webhook.js";
import { named, setUint53, uint53 } from "./index-fields.js";
import { RecordDecodeError } from "./record-decode-error.js";

const EVENT_BYTES = 32;
const EVENT_DELIVERY_BYTES = 36;

/** An event as the index section of its run's record has it. */
export interface IndexedEvent {
  id: string;
  name: EventName;
  timeUs: number;
  deliveries: EmittedDelivery[];
}

/** Encodes the events for the end of an index section; no bytes without events. */
export function encodeEvents(events: readonly EmittedEvent[]): Uint8Array {
  if (events.length === 0) return new Uint8Array(0);
  const deliveries = events.reduce((sum, event) => sum + event.deliveries.length, 0);
  const bytes = new Uint8Array(4 + EVENT_BYTES * events.length + EVENT_DELIVERY_BYTES * deliveries);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, events.length, true);
  let at = 4;
  for (const event of events) {
    writeUuid(event.id, bytes, at);
    view.setUint8(at + 16, EVENT_NAMES.indexOf(event.name));
    setUint53(view, at + 20, event.timeUs);
    view.setUint32(at + 28, event.deliveries.length, true);
    at += EVENT_BYTES;
    for (const { id, webhookId, onFailureMode, settled } of event.deliveries) {
      writeUuid(id, bytes, at);
      writeUuid(webhookId, bytes, at + 16);
      view.setUint8(at + 32, ON_FAILURE_MODES.indexOf(onFailureMode));
      view.setUint8(at + 33, settled === true ? 1 : 0);
      at += EVENT_DELIVERY_BYTES;
    }
  }
  return bytes;
}

/** The events of an index section, decoded only as far as a reader needs: an event can have hundreds of deliveries. */
export class IndexedEvents {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  /** Where each event begins. */
  readonly #heads: number[] = [];
  /** Count of the deliveries of all events together. */
  readonly deliveryCount: number;

  /** @param bytes everything after the other parts of the index section; not copied @throws RecordDecodeError */
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let at = 0;
    const take = (length: number): number => {
      const start = at;
      if (length > bytes.length - at) throw new RecordDecodeError("the index section ends within its events");
      at += length;
      return start;
    };
    const count = this.#view.getUint32(take(4), true);
    for (let nth = 0; nth < count; nth++) {
      const head = take(EVENT_BYTES);
      named(EVENT_NAMES, bytes[head + 16] as number, "event name");
      const first = take(EVENT_DELIVERY_BYTES * this.#view.getUint32(head + 28, true));
      for (let of = first; of < at; of += EVENT_DELIVERY_BYTES) {
        named(ON_FAILURE_MODES, bytes[of + 32] as number, "failure mode");
      }
      this.#heads.push(head);
    }
    if (count === 0 || at !== bytes.length)
      throw new RecordDecodeError("there are bytes behind the events of the index section");
    this.deliveryCount = (at - 4 - EVENT_BYTES * count) / EVENT_DELIVERY_BYTES;
  }

  /**
   * Calls `tell` for each delivery, in order, with the offsets of its id and its webhook's id in `bytes`, the event's time, and its name's place in
   * EVENT_NAMES.
   */
  forEachDelivery(
    tell: (bytes: Uint8Array, idAt: number, webhookIdAt: number, timeUs: number, eventName: number) => void,
  ): void {
    for (const head of this.#heads) {
      const eventName = this.#bytes[head + 16] as number;
      const timeUs = uint53(this.#view, head + 20);
      const count = this.#view.getUint32(head + 28, true);
      for (let nth = 0; nth < count; nth++) {
        const at = head + EVENT_BYTES + EVENT_DELIVERY_BYTES * nth;
        tell(this.#bytes, at, at + 16, timeUs, eventName);
      }
    }
  }

  /** For tests and for people. */
  toJSON(): IndexedEvent[] {
    return this.list();
  }

  list(): IndexedEvent[] {
    return this.#heads.map((head) => ({
      id: readUuid(this.#bytes, head),
      name: named(EVENT_NAMES, this.#bytes[head + 16] as number, "event name"),
      timeUs: uint53(this.#view, head + 20),
      deliveries: Array.from({ length: this.#view.getUint32(head + 28, true) }, (_, nth) =>
        this.#delivery(head + EVENT_BYTES + EVENT_DELIVERY_BYTES * nth),
      ),
    }));
  }

  #delivery(at: number): EmittedDelivery {
    const delivery: EmittedDelivery = {
      id: readUuid(this.#bytes, at),
      webhookId: readUuid(this.#bytes, at + 16),
      onFailureMode: named(ON_FAILURE_MODES, this.#bytes[at + 32] as number, "failure mode"),
    };
    if (this.#bytes[at + 33] === 1) delivery.settled = true;
    return delivery;
  }
}
