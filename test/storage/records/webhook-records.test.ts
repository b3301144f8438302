import t from "tap";
import { readUuid } from "../../../core/identifiers.js";
import { DELIVERY_STATUSES, type Delivery } from "../../../core/webhook/delivery.js";
import { newDelivery } from "../../../core/webhook/emit-run-event.js";
import { EVENT_NAMES, NO_SECRETS } from "../../../core/webhook/webhook.js";
import { failureNote } from "../../../core/webhook/webhook-response.js";
import { encodeEvents, IndexedEvents } from "../../../storage/records/event-index.js";
import { encodeMessagePack } from "../../../storage/records/message-pack.js";
import { decodeIndex, RecordDecodeError } from "../../../storage/records/record-index.js";
import { ResendItems } from "../../../storage/records/resend-record.js";
import {
  decodeDelivery,
  decodeDeliveryBody,
  decodeWebhookSecrets,
  deliveryPlaces,
  encodeWebhookChange,
} from "../../../storage/records/webhook-record.js";
import { idOf, RUN_ID } from "../../helpers/link/cell-messages.js";
import { type Encoded, stored } from "../../helpers/webhooks/delivery-records.js";
import {
  ATTEMPT,
  DELIVERY_ID,
  EVENT,
  EVENT_ID,
  failedDelivery,
  RESEND,
  resendChanges,
  SECRET,
  SECRETS,
  WEBHOOK,
  WEBHOOK_ID,
  webhookChanges,
} from "../../helpers/webhooks/webhook-fixtures.js";

t.test("index sections and bodies come back as they were", async (t) => {
  const [put, deleted, delivery] = webhookChanges(RUN_ID).map(encodeWebhookChange) as [Encoded, Encoded, Encoded];
  t.strictSame(decodeIndex(21, put.index), { type: 21, origin: null, shown: { webhook: WEBHOOK } });
  t.strictSame(decodeWebhookSecrets(put.body), SECRETS);
  for (const hidden of [SECRET, "the old one", "k 1"]) {
    t.notOk(Buffer.from(put.index).includes(hidden), "what is write-only is not in what answers are made of");
  }
  t.strictSame(decodeIndex(21, deleted.index), {
    ...{ type: 21, origin: null, shown: { deleted: { id: WEBHOOK_ID, name: WEBHOOK.name } } },
  });
  t.strictSame(decodeWebhookSecrets(deleted.body), NO_SECRETS);
  t.strictSame(decodeIndex(22, delivery.index), { type: 22, origin: null, delivery: failedDelivery(RUN_ID) });
  t.strictSame(decodeDeliveryBody(delivery.body), { history: [ATTEMPT], payload: null });
  const fresh = newDelivery({ id: DELIVERY_ID, webhookId: WEBHOOK_ID, onFailureMode: "IGNORE" }, EVENT, null);
  const alone = encodeWebhookChange({ kind: "delivery_put", delivery: fresh, history: [], payload: "{}" });
  t.strictSame(decodeIndex(22, alone.index), { type: 22, origin: null, delivery: fresh });
});

t.test("a webhook's record of a release without rotation, headers and Ed25519", async (t) => {
  const { signing, previousSecretExpiresAtUs, headerNames, ...older } = WEBHOOK;
  const index = Buffer.concat([Buffer.alloc(9), Buffer.from(JSON.stringify({ webhook: older }))]);
  const webhook = { ...WEBHOOK, signing: "hmac", previousSecretExpiresAtUs: null, headerNames: [] };
  t.strictSame(decodeIndex(21, index), { type: 21, origin: null, shown: { webhook } });
  t.strictSame(decodeWebhookSecrets(encodeMessagePack({ secret: SECRET })), { ...NO_SECRETS, secret: SECRET });
  for (const wrong of [{ secret: 1 }, { secret: null, previousSecret: 1 }, { secret: null, headers: [["X-A"]] }]) {
    t.throws(() => decodeWebhookSecrets(encodeMessagePack(wrong)), RecordDecodeError);
  }
});

t.test("golden bytes of a delivery and of events, little-endian", async (t) => {
  const [, , { index }] = webhookChanges(RUN_ID).map(encodeWebhookChange) as [Encoded, Encoded, Encoded];
  const hex = Buffer.from(index).toString("hex");
  const uuid = (id: string): string => id.replaceAll("-", "");
  t.equal(
    hex,
    [
      "00".repeat(9),
      ...[uuid(DELIVERY_ID), uuid(WEBHOOK_ID), uuid(RUN_ID), uuid(EVENT.id)],
      ...["01", "01", "02", "01", "03000000", "f7010000"],
      ...["6640b38be6520600", "6d40b38be6520600", "0000000000000000", "0000000000000000", "6b40b38be6520600"],
      ...["0d000000", Buffer.from("the réceiver").toString("hex")],
      ...["94010000", "06000000", Buffer.from("fírst").toString("hex"), "03000000", Buffer.from("MES").toString("hex")],
    ].join(""),
  );
  t.equal(
    Buffer.from(encodeEvents([EVENT])).toString("hex"),
    [
      ...["01000000", uuid(EVENT.id), "01000000", "6640b38be6520600", "02000000"],
      ...[uuid(DELIVERY_ID), uuid(WEBHOOK_ID), "01000000"],
      ...[uuid(EVENT.id), uuid(EVENT.id), "00010000"],
    ].join(""),
  );
});

