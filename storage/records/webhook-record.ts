/**
 * The records of webhooks and deliveries. All integers are little-endian; a 53-bit integer is two u32, low first; a time of 0 is null.
 * Each begins with an origin (record-index.ts), which is empty: no producer has a part in them.
 *
 * | type | record | index section behind the origin | body |
 * |---|---|---|---|
 * | 21 | webhook | JSON text of what is shown of it, or `{"deleted":{id,name}}` | MessagePack `{secret}` |
 * | 22 | delivery | below | MessagePack `{history, payload}` |
 *
 * The secret stands apart, in the body of a type whose answers, and what inspect and export show, are made of the index section alone.
 * Only the recorder takes it out; `check` decodes it and lets it go.
 *
 * A delivery:
 *
 * | offset | size | field |
 * |---|---|---|
 * | 0 | 16 | delivery id |
 * | 16 | 16 | webhook id |
 * | 32 | 16 | run id, zeros for WebhookTest |
 * | 48 | 16 | event id |
 * | 64 | 1 | event name, its place in EVENT_NAMES |
 * | 65 | 1 | on_failure_mode, its place in ON_FAILURE_MODES |
 * | 66 | 1 | status, its place in DELIVERY_STATUSES |
 * | 67 | 1 | 1: the first failure follows the last error; 0: it does not, as in older records, where it is told by the last one |
 * | 68 | 4 | attempts |
 * | 72 | 4 | last status code, 0: null |
 * | 76 | 5 x 8 | created, updated, next retry, delivered, first failed at |
 * | 116 | 4 | n, bytes of the last error; 0xffffffff: null |
 * | 120 | n | the last error |
 * | 120 + n | 4 | status code of the first failure, 0: null |
 * | 124 + n | 4 | e, bytes of its error; 0xffffffff: null |
 * | 128 + n | e | its error |
 * | 128 + n + e | 4 | w, bytes of the webhook's name then; 0xffffffff: null |
 * | 132 + n + e | w | the name |
 *
 * The events that a run's record emits stand at the end of its index section (record-index.ts), for the deliveries that begin with them:
 *
 * | offset | size | field |
 * |---|---|---|
 * | 0 | 4 | e, count of events |
 * | 4 | … | of each: id (16), name (1), three zeros, time (8), d, count of deliveries (4), then d times: id (16), webhook id (16), on_failure_mode (1), settled (1), two zeros |
 */

import { isUuidV7, readUuid, writeUuid } from "../../core/identifiers.js";
import { isPlainObject } from "../../core/json/json.js";
import {
  DELIVERY_STATUSES,
  type Delivery,
  type DeliveryAttempt,
  type DeliveryFailure,
} from "../../core/webhook/delivery.js";
import type { EmittedDelivery, EmittedEvent } from "../../core/webhook/emitted-event.js";
import { EVENT_NAMES, type EventName, ON_FAILURE_MODES, type Webhook } from "../../core/webhook/webhook.js";
import type { WebhookChange } from "../../core/webhook/webhook-change.js";
import { RecordDecodeError } from "../log/record-decode-error.js";
import { decodeMessagePack } from "./message-pack.js";
import { MessagePackEncoder } from "./message-pack-encoder.js";

export const WEBHOOK_RECORD_TYPE = { webhook: 21, delivery: 22 } as const;

const ORIGIN_BYTES = 9;
const DELIVERY_BYTES = 120;
const EVENT_BYTES = 32;
const EVENT_DELIVERY_BYTES = 36;
const NULL_LENGTH = 0xffff_ffff;
const HIGH = 0x1_0000_0000;
const NO_RUN = "00000000-0000-0000-0000-000000000000";

/** What the index section of a webhook's record shows. */
export type WebhookIndex =
  | { webhook: Webhook; deleted?: undefined }
  | { webhook?: undefined; deleted: Pick<Webhook, "id" | "name"> };

/** What the view keeps of a delivery's record: ids by where their 16 bytes begin, no text of which is made. */
export interface DeliveryPlaces {
  readonly idAt: number;
  readonly webhookIdAt: number;
  /** -1: it is of no run. */
  readonly runIdAt: number;
  readonly status: number;
  readonly createdAtUs: number;
  /** Its next attempt is being waited for. */
  readonly isPaused: boolean;
}

