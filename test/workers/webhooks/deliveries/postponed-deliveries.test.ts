import t from "tap";
import { SchedulerHarness, webhookOf } from "../../../helpers/webhooks/scheduler-harness.js";

const WEBHOOK = webhookOf(1, { maxRetries: 3, retryBackoffSeconds: 0 });

/** One delivery whose attempt is under way, after so many that failed. */
function attempting(failures: number) {
  const harness = SchedulerHarness.serving(WEBHOOK);
  const id = harness.emit([WEBHOOK]).deliveries[0]?.id as string;
  harness.settle();
  for (let nth = 0; nth < failures; nth++) harness.attempt(id, false);
  harness.settle();
  return { harness, id };
}

t.test("a delivery that lacked a connection, and now cannot be read, waits for one cause only", async (t) => {
  const { harness, id } = attempting(1);
  harness.lack(id);
  t.match(harness.scheduler.fault, /they cannot be sent/);
  harness.isUnreadable = () => true;
  harness.timers.advance(5_000);
  harness.answerAllContent();
  t.equal(harness.scheduler.figures.postponed, 1);
  t.match(harness.scheduler.fault, /^since \S+ 1 delivery waits, because stored data cannot be read: EIO$/);
  harness.isUnreadable = () => false;
  harness.timers.advance(5_000);
  harness.answerAllContent();
  t.match(harness.jobs.get(id), { attemptNumber: 2 });
  t.equal(harness.scheduler.fault, null);
});

t.test("a retry of a delivery that lacked a connection reads nothing while its event is kept", async (t) => {
  const { harness, id } = attempting(0);
  const payload = harness.jobs.get(id)?.payload;
  harness.lack(id);
  harness.retry(id, () => {});
  t.same(harness.asked, []);
  t.equal(harness.jobs.get(id)?.payload, payload, "the bytes that all share");
});

t.test("its webhook is deleted during an attempt that lacks a connection: it fails at once", async (t) => {
  const { harness, id } = attempting(0);
  harness.put({ kind: "webhook_deleted", webhook: WEBHOOK });
  harness.scheduler.webhookChanged(WEBHOOK.id);
  t.match(harness.stored(id)?.delivery, { status: "pending" }, "the attempt may still be taken");
  harness.lack(id);
  t.match(harness.stored(id)?.delivery, { status: "failed", attempts: 0, lastError: "the webhook was deleted" });
  t.match(harness.scheduler.figures, { postponed: 0, running: 0, payloadBytes: 0 });
});
