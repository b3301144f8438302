import t from "tap";
import { ServiceError } from "../../../../core/service-errors.js";
import type { InlineAnswer } from "../../../../workers/webhooks/deliveries/tracked-delivery.js";
import { listOf } from "../../../helpers/list-of.js";
import { SchedulerHarness, webhookOf } from "../../../helpers/webhooks/scheduler-harness.js";

/** What a retry was answered: its delivery or the error's code; `waiting` before it is. */
function retried(one: SchedulerHarness, id: string) {
  const seen = { answer: "waiting", params: {} as object };
  const request = one.retry(id, (outcome) => {
    if (seen.answer !== "waiting") throw new Error(`${id} is answered twice`);
    seen.answer = "error" in outcome ? outcome.error.data.code : outcome.deliveryId;
    if ("error" in outcome) seen.params = outcome.error.data.params;
  });
  return { seen, request };
}

/** Deliveries of one event each that failed. */
function failedOnes(one: SchedulerHarness, webhook: ReturnType<typeof webhookOf>, count: number): string[] {
  return Array.from({ length: count }, () => {
    const id = one.emit([webhook]).deliveries[0]?.id as string;
    one.settle();
    one.refuse(id);
    one.settle();
    return id;
  });
}

t.test(
  "a test of a webhook that is deleted before its attempt begins is told that there is no such webhook",
  async (t) => {
    const webhook = webhookOf(1);
    const one = SchedulerHarness.serving(webhook);
    let answer: Parameters<InlineAnswer>[0] | undefined;
    one.scheduler.test(webhook.id, (outcome) => {
      answer = outcome;
    });
    one.put({ kind: "webhook_deleted", webhook });
    one.scheduler.webhookChanged(webhook.id);
    one.settle();
    t.match(answer, {
      error: { data: { code: "webhook_not_found", params: { field: "webhook_id", value: webhook.id } } },
    });
    t.equal(one.jobs.size, 0);
  },
);

t.test("retries are bounded for each receiver, and a slow one takes nothing from others", async (t) => {
  const [slow, fine] = [webhookOf(1), webhookOf(2)];
  const one = SchedulerHarness.serving(slow, fine);
  const ids = failedOnes(one, slow, 256);
  const [other] = failedOnes(one, fine, 1) as [string];
  const all = ids.map((id) => retried(one, id));
  one.answerAllContent();
  t.equal(one.jobs.size, 8, "at a time");
  const refused = all.filter(({ seen }) => seen.answer === "unavailable");
  t.equal(refused.length, 256 - 64, "the others are refused at once");
  t.same(refused[0]?.seen.params, { retry_after_seconds: 10 });
  const { seen } = retried(one, other);
  one.answerAllContent();
  one.attempt(other, true);
  one.settle();
  t.equal(seen.answer, other, "while all of the slow one's are held open");
  // One round of attempts ends at the end of its window; those that cannot end in time any more are not begun.
  const begun = new Set(one.jobs.keys());
  one.timers.advance(10_000);
  for (const id of begun) one.attempt(id, false);
  one.settle();
  one.answerAllContent();
  t.equal(one.jobs.size, 8, "the next round");
  const second = [...one.jobs.keys()];
  one.timers.advance(8_000);
  t.same(
    all.slice(0, 64).map(({ seen: { answer } }) => answer),
    ids.slice(0, 64).map((id) => (begun.has(id) ? id : second.includes(id) ? "waiting" : "unavailable")),
  );
  const overdue = all.slice(0, 64).filter(({ seen: { answer } }) => answer === "unavailable");
  for (const { seen } of overdue) t.same(seen.params, { retry_after_seconds: 10 });
  t.ok(overdue.length > 0);
  for (const id of second) one.attempt(id, false);
  one.settle();
  t.equal(one.jobs.size, 0, "nothing that nobody waits for is made");
  t.equal(all.filter(({ seen: { answer } }) => answer === "waiting").length, 0);
  t.match(one.scheduler.figures, { running: 0, waiting: 0, payloadBytes: 0 });
  const last = retried(one, ids[200] as string);
  one.answerAllContent();
  t.equal(one.jobs.size, 1, "there is room again");
  one.attempt(ids[200] as string, true);
  one.settle();
  t.equal(last.seen.answer, ids[200]);
});