/** An event as the index section of its run's record has it. */
export interface IndexedEvent {
  id: string;
  name: EventName;
  timeUs: number;
  deliveries: EmittedDelivery[];
}

const encoder = new MessagePackEncoder();
const textEncoder = new TextEncoder();
const textDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function encodeWebhookChange(change: WebhookChange): { type: 21 | 22; index: Uint8Array; body: Uint8Array } {
  if (change.kind === "delivery_put") {
    const { history, payload } = change;
    return { type: 22, index: encodeDelivery(change.delivery), body: encoder.encode({ history, payload }) };
  }
  const shown = change.kind === "webhook_put" ? { webhook: change.webhook } : { deleted: change.webhook };
  const text = textEncoder.encode(JSON.stringify(shown satisfies WebhookIndex));
  const index = new Uint8Array(ORIGIN_BYTES + text.length);
  index.set(text, ORIGIN_BYTES);
  const secret = change.kind === "webhook_put" ? change.secret : null;
  return { type: 21, index, body: encoder.encode({ secret }) };
}

/** @throws RecordDecodeError */
export function decodeWebhookIndex(bytes: Uint8Array): WebhookIndex {
  let shown: unknown;
  try {
    shown = JSON.parse(textDecoder.decode(bytes));
  } catch {
    throw new RecordDecodeError("a webhook that is not JSON in UTF-8");
  }
  const one = isPlainObject(shown) ? (shown.webhook ?? shown.deleted) : undefined;
  if (!isPlainObject(one) || typeof one.id !== "string" || !isUuidV7(one.id) || typeof one.name !== "string") {
    throw new RecordDecodeError("a webhook without id or name");
  }
  const { subscribedEvents, createdAtUs, updatedAtUs } = one;
  const hasTimes = Number.isSafeInteger(createdAtUs) && Number.isSafeInteger(updatedAtUs);
  if ((shown as WebhookIndex).webhook !== undefined && !(Array.isArray(subscribedEvents) && hasTimes)) {
    throw new RecordDecodeError("a webhook without its events or times");
  }
  return shown as WebhookIndex;
}

/** For the recorder, and for `check`, which shows nothing of it. @throws RecordDecodeError */
export function decodeWebhookSecret(body: Uint8Array): string | null {
  const { secret } = decodeMap(body);
  if (secret !== null && typeof secret !== "string") throw new RecordDecodeError("a webhook's secret of another kind");
  return secret;
}

/** @throws RecordDecodeError */
export function decodeDeliveryBody(body: Uint8Array): { history: DeliveryAttempt[]; payload: string | null } {
  const { history, payload } = decodeMap(body);
  const isWhole = Array.isArray(history) && history.every(isPlainObject);
  if (!isWhole || (payload !== null && typeof payload !== "string")) {
    throw new RecordDecodeError("a delivery without its history");
  }
  return { history: history.map(attemptOf), payload };
}

/** How releases before `responseTruncated` said it: at the end of the body, and in a header of a name that no header can have. */
const CUT_BODY = /… \[cut: \d+ bytes kept\]$/;
const CUT_HEADERS = "…";

function attemptOf(stored: Record<string, unknown>): DeliveryAttempt {
  if (stored.responseTruncated !== undefined) return stored as unknown as DeliveryAttempt;
  const { responseBody: body, responseHeaders: headers } = stored;
  const isCut = (typeof body === "string" && CUT_BODY.test(body)) || (isPlainObject(headers) && CUT_HEADERS in headers);
  return { ...(stored as unknown as DeliveryAttempt), responseTruncated: isCut };
}

function decodeMap(body: Uint8Array): Record<string, unknown> {
  let value: unknown;
  try {
    value = decodeMessagePack(body);
  } catch (error) {
    throw new RecordDecodeError(`the body is not MessagePack: ${String(error)}`);
  }
  if (!isPlainObject(value)) throw new RecordDecodeError("the body is not a map");
  return value;
}

