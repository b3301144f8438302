/**
 * The records of webhooks and deliveries. All integers are little-endian; a 53-bit integer is two u32, low first; a time of 0 is null.
 * Each begins with an empty origin (index-layout.ts), because no producer sends them.
 *
 * | type | record | index section after the origin | body |
 * |---|---|---|---|
 * | 21 | webhook | JSON text `{"webhook":…}` of what is shown, or `{"deleted":{id,name}}` | MessagePack `{secret, previousSecret, headers}` |
 * | 22 | delivery | below | MessagePack `{history, payload}` |
 * | 23 | resend | resend-record.ts | resend-record.ts |
 *
 * What is write-only is apart, in the body: the secrets, and custom headers as `[name, value]` in order. Answers, `inspect` and `export` use
 * only the index section. Only the recorder reads the body; `check` decodes it and discards it.
 *
 * A delivery has its own payload in the body if no run's record has it: of a test, and of a missed event that no webhook subscribed to. Else it is null.
 *
 * Older records have only `secret` in the body, and neither `signing`, `previousSecretExpiresAtUs` nor `headerNames` in the text. They mean "hmac",
 * no secret before, and no custom headers.
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
 * | 67 | 1 | 1: the first failure follows the last error; 0: there is none |
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
 */

import { isUuidV7, readUuid, writeUuid } from "../../core/identifiers.js";
import { isPlainObject } from "../../core/json/json.js";
import {
  DELIVERY_STATUSES,
  type Delivery,
  type DeliveryAttempt,
  type DeliveryFailure,
} from "../../core/webhook/delivery.js";
import {
  EVENT_NAMES,
  NO_SECRETS,
  ON_FAILURE_MODES,
  WEBHOOK_DEFAULTS,
  type Webhook,
  type WebhookSecrets,
} from "../../core/webhook/webhook.js";
import type { WebhookChange } from "../../core/webhook/webhook-change.js";
import { NULL_LENGTH, named, setUint53, uint53 } from "./index-fields.js";
import { decodeMap, encodeMessagePack } from "./message-pack.js";
import { RecordDecodeError } from "./record-decode-error.js";
import { encodeResend } from "./resend-record.js";

export const WEBHOOK_RECORD_TYPE = { webhook: 21, delivery: 22, resend: 23 } as const;

const ORIGIN_BYTES = 9;
const DELIVERY_BYTES = 120;
const NO_RUN = "00000000-0000-0000-0000-000000000000";

/** What the index section of a webhook's record shows. */
export type WebhookIndex =
  | { webhook: Webhook; deleted?: undefined }
  | { webhook?: undefined; deleted: Pick<Webhook, "id" | "name"> };

/** What the view keeps of a delivery's record. Ids are given as the offsets of their 16 bytes, so that no text is made. */
export interface DeliveryPlaces {
  readonly idAt: number;
  readonly webhookIdAt: number;
  /** -1 for a delivery of no run. */
  readonly runIdAt: number;
  /** Places in EVENT_NAMES and DELIVERY_STATUSES. */
  readonly eventName: number;
  readonly status: number;
  readonly createdAtUs: number;
  readonly updatedAtUs: number;
  /** 0: never. */
  readonly deliveredAtUs: number;
  readonly firstFailedAtUs: number;
  /** True in the pause before the next attempt. */
  readonly isPaused: boolean;
}