t.test("a delivery keeps its latest attempts, however often it is retried, and counts all", async (t) => {
  const webhook = webhookOf(1, { maxRetries: 3 });
  const one = SchedulerHarness.serving(webhook);
  const [id] = failedOnes(one, webhook, 1) as [string];
  const before = one.stored(id)?.delivery.attempts ?? 0;
  for (let nth = 0; nth < 40; nth++) {
    const { seen } = retried(one, id);
    one.answerAllContent();
    t.equal(one.jobs.get(id)?.windowLeftMs, 10_000, "a manual one has a window of its own");
    one.attempt(id, false);
    one.settle();
    t.equal(seen.answer, id);
  }
  const stored = one.stored(id);
  t.equal(stored?.delivery.attempts, before + 40);
  t.same(
    stored?.history.map(({ attemptNumber }) => attemptNumber),
    Array.from({ length: 32 }, (_, nth) => before + 9 + nth),
  );
});

t.test("a client that goes away takes back what was not begun; what was is finished and recorded", async (t) => {
  const webhook = webhookOf(1, { maxRetries: 3, retryBackoffSeconds: 5 });
  const one = SchedulerHarness.serving({ ...webhook, maxRetries: 0 });
  const [id] = failedOnes(one, webhook, 1) as [string];
  one.putWebhook(webhook);
  const { request, seen } = retried(one, id);
  const behind = retried(one, id);
  one.answerAllContent();
  const gone = new ServiceError("unavailable", "gone", {});
  for (const dropped of [request, behind.request]) if (dropped !== undefined) one.scheduler.drop(dropped, gone);
  t.equal(behind.seen.answer, "unavailable");
  t.equal(seen.answer, "waiting");
  one.attempt(id, false);
  one.settle();
  t.equal(seen.answer, id);
  t.match(one.stored(id)?.delivery, { attempts: 2 });
  t.equal(one.jobs.size, 0, "the second one is not made");

  // A pending one whose attempt under way was to be the last automatic one goes on by itself, as does a test.
  const pending = one.emit([webhook]).deliveries[0]?.id as string;
  one.settle();
  const third = retried(one, pending).request;
  if (third !== undefined) one.scheduler.drop(third, gone);
  one.attempt(pending, false);
  one.timers.advance(5_000);
  t.match(one.jobs.get(pending), { attemptNumber: 2, windowLeftMs: 5_000 });
  one.attempt(pending, true);
  one.settle();

  // A request that waited in vain until the window of the automatic attempts was over uses up none of them.
  const waiting = one.emit([webhook]).deliveries[0]?.id as string;
  one.settle();
  one.attempt(waiting, false);
  const tests = Array.from({ length: 8 }, () => one.scheduler.test(webhook.id, () => {}));
  one.settle();
  const overdue = retried(one, waiting);
  t.match(one.stored(waiting)?.delivery, { status: "pending", nextRetryAtUs: null }, "its pause is over");
  one.settle();
  t.notOk(one.jobs.has(waiting), "it waits for a place");
  one.timers.advance(18_000);
  t.equal(overdue.seen.answer, "unavailable");
  one.answerAllContent();
  t.match(one.jobs.get(waiting), { attemptNumber: 2, windowLeftMs: 10_000 });
  one.attempt(waiting, true);
  for (const id of one.jobs.keys()) one.attempt(id, true);
  t.equal(tests.length, 8);
  one.settle();
  const test = one.scheduler.test(webhook.id, () => {});
  if (test !== undefined) one.scheduler.drop(test, gone);
  one.settle();
  one.answerAllContent();
  t.match([...one.jobs.values()], listOf({ eventName: "WebhookTest" }));
  one.attempt([...one.jobs.keys()][0] as string, true);
  one.settle();
  t.match(one.scheduler.figures, { running: 0, waiting: 0, payloadBytes: 0 });
});