function encodeDelivery(delivery: Delivery): Uint8Array {
  const error = delivery.lastError === null ? null : textEncoder.encode(delivery.lastError);
  const failure = encodeFailure(delivery.firstFailure);
  const errorBytes = error?.length ?? 0;
  const bytes = new Uint8Array(ORIGIN_BYTES + DELIVERY_BYTES + errorBytes + failure.length);
  const at = ORIGIN_BYTES;
  const view = new DataView(bytes.buffer, at);
  writeUuid(delivery.id, bytes, at);
  writeUuid(delivery.webhookId, bytes, at + 16);
  if (delivery.runId !== null) writeUuid(delivery.runId, bytes, at + 32);
  writeUuid(delivery.eventId, bytes, at + 48);
  view.setUint8(64, EVENT_NAMES.indexOf(delivery.eventName));
  view.setUint8(65, ON_FAILURE_MODES.indexOf(delivery.onFailureMode));
  view.setUint8(66, DELIVERY_STATUSES.indexOf(delivery.status));
  view.setUint8(67, failure.length > 0 ? 1 : 0);
  view.setUint32(68, delivery.attempts, true);
  view.setUint32(72, delivery.lastStatusCode ?? 0, true);
  setUint53(view, 76, delivery.createdAtUs);
  setUint53(view, 84, delivery.updatedAtUs);
  setUint53(view, 92, delivery.nextRetryAtUs ?? 0);
  setUint53(view, 100, delivery.deliveredAtUs ?? 0);
  setUint53(view, 108, delivery.firstFailure?.atUs ?? 0);
  view.setUint32(116, error?.length ?? NULL_LENGTH, true);
  if (error !== null) bytes.set(error, at + DELIVERY_BYTES);
  bytes.set(failure, at + DELIVERY_BYTES + errorBytes);
  return bytes;
}

/** What of it stands behind the last error. */
function encodeFailure(failure: DeliveryFailure | null): Uint8Array {
  if (failure === null) return new Uint8Array(0);
  const error = failure.error === null ? null : textEncoder.encode(failure.error);
  const name = failure.webhookName === null ? null : textEncoder.encode(failure.webhookName);
  const errorBytes = error?.length ?? 0;
  const bytes = new Uint8Array(12 + errorBytes + (name?.length ?? 0));
  const view = new DataView(bytes.buffer);
  view.setUint32(0, failure.statusCode ?? 0, true);
  view.setUint32(4, error?.length ?? NULL_LENGTH, true);
  if (error !== null) bytes.set(error, 8);
  view.setUint32(8 + errorBytes, name?.length ?? NULL_LENGTH, true);
  if (name !== null) bytes.set(name, 12 + errorBytes);
  return bytes;
}

/** @param bytes all that stands behind the last error @throws RecordDecodeError */
function decodeFailure(bytes: Uint8Array, atUs: number): DeliveryFailure {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 4;
  const text = (): string | null => {
    const length = at + 4 > bytes.length ? bytes.length : view.getUint32(at, true);
    at += 4;
    if (length === NULL_LENGTH) return null;
    if (length > bytes.length - at) throw new RecordDecodeError("a delivery's first failure breaks off");
    at += length;
    return decodeText(bytes.subarray(at - length, at));
  };
  const [error, webhookName] = [text(), text()];
  if (at !== bytes.length) throw new RecordDecodeError("bytes behind a delivery's first failure");
  return { atUs, statusCode: view.getUint32(0, true) || null, error, webhookName };
}

/** Where the part behind the last error begins. @throws RecordDecodeError */
function lengthToError(bytes: Uint8Array, view: DataView): number {
  if (bytes.length < DELIVERY_BYTES) throw new RecordDecodeError(`a delivery of ${bytes.length} bytes`);
  const errorBytes = view.getUint32(116, true);
  const length = DELIVERY_BYTES + (errorBytes === NULL_LENGTH ? 0 : errorBytes);
  if (view.getUint8(67) === 1 ? bytes.length < length : bytes.length !== length)
    throw new RecordDecodeError(`a delivery of ${bytes.length} bytes, ${length} expected`);
  return length;
}

/**
 * Of a delivery what the view keeps: `decodeDelivery` makes texts of all ids. Of what else it refuses, codes of the event and the failure
 * mode and texts are not looked at: the recorder decodes all of a record before the view has it.
 * @param bytes behind the origin @throws RecordDecodeError
 */
export function deliveryPlaces(bytes: Uint8Array): DeliveryPlaces {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = lengthToError(bytes, view);
  if (view.getUint8(67) === 1) decodeFailure(bytes.subarray(length), 0);
  const status = view.getUint8(66);
  named(DELIVERY_STATUSES, status, "delivery status");
  const isOfNoRun = view.getUint32(32) === 0 && view.getUint32(36) === 0;
  const createdAtUs = uint53(view, 76);
  const isPaused = uint53(view, 92) !== 0;
  return { idAt: 0, webhookIdAt: 16, runIdAt: isOfNoRun ? -1 : 32, status, createdAtUs, isPaused };
}