t.test("the note of a delivery that failed says what it was then, whatever came later", async (t) => {
  const name = "MES";
  const failed: Delivery = {
    ...failedDelivery(RUN_ID),
    firstFailure: null,
    lastStatusCode: null,
    lastError: "refused",
  };
  const atUs = failed.updatedAtUs;
  const firstFailure = { atUs, statusCode: null, error: "refused", webhookName: name };
  const [before] = failureNote({ delivery: { ...failed, firstFailure }, webhookName: name });
  const delivered: Delivery = { ...failed, status: "delivered", lastStatusCode: 200, lastError: null, firstFailure };
  t.strictSame(failureNote({ delivery: delivered, webhookName: "renamed" }), [before]);
  t.match(before, { timestampUs: atUs, data: { status: "failed", last_error: "refused", webhook_name: name } });
  const { index } = encodeWebhookChange({ kind: "delivery_put", delivery: delivered, history: [], payload: null });
  t.strictSame(decodeDelivery(index.subarray(9)), delivered);
});

t.test("every cut of a delivery and of events is refused", async (t) => {
  const [, , { index }] = webhookChanges(RUN_ID).map(encodeWebhookChange) as [Encoded, Encoded, Encoded];
  const delivery = index.subarray(9);
  for (let length = 0; length < delivery.length; length++) {
    t.throws(() => decodeDelivery(delivery.subarray(0, length)), RecordDecodeError);
    t.throws(() => deliveryPlaces(delivery.subarray(0, length)), RecordDecodeError);
  }
  const events = encodeEvents([EVENT, EVENT]);
  for (let length = 1; length < events.length; length++) {
    t.throws(() => new IndexedEvents(events.subarray(0, length)), RecordDecodeError);
  }
  t.equal(new IndexedEvents(events).list().length, 2);
  t.throws(() => new IndexedEvents(Buffer.concat([events, Buffer.alloc(1)])), RecordDecodeError);
});

t.test("what the view takes of deliveries, without making texts of ids, is what decoding them gives", async (t) => {
  const test = { ...failedDelivery(RUN_ID), id: idOf(7), runId: null, nextRetryAtUs: null };
  for (const delivery of [
    failedDelivery(RUN_ID),
    { ...failedDelivery(RUN_ID), status: "delivered" } as Delivery,
    test,
  ]) {
    const bytes = stored(delivery);
    const places = deliveryPlaces(bytes);
    const { idAt, webhookIdAt, runIdAt, status, createdAtUs, isPaused } = places;
    t.equal(EVENT_NAMES[places.eventName], delivery.eventName);
    t.equal(places.updatedAtUs, delivery.updatedAtUs);
    t.equal(places.deliveredAtUs || null, delivery.deliveredAtUs);
    t.equal(places.firstFailedAtUs || null, delivery.firstFailure?.atUs ?? null);
    t.equal(readUuid(bytes, idAt), delivery.id);
    t.equal(readUuid(bytes, webhookIdAt), delivery.webhookId);
    t.equal(runIdAt < 0 ? null : readUuid(bytes, runIdAt), delivery.runId);
    t.equal(DELIVERY_STATUSES[status], delivery.status);
    t.equal(createdAtUs, delivery.createdAtUs);
    t.equal(isPaused, delivery.nextRetryAtUs !== null);
  }
  const other = stored(test);
  other[66] = DELIVERY_STATUSES.length;
  t.throws(() => deliveryPlaces(other), RecordDecodeError, "no status of a delivery");
  const events = new IndexedEvents(encodeEvents([EVENT, { ...EVENT, timeUs: EVENT.timeUs + 1 }]));
  const told: unknown[] = [];
  events.forEachDelivery((bytes, idAt, webhookIdAt, timeUs) =>
    told.push([readUuid(bytes, idAt), readUuid(bytes, webhookIdAt), timeUs]),
  );
  const listed = events.list();
  t.same(JSON.parse(JSON.stringify({ events })), { events: listed }, "as JSON");
  t.equal(listed.length, 2);
  t.same(
    told,
    listed.flatMap(({ timeUs, deliveries }) => deliveries.map(({ id, webhookId }) => [id, webhookId, timeUs])),
  );
  const unknown = encodeEvents([EVENT]);
  unknown[4 + 32 + 32] = 9;
  t.throws(() => new IndexedEvents(unknown), RecordDecodeError, "no failure mode");
});

t.test("a resend and its deliveries come back as they were, in these bytes", async (t) => {
  const [begun, done] = resendChanges(RUN_ID).map(encodeWebhookChange) as [Encoded, Encoded];
  t.strictSame(decodeIndex(23, begun.index), { type: 23, origin: null, resend: RESEND });
  const items = new ResendItems(begun.body);
  t.strictSame(
    [0, 1].map((nth) => items.item(nth)),
    [
      { deliveryId: DELIVERY_ID, missed: null },
      { deliveryId: EVENT_ID, missed: { runId: RUN_ID, eventName: "ProgramFailed" } },
    ],
  );
  t.equal(done.body.length, 0);
  const uuid = (id: string): string => id.replaceAll("-", "");
  const head = ["00".repeat(9), uuid(RESEND.id), uuid(WEBHOOK_ID), "01000000"];
  const counts = ["14000000", "02000000", "02000000", "01000000", "01000000"];
  t.equal(Buffer.from(done.index).toString("hex"), [...head, ...counts].join(""));
  const second = [uuid(EVENT_ID), uuid(RUN_ID), "02"];
  t.equal(Buffer.from(begun.body).toString("hex"), [uuid(DELIVERY_ID), "00".repeat(17), ...second].join(""));
  t.throws(() => new ResendItems(begun.body.subarray(1)), RecordDecodeError);
  t.throws(() => decodeIndex(23, begun.index.subarray(0, -1)), RecordDecodeError);
});