const textEncoder = new TextEncoder();
const textDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function encodeWebhookChange(change: WebhookChange): {
  type: (typeof WEBHOOK_RECORD_TYPE)[keyof typeof WEBHOOK_RECORD_TYPE];
  index: Uint8Array;
  body: Uint8Array;
} {
  if (change.kind === "resend_put") return { type: 23, index: encodeResend(change.resend), body: change.items };
  if (change.kind === "delivery_put") {
    const { history, payload } = change;
    return { type: 22, index: encodeDelivery(change.delivery), body: encodeMessagePack({ history, payload }) };
  }
  const shown = change.kind === "webhook_put" ? { webhook: change.webhook } : { deleted: change.webhook };
  const text = textEncoder.encode(JSON.stringify(shown satisfies WebhookIndex));
  const index = new Uint8Array(ORIGIN_BYTES + text.length);
  index.set(text, ORIGIN_BYTES);
  const secrets = change.kind === "webhook_put" ? change.secrets : NO_SECRETS;
  return { type: 21, index, body: encodeMessagePack(secrets) };
}

/** @throws RecordDecodeError */
export function decodeWebhookIndex(bytes: Uint8Array): WebhookIndex {
  let shown: unknown;
  try {
    shown = JSON.parse(textDecoder.decode(bytes));
  } catch {
    throw new RecordDecodeError("the webhook is not JSON in UTF-8");
  }
  const one = isPlainObject(shown) ? (shown.webhook ?? shown.deleted) : undefined;
  if (!isPlainObject(one) || typeof one.id !== "string" || !isUuidV7(one.id) || typeof one.name !== "string") {
    throw new RecordDecodeError("the webhook has no id or no name");
  }
  const { subscribedEvents, createdAtUs, updatedAtUs } = one;
  const hasTimes = Number.isSafeInteger(createdAtUs) && Number.isSafeInteger(updatedAtUs);
  if ((shown as WebhookIndex).webhook !== undefined && !(Array.isArray(subscribedEvents) && hasTimes)) {
    throw new RecordDecodeError("the webhook lacks its events or its times");
  }
  const { webhook, deleted } = shown as WebhookIndex;
  return webhook === undefined ? { deleted } : { webhook: { ...OLDER_WEBHOOK, ...webhook } };
}

/** What an older record does not say. */
const OLDER_WEBHOOK = { signing: WEBHOOK_DEFAULTS.signing, previousSecretExpiresAtUs: null, headerNames: [] } as const;

/** Only for the recorder, and for `check`, which does not show it. @throws RecordDecodeError */
export function decodeWebhookSecrets(body: Uint8Array): WebhookSecrets {
  const { secret, previousSecret = null, headers = [] } = decodeMap(body);
  if (!isTextOrNull(secret) || !isTextOrNull(previousSecret)) {
    throw new RecordDecodeError("a secret of the webhook is not a text");
  }
  const isHeader = (one: unknown): boolean => Array.isArray(one) && one.length === 2 && one.every(isText);
  if (!Array.isArray(headers) || !headers.every(isHeader)) {
    throw new RecordDecodeError("a header of the webhook is not a name and a value");
  }
  return { secret, previousSecret, headers: headers as WebhookSecrets["headers"] };
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || isText(value);
}

