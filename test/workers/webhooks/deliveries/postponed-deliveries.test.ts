import t from "tap";
import { SchedulerBench, webhookOf } from "../../../helpers/webhooks/scheduler-bench.js";

const WEBHOOK = webhookOf(1, { maxRetries: 3, retryBackoffSeconds: 0 });

/** One delivery whose attempt is under way, after so many that failed. */
function attempting(failures: number) {
  const bench = SchedulerBench.serving(WEBHOOK);
  const id = bench.emit([WEBHOOK]).deliveries[0]?.id as string;
  bench.settle();
  for (let nth = 0; nth < failures; nth++) bench.attempt(id, false);
  bench.settle();
  return { bench, id };
}

t.test("a delivery that lacked a connection, and now cannot be read, waits for one cause only", async (t) => {
  const { bench, id } = attempting(1);
  bench.lack(id);
  t.match(bench.scheduler.fault, /no connection can be made/);
  bench.isUnreadable = () => true;
  bench.timers.advance(5_000);
  bench.answerAllContent();
  t.equal(bench.scheduler.figures.postponed, 1);
  t.match(bench.scheduler.fault, /^since \S+ 1 delivery waits, because stored data cannot be read: EIO$/);
  bench.isUnreadable = () => false;
  bench.timers.advance(5_000);
  bench.answerAllContent();
  t.match(bench.jobs.get(id), { attemptNumber: 2 });
  t.equal(bench.scheduler.fault, null);
});

t.test("a retry of a delivery that lacked a connection reads nothing while its event is kept", async (t) => {
  const { bench, id } = attempting(0);
  const payload = bench.jobs.get(id)?.payload;
  bench.lack(id);
  bench.retry(id, () => {});
  t.same(bench.asked, []);
  t.equal(bench.jobs.get(id)?.payload, payload, "the bytes that all share");
});

t.test("its webhook is deleted during an attempt that lacks a connection: it fails at once", async (t) => {
  const { bench, id } = attempting(0);
  bench.put({ kind: "webhook_deleted", webhook: WEBHOOK });
  bench.scheduler.webhookChanged(WEBHOOK.id);
  t.match(bench.stored(id)?.delivery, { status: "pending" }, "the attempt may still be taken");
  bench.lack(id);
  t.match(bench.stored(id)?.delivery, { status: "failed", attempts: 0, lastError: "the webhook was deleted" });
  t.match(bench.scheduler.figures, { postponed: 0, running: 0, payloadBytes: 0 });
});
