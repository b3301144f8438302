/**
 * The record of a resend, of type 23: when it begins, and when it ends. All integers are little-endian. The index section after the empty origin:
 *
 * | offset | size | field |
 * |---|---|---|
 * | 0 | 16 | resend id |
 * | 16 | 16 | webhook id |
 * | 32 | 1 | state, its place in RESEND_STATES; `running` in the record of its beginning |
 * | 33 | 3 | zeros |
 * | 36 | 4 | per second |
 * | 40 | 4 x 4 | deliveries, attempted, delivered, failed |
 *
 * The body of the record that begins it has 33 bytes for each delivery, in the order of the attempts; at the end it is empty:
 *
 * | offset | size | field |
 * |---|---|---|
 * | 0 | 16 | delivery id |
 * | 16 | 16 | for a delivery that is still to begin, the run of its event; else zeros |
 * | 32 | 1 | likewise the event's name, its place in EVENT_NAMES |
 *
 * Which deliveries had their attempt follows from the records of deliveries that come behind the first one.
 */
import { isUuidV7, readUuid, writeUuid } from "../../core/identifiers.js";
import { RESEND_STATES, type Resend, type ResendItem } from "../../core/webhook/resend.js";
import { EVENT_NAMES, type RunEventName } from "../../core/webhook/webhook.js";
import { named } from "./index-fields.js";
import { RecordDecodeError } from "./record-decode-error.js";

const ORIGIN_BYTES = 9;
const RESEND_BYTES = 56;
export const RESEND_ITEM_BYTES = 33;

export function encodeResend(resend: Resend): Uint8Array {
  const bytes = new Uint8Array(ORIGIN_BYTES + RESEND_BYTES);
  const view = new DataView(bytes.buffer, ORIGIN_BYTES);
  writeUuid(resend.id, bytes, ORIGIN_BYTES);
  writeUuid(resend.webhookId, bytes, ORIGIN_BYTES + 16);
  view.setUint8(32, RESEND_STATES.indexOf(resend.state));
  const { perSecond, deliveries, attempted, delivered, failed } = resend;
  for (const [nth, count] of [perSecond, deliveries, attempted, delivered, failed].entries()) {
    view.setUint32(36 + 4 * nth, count, true);
  }
  return bytes;
}

/** @param bytes the index section without the origin @throws RecordDecodeError */
export function decodeResend(bytes: Uint8Array): Resend {
  if (bytes.length !== RESEND_BYTES) throw new RecordDecodeError(`the resend has ${bytes.length} bytes`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const count = (nth: number): number => view.getUint32(36 + 4 * nth, true);
  const [id, webhookId] = [readUuid(bytes, 0), readUuid(bytes, 16)];
  if (!isUuidV7(id) || !isUuidV7(webhookId)) throw new RecordDecodeError("the resend or its webhook has no id");
  return {
    ...{ id, webhookId, state: named(RESEND_STATES, view.getUint8(32), "state of a resend") },
    ...{ perSecond: count(0), deliveries: count(1), attempted: count(2), delivered: count(3), failed: count(4) },
  };
}

/** The deliveries of a resend, in a record's body. */
export class ResendItems {
  readonly bytes: Uint8Array;

  /** @throws RecordDecodeError */
  constructor(bytes: Uint8Array) {
    if (bytes.length % RESEND_ITEM_BYTES !== 0) throw new RecordDecodeError(`a resend's body of ${bytes.length} bytes`);
    this.bytes = bytes;
  }

  get count(): number {
    return this.bytes.length / RESEND_ITEM_BYTES;
  }

  /** Where the delivery's id lies in `bytes`. */
  idAt(nth: number): number {
    return nth * RESEND_ITEM_BYTES;
  }

  /** @throws RecordDecodeError */
  item(nth: number): ResendItem {
    const at = this.idAt(nth);
    const deliveryId = readUuid(this.bytes, at);
    const isMissed = this.bytes.subarray(at + 16, at + 32).some((byte) => byte !== 0);
    if (!isMissed) return { deliveryId, missed: null };
    const eventName = named(EVENT_NAMES, this.bytes[at + 32] as number, "event name") as RunEventName;
    return { deliveryId, missed: { runId: readUuid(this.bytes, at + 16), eventName } };
  }
}

/** Writes the deliveries of a resend, so many as are told at first: so the bytes of many are never copied. */
export class ResendItemsBuilder {
  readonly bytes: Uint8Array<ArrayBuffer>;
  #count = 0;

  constructor(count: number) {
    this.bytes = new Uint8Array(count * RESEND_ITEM_BYTES);
  }

  add({ deliveryId, missed }: ResendItem): void {
    const at = this.#count++ * RESEND_ITEM_BYTES;
    writeUuid(deliveryId, this.bytes, at);
    if (missed !== null) {
      writeUuid(missed.runId, this.bytes, at + 16);
      this.bytes[at + 32] = EVENT_NAMES.indexOf(missed.eventName);
    }
  }
}