/** @throws RecordDecodeError */
export function decodeDeliveryBody(body: Uint8Array): { history: DeliveryAttempt[]; payload: string | null } {
  const { history, payload } = decodeMap(body);
  const isWhole = Array.isArray(history) && history.every(isPlainObject);
  if (!isWhole || (payload !== null && typeof payload !== "string")) {
    throw new RecordDecodeError("the delivery has no history, or a payload that is not a text");
  }
  return { history: history as unknown as DeliveryAttempt[], payload };
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

/** The part of a delivery after the last error. */
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

/** @param bytes everything after the last error @throws RecordDecodeError */
function decodeFailure(bytes: Uint8Array, atUs: number): DeliveryFailure {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 4;
  const text = (): string | null => {
    const length = at + 4 > bytes.length ? bytes.length : view.getUint32(at, true);
    at += 4;
    if (length === NULL_LENGTH) return null;
    if (length > bytes.length - at)
      throw new RecordDecodeError("the text of the delivery's first failure is cut short");
    at += length;
    return decodeText(bytes.subarray(at - length, at));
  };
  const [error, webhookName] = [text(), text()];
  if (at !== bytes.length) throw new RecordDecodeError("there are bytes behind the delivery's first failure");
  return { atUs, statusCode: view.getUint32(0, true) || null, error, webhookName };
}

/** Where the part after the last error begins. @throws RecordDecodeError */
function lengthToError(bytes: Uint8Array, view: DataView): number {
  if (bytes.length < DELIVERY_BYTES) throw new RecordDecodeError(`the delivery has only ${bytes.length} bytes`);
  const errorBytes = view.getUint32(116, true);
  const length = DELIVERY_BYTES + (errorBytes === NULL_LENGTH ? 0 : errorBytes);
  if (view.getUint8(67) === 1 ? bytes.length < length : bytes.length !== length)
    throw new RecordDecodeError(`the delivery has ${bytes.length} bytes instead of ${length}`);
  return length;
}

/**
 * What the view keeps of a delivery, without the texts that `decodeDelivery` makes. Event name, failure mode and texts are not checked: the recorder
 * decodes the whole record before the view gets it.
 *
 * @param bytes the index section without the origin
 * @throws RecordDecodeError
 */
export function deliveryPlaces(bytes: Uint8Array): DeliveryPlaces {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = lengthToError(bytes, view);
  if (view.getUint8(67) === 1) decodeFailure(bytes.subarray(length), 0);
  const status = view.getUint8(66);
  named(DELIVERY_STATUSES, status, "delivery status");
  const isOfNoRun = view.getUint32(32) === 0 && view.getUint32(36) === 0;
  const createdAtUs = uint53(view, 76);
  return {
    ...{ idAt: 0, webhookIdAt: 16, runIdAt: isOfNoRun ? -1 : 32, eventName: view.getUint8(64), status, createdAtUs },
    ...{ updatedAtUs: uint53(view, 84), isPaused: uint53(view, 92) !== 0, deliveredAtUs: uint53(view, 100) },
    firstFailedAtUs: uint53(view, 108),
  };
}

/** How the delivery failed the last time, or the first time. @param bytes the index section without the origin @throws RecordDecodeError */
export function deliveryError(bytes: Uint8Array, which: "last" | "first"): string | null {
  const { lastError, firstFailure } = decodeDelivery(bytes);
  return which === "last" ? lastError : (firstFailure?.error ?? null);
}

/** @param bytes the index section without the origin @throws RecordDecodeError */
export function decodeDelivery(bytes: Uint8Array): Delivery {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = lengthToError(bytes, view);
  const errorBytes = view.getUint32(116, true);
  const hasFailure = view.getUint8(67) === 1;
  const runId = readUuid(bytes, 32);
  const time = (nth: number): number | null => uint53(view, 76 + 8 * nth) || null;
  return {
    id: readUuid(bytes, 0),
    webhookId: readUuid(bytes, 16),
    runId: runId === NO_RUN ? null : runId,
    eventId: readUuid(bytes, 48),
    eventName: named(EVENT_NAMES, view.getUint8(64), "event name"),
    onFailureMode: named(ON_FAILURE_MODES, view.getUint8(65), "failure mode"),
    status: named(DELIVERY_STATUSES, view.getUint8(66), "delivery status"),
    attempts: view.getUint32(68, true),
    lastStatusCode: view.getUint32(72, true) || null,
    lastError: errorBytes === NULL_LENGTH ? null : decodeText(bytes.subarray(DELIVERY_BYTES, length)),
    createdAtUs: uint53(view, 76),
    updatedAtUs: uint53(view, 84),
    nextRetryAtUs: time(2),
    deliveredAtUs: time(3),
    firstFailure: hasFailure ? decodeFailure(bytes.subarray(length), uint53(view, 108)) : null,
  };
}

function decodeText(bytes: Uint8Array): string {
  try {
    return textDecoder.decode(bytes);
  } catch {
    throw new RecordDecodeError("the error text is not UTF-8");
  }
}