/** @param bytes behind the origin @throws RecordDecodeError */
export function decodeDelivery(bytes: Uint8Array): Delivery {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = lengthToError(bytes, view);
  const errorBytes = view.getUint32(116, true);
  const hasFailure = view.getUint8(67) === 1;
  const runId = readUuid(bytes, 32);
  const time = (nth: number): number | null => uint53(view, 76 + 8 * nth) || null;
  const lastStatusCode = view.getUint32(72, true) || null;
  const lastError = errorBytes === NULL_LENGTH ? null : decodeText(bytes.subarray(DELIVERY_BYTES, length));
  const failedAtUs = time(4);
  let firstFailure: DeliveryFailure | null = null;
  if (hasFailure) firstFailure = decodeFailure(bytes.subarray(length), failedAtUs ?? 0);
  else if (failedAtUs !== null) {
    firstFailure = { atUs: failedAtUs, statusCode: lastStatusCode, error: lastError, webhookName: null };
  }
  return {
    id: readUuid(bytes, 0),
    webhookId: readUuid(bytes, 16),
    runId: runId === NO_RUN ? null : runId,
    eventId: readUuid(bytes, 48),
    eventName: named(EVENT_NAMES, view.getUint8(64), "event name"),
    onFailureMode: named(ON_FAILURE_MODES, view.getUint8(65), "failure mode"),
    status: named(DELIVERY_STATUSES, view.getUint8(66), "delivery status"),
    attempts: view.getUint32(68, true),
    lastStatusCode,
    lastError,
    createdAtUs: uint53(view, 76),
    updatedAtUs: uint53(view, 84),
    nextRetryAtUs: time(2),
    deliveredAtUs: time(3),
    firstFailure,
  };
}

/** Bytes of the events at the end of an index section; none without events. */
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

/** The events of an index section, as they lie there: of their deliveries, hundreds of an event, each reader takes what it wants. */
export class IndexedEvents {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  /** Where each begins. */
  readonly #heads: number[] = [];
  /** Of all events together. */
  readonly deliveryCount: number;

  /** @param bytes all that stands behind the other parts of the index section; they are not copied @throws RecordDecodeError */
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let at = 0;
    const take = (length: number): number => {
      const start = at;
      if (length > bytes.length - at) throw new RecordDecodeError("the events of an index section break off");
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
    if (count === 0 || at !== bytes.length) throw new RecordDecodeError("bytes behind the events of an index section");
    this.deliveryCount = (at - 4 - EVENT_BYTES * count) / EVENT_DELIVERY_BYTES;
  }

  /**
   * Tells of deliveries, in order, where the id and the webhook's begin in `bytes`, and when it began.
   * @param start of the first, counted from 0 through all events @param end behind the last
   */
  forEachDelivery(
    tell: (bytes: Uint8Array, idAt: number, webhookIdAt: number, timeUs: number) => void,
    start = 0,
    end = this.deliveryCount,
  ): void {
    let before = 0;
    for (const head of this.#heads) {
      const timeUs = uint53(this.#view, head + 20);
      const count = this.#view.getUint32(head + 28, true);
      for (let nth = Math.max(0, start - before); nth < Math.min(count, end - before); nth++) {
        const at = head + EVENT_BYTES + EVENT_DELIVERY_BYTES * nth;
        tell(this.#bytes, at, at + 16, timeUs);
      }
      before += count;
    }
  }

  /** What tests, and people, see of it. */
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

function named<const Name extends string>(names: readonly Name[], code: number, what: string): Name {
  const name = names[code];
  if (name === undefined) throw new RecordDecodeError(`${what} ${code}`);
  return name;
}

function decodeText(bytes: Uint8Array): string {
  try {
    return textDecoder.decode(bytes);
  } catch {
    throw new RecordDecodeError("an error text that is not UTF-8");
  }
}

function setUint53(view: DataView, at: number, value: number): void {
  view.setUint32(at, value % HIGH, true);
  view.setUint32(at + 4, Math.floor(value / HIGH), true);
}

function uint53(view: DataView, at: number): number {
  return view.getUint32(at, true) + view.getUint32(at + 4, true) * HIGH;
}
