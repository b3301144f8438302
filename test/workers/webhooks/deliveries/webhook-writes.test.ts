import t from "tap";
import { LIMITS } from "../../../../core/limits.js";
import type { AddressPolicy } from "../../../../core/webhook/address-policy.js";
import { NO_SECRETS, signingSecrets, WEBHOOK_DEFAULTS } from "../../../../core/webhook/webhook.js";
import type { CreateWebhook, UpdateWebhook } from "../../../../core/webhook/webhook-request.js";
import type { DeliveryDocuments } from "../../../../http/documents/delivery-documents.js";
import type { ThreadSlices } from "../../../../http/documents/thread-slices.js";
import { deliveryRoutes } from "../../../../http/routes/webhooks/delivery-routes.js";
import { resendRoutes } from "../../../../http/routes/webhooks/resend-routes.js";
import { secretRoutes } from "../../../../http/routes/webhooks/secret-routes.js";
import { webhookRoutes } from "../../../../http/routes/webhooks/webhook-routes.js";
import type { View } from "../../../../storage/view/view.js";
import { type KeptWebhook, WebhookState } from "../../../../workers/webhooks/deliveries/webhook-state.js";
import { WebhookWrites } from "../../../../workers/webhooks/webhook-writes.js";
import { countedId } from "../../../helpers/webhooks/scheduler-harness.js";

const CREATE: CreateWebhook = {
  settings: { ...WEBHOOK_DEFAULTS, name: "mes", url: "http://10.0.0.1/", subscribedEvents: ["ProgramFailed"] },
  secret: null,
  headers: [],
};

t.test("there is a most of webhooks; a deleted one makes room", async (t) => {
  const state = new WebhookState();
  let count = 0;
  const scheduler = new WebhookWrites({
    state,
    tick: () => ++count,
    wallUs: () => count,
    newId: (timeUs) => countedId(timeUs),
  });
  for (let nth = 0; nth < LIMITS.webhooks; nth++) state.apply(scheduler.create(CREATE));
  t.throws(() => scheduler.create(CREATE), /there are already 1000 webhooks/);
  const deletion = scheduler.delete(countedId(1));
  if (deletion !== undefined) state.apply(deletion);
  t.equal(scheduler.delete(countedId(1)), undefined, "a second one changes nothing");
  t.equal(scheduler.create(CREATE).webhook.id, countedId(LIMITS.webhooks + 1));
});

t.test("all that writes or sends needs the scope to manage, and what only reads does not", async (t) => {
  const policy = (): AddressPolicy => ({ allow: null, deny: [], own: [], ownPort: null });
  const routes = [
    ...webhookRoutes({} as View, () => Promise.reject(), policy),
    ...secretRoutes({} as View, () => Promise.reject(), policy),
    ...resendRoutes({} as View, () => Promise.reject(), {} as ThreadSlices),
    ...deliveryRoutes({} as View, {} as DeliveryDocuments, () => Promise.reject()),
  ];
  t.equal(routes.length, 14);
  for (const { method, path, scope } of routes)
    t.equal(scope, method === "GET" ? "read" : "manage", `${method} ${path}`);
});

/** One webhook with this secret, and what is said of it in turn. */
function rotating(secret: string | null) {
  const state = new WebhookState();
  const clock = { wallUs: 1_000_000 };
  let count = 0;
  const writes = new WebhookWrites({ state, tick: () => ++count, wallUs: () => clock.wallUs, newId: countedId });
  const created = writes.create({ ...CREATE, secret });
  state.apply(created);
  const { id } = created.webhook;
  const rotate = (to: string, overlapSeconds: number, force = false): void =>
    state.apply(writes.rotateSecret(id, { secret: to, overlapSeconds, force }));
  const patch = (change: Partial<UpdateWebhook>): void => {
    const patched = writes.update(id, { settings: {}, secret: undefined, headers: undefined, ...change });
    if (patched !== undefined) state.apply(patched);
  };
  const signing = (): string[] => {
    const { webhook, secrets } = state.get(id) as KeptWebhook;
    return signingSecrets(webhook, secrets, clock.wallUs);
  };
  return { clock, rotate, patch, signing, kept: () => state.get(id) as KeptWebhook };
}

t.test("which secrets sign, from one rotation to the next", async (t) => {
  const { clock, rotate, patch, signing, kept } = rotating("a");
  rotate("b", 10);
  t.same(signing(), ["b", "a"]);
  t.equal(kept().webhook.previousSecretExpiresAtUs, clock.wallUs + 10_000_000);
  t.throws(() => rotate("c", 10), /two secrets overlap until 1970-01-01T00:00:11/);
  t.same(signing(), ["b", "a"], "a refused rotation changes nothing");
  patch({ settings: { name: "renamed" } });
  t.same(signing(), ["b", "a"], "another change leaves the overlap");
  rotate("b", 20, true);
  t.same(signing(), ["b", "a"], "the same secret again does not end the one before");
  rotate("c", 10, true);
  t.same(signing(), ["c", "b"], "by force the oldest ends");
  clock.wallUs += 10_000_000 - 1;
  t.same(signing(), ["c", "b"]);
  clock.wallUs++;
  t.same(signing(), ["c"], "the overlap is over");
  rotate("d", 0);
  t.same(signing(), ["d"], "without overlap");
  rotate("e", 10);
  patch({ secret: "f" });
  t.same(signing(), ["f"], "a PATCH of the secret ends the overlap");
  rotate("g", 10);
  patch({ secret: "g" });
  t.same(signing(), ["g"], "also one of the same secret");
  rotate("h", 10);
  patch({ secret: null });
  t.same([signing(), kept().webhook.hasSecret], [[], false]);
  rotate("i", 10);
  t.same([signing(), kept().webhook.hasSecret], [["i"], true], "a first secret has none before it");
  t.equal(kept().webhook.previousSecretExpiresAtUs, null);
});

t.test("a secret whose time is over is not written again", async (t) => {
  const { clock, rotate, patch, kept } = rotating("a");
  rotate("b", 10);
  clock.wallUs += 10_000_000;
  patch({});
  t.equal(kept().secrets.previousSecret, "a", "nothing is written without a change");
  patch({ settings: { name: "renamed" } });
  t.same(kept().secrets, { ...NO_SECRETS, secret: "b" });
  t.equal(kept().webhook.previousSecretExpiresAtUs, null);
});

t.test("custom headers are replaced all together, and stay otherwise", async (t) => {
  const { patch, kept } = rotating("a");
  patch({
    headers: [
      ["X-A", "1"],
      ["X-B", "2"],
    ],
  });
  t.same(kept().webhook.headerNames, ["X-A", "X-B"]);
  const { updatedAtUs } = kept().webhook;
  patch({
    headers: [
      ["X-A", "1"],
      ["X-B", "2"],
    ],
  });
  t.equal(kept().webhook.updatedAtUs, updatedAtUs, "the same again changes nothing");
  patch({
    headers: [
      ["X-A", "3"],
      ["X-B", "2"],
    ],
  });
  t.ok(kept().webhook.updatedAtUs > updatedAtUs, "a value alone is a change");
  patch({ secret: "b" });
  t.same(kept().secrets.headers, [
    ["X-A", "3"],
    ["X-B", "2"],
  ]);
  patch({ headers: [] });
  t.same([kept().webhook.headerNames, kept().secrets.headers], [[], []]);
});
