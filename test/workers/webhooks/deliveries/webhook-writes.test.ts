import t from "tap";
import { LIMITS } from "../../../../core/limits.js";
import { WEBHOOK_DEFAULTS } from "../../../../core/webhook/webhook.js";
import type { CreateWebhook } from "../../../../core/webhook/webhook-request.js";
import type { DeliveryDocuments } from "../../../../http/documents/delivery-documents.js";
import { deliveryRoutes } from "../../../../http/routes/delivery-routes.js";
import { webhookRoutes } from "../../../../http/routes/webhook-routes.js";
import type { View } from "../../../../storage/view/view.js";
import { WebhookState } from "../../../../workers/webhooks/deliveries/webhook-state.js";
import { WebhookWrites } from "../../../../workers/webhooks/webhook-writes.js";
import { countedId } from "../../../helpers/webhooks/scheduler-harness.js";

const CREATE: CreateWebhook = {
  settings: { ...WEBHOOK_DEFAULTS, name: "mes", url: "http://10.0.0.1/", subscribedEvents: ["ProgramFailed"] },
  secret: null,
};

t.test("there is a most of webhooks; a deleted one makes room", async (t) => {
  const state = new WebhookState();
  let count = 0;
  const scheduler = new WebhookWrites({ state, tick: () => ++count, newId: (timeUs) => countedId(timeUs) });
  for (let nth = 0; nth < LIMITS.webhooks; nth++) state.apply(scheduler.create(CREATE));
  t.throws(() => scheduler.create(CREATE), /there are already 1000 webhooks/);
  const deletion = scheduler.delete(countedId(1));
  if (deletion !== undefined) state.apply(deletion);
  t.equal(scheduler.delete(countedId(1)), undefined, "a second one changes nothing");
  t.equal(scheduler.create(CREATE).webhook.id, countedId(LIMITS.webhooks + 1));
});

t.test("all that writes or sends needs the scope to manage, and what only reads does not", async (t) => {
  const routes = [
    ...webhookRoutes(
      {} as View,
      () => Promise.reject(),
      () => ({ allow: null, deny: [], own: [], ownPort: null }),
    ),
    ...deliveryRoutes({} as View, {} as DeliveryDocuments, () => Promise.reject()),
  ];
  t.equal(routes.length, 9);
  for (const { method, path, scope } of routes)
    t.equal(scope, method === "GET" ? "read" : "manage", `${method} ${path}`);
});
