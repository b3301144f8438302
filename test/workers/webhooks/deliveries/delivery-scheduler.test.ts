import t from "tap";
import { LIMITS } from "../../../../core/limits.js";
import type { EmittedEvent } from "../../../../core/webhook/emitted-event.js";
import type { Webhook } from "../../../../core/webhook/webhook.js";
import { listOf } from "../../../helpers/list-of.js";
import { SchedulerHarness, webhookOf } from "../../../helpers/webhooks/scheduler-harness.js";

t.test("nothing is sent before the view has the record with the event", async (t) => {
  const webhook = webhookOf(1);
  const one = SchedulerHarness.serving(webhook);
  const { deliveries } = one.emit([webhook]);
  t.equal(one.jobs.size, 0, "appended");
  one.commit(one.records.length);
  t.equal(one.jobs.size, 0, "durable");
  one.view(one.records.length);
  t.same([...one.jobs.keys()], [deliveries[0]?.id], "seen");
});

t.test("what is on its way to the log is answered by the log, also once there is no dispatcher", (t) => {
  const one = SchedulerHarness.serving(webhookOf(1));
  const answers: boolean[] = [];
  one.scheduler.commits.add(one.committed + 1, (isCommitted) => answers.push(isCommitted));
  one.scheduler.commits.add(one.committed + 2, (isCommitted) => answers.push(isCommitted));
  one.scheduler.abandonAttempts();
  t.same(answers, []);
  one.scheduler.committed(one.committed + 1);
  t.same(answers, [true]);
  t.equal(one.isDispatcherStopped, false);
  one.scheduler.abandon();
  t.equal(one.isDispatcherStopped, true, "no attempt is made that could not be recorded");
  t.same(answers, [true, false], "the log has failed");
  t.end();
});

t.test("payloads are held once for an event, as long as one of its deliveries is not at its end", async (t) => {
  const webhooks = [webhookOf(1), webhookOf(2), webhookOf(3)];
  const one = SchedulerHarness.serving(...webhooks);
  const event = one.emit(webhooks);
  const bytes = Buffer.byteLength(event.payload);
  one.settle();
  t.equal(one.scheduler.figures.payloadBytes, bytes);
  const payloads = new Set([...one.jobs.values()].map(({ payload }) => payload));
  t.equal(payloads.size, 1);
  t.ok([...payloads][0]?.buffer instanceof SharedArrayBuffer);
  const [first, second, third] = event.deliveries.map(({ id }) => id) as [string, string, string];
  one.attempt(third, true);
  one.attempt(first, true);
  one.settle();
  t.equal(one.scheduler.figures.payloadBytes, bytes, "one is still under way");
  one.attempt(second, true);
  one.settle();
  t.equal(one.scheduler.figures.payloadBytes, 0);
});

t.test(
  "a slow receiver: all wait, with bounded bytes in memory, and go out in order, also after a start",
  async (t) => {
    const [slow, fine] = [webhookOf(1), webhookOf(2)];
    const first = SchedulerHarness.serving(slow, fine);
    // 80 of 1 MiB each: more than is kept.
    const padding = "x".repeat(1024 * 1024);
    const ids = Array.from({ length: 80 }, () => first.emit([slow], padding).deliveries[0]?.id as string);
    const [other] = first.emit([fine]).deliveries;
    first.settle();
    t.match(first.scheduler.figures, { waiting: 72, running: 9, failed: 0 }, "8 of it at a time");
    t.ok(first.scheduler.figures.payloadBytes <= LIMITS.keptPayloadBytes);
    t.ok(first.jobs.has(other?.id as string), "another receiver is served");

    // A start finds them as it finds any that are pending.
    const one = new SchedulerHarness(first.records);
    one.scheduler.serving(1);
    t.match(one.scheduler.figures, { waiting: 72, payloadBytes: 0 });
    const retried = ids[79] as string;
    let answer: unknown;
    one.retry(retried, (outcome) => {
      answer = outcome;
    });
    const order: string[] = [];
    for (;;) {
      one.answerAllContent();
      const [id] = one.jobs.keys();
      if (id === undefined) break;
      if (ids.includes(id)) order.push(id);
      one.attempt(id, true);
      one.settle();
    }
    t.same(answer, { deliveryId: retried, isDelivered: true }, "a manual retry does not wait for its turn");
    t.same(
      order.filter((id) => id !== retried),
      ids.slice(0, 79),
      "oldest first",
    );
    t.equal(order.length, 80, "each once");
    t.ok(ids.every((id) => one.stored(id)?.delivery.status === "delivered"));
    t.equal(one.scheduler.figures.waiting, 0);
  },
);

t.test(
  "1,000 webhooks and 100,000 deliveries: those of each event in order, and a dead receiver holds up none",
  async (t) => {
    const webhooks = Array.from({ length: 1000 }, (_, n) => webhookOf(n + 1));
    const one = SchedulerHarness.serving(...webhooks);
    const events = Array.from({ length: 100 }, () => one.emit(webhooks));
    one.settle();
    one.timers.advance(0);
    const idsOf = (nth: number) => (events[nth] as EmittedEvent).deliveries.map(({ id }) => id);
    t.same([...one.jobs.keys()], idsOf(0), "one of each, in the order of subscription");
    t.match(one.scheduler.figures, { running: 1000, waiting: 99_000 });
    for (let nth = 0; nth < 100; nth++) one.attempt(idsOf(nth)[500] as string, true);
    t.match(one.scheduler.figures, { running: 999, waiting: 99 * 999, delivered: 100 }, "all of one that answers");
  },
);

t.test("many wait for a webhook that is deleted: they fail in slices, and nothing else waits for that", async (t) => {
  const [dead, fine] = [webhookOf(1), webhookOf(2)];
  const one = SchedulerHarness.serving(dead, fine);
  const count = 10_000;
  for (let nth = 0; nth < count; nth++) one.emit([dead]);
  one.settle();
  t.match(one.scheduler.figures, { running: 8, waiting: count - 8 });
  one.put({ kind: "webhook_deleted", webhook: dead });
  one.scheduler.webhookChanged(dead.id);
  one.attempt([...one.jobs.keys()][0] as string, false);
  const [other] = one.emit([fine]).deliveries;
  one.settle();
  t.ok(one.jobs.has(other?.id as string));
  t.ok(one.scheduler.figures.waiting > count / 2);
  while (one.timers.armed > 0) one.timers.advance(0);
  t.match(one.scheduler.figures, { failed: count - 7, waiting: 0, running: 8 });
});

t.test("when a further attempt is due is stored for as long as the pause lasts", async (t) => {
  const webhook = webhookOf(1, { maxRetries: 3, retryBackoffSeconds: 2 });
  const one = SchedulerHarness.serving(webhook);
  const id = one.emit([webhook]).deliveries[0]?.id as string;
  one.settle();
  one.attempt(id, false);
  const paused = one.stored(id);
  const [{ completedAtUs } = { completedAtUs: 0 }] = paused?.history ?? [];
  t.equal(paused?.delivery.nextRetryAtUs, completedAtUs + 2_000_000);
  one.timers.advance(1_999);
  t.equal(one.jobs.size, 0);
  one.timers.advance(1);
  t.match(one.stored(id), {
    delivery: { status: "pending", attempts: 1, nextRetryAtUs: null },
    history: listOf({ attemptNumber: 1 }),
  });
  t.ok((one.stored(id)?.delivery.updatedAtUs ?? 0) > (paused?.delivery.updatedAtUs ?? 0));
  t.equal(one.scheduler.figures.running, 1);
  one.attempt(id, true);
  t.match(one.stored(id)?.delivery, { status: "delivered", attempts: 2, nextRetryAtUs: null });
});

t.test("a webhook that changes between two attempts", async (t) => {
  const settings = { maxRetries: 3, retryBackoffSeconds: 2 };
  const webhook = webhookOf(1, settings);
  const paused = () => {
    const one = SchedulerHarness.serving(webhook);
    const id = one.emit([webhook]).deliveries[0]?.id as string;
    one.settle();
    one.attempt(id, false);
    return { one, id };
  };
  const change = (one: SchedulerHarness, more: Partial<Webhook>, secret: string | null = null): void => {
    one.putWebhook({ ...webhook, ...more }, secret);
    one.scheduler.webhookChanged(webhook.id);
  };
  const deleted = (one: SchedulerHarness): void => {
    one.put({ kind: "webhook_deleted", webhook });
    one.scheduler.webhookChanged(webhook.id);
  };
  await t.test("another address and secret: the pause goes on, in what is left of the window", async (t) => {
    const { one, id } = paused();
    change(one, { url: "http://elsewhere/" }, "new");
    one.timers.advance(1_999);
    t.equal(one.jobs.size, 0);
    one.timers.advance(1);
    const { jobs } = one;
    t.match(jobs.get(id), {
      url: "http://elsewhere/",
      signers: { secrets: listOf("new") },
      attemptNumber: 2,
      windowLeftMs: 8_000,
    });
    one.attempt(id, true);
    t.match(one.stored(id)?.delivery, { status: "delivered", attempts: 2 });
  });
  await t.test("disabled or deleted in a pause: it fails at once", async (t) => {
    for (const [end, lastError] of [
      [(one: SchedulerHarness) => change(one, { enabled: false }), "the webhook was disabled"],
      [deleted, "the webhook was deleted"],
    ] as const) {
      const { one, id } = paused();
      end(one);
      t.match(one.stored(id)?.delivery, { status: "failed", attempts: 1, lastError, nextRetryAtUs: null });
      one.timers.advance(10_000);
      t.equal(one.jobs.size, 0);
      t.match(one.scheduler.figures, { running: 0, payloadBytes: 0 });
    }
  });
  await t.test("deleted during an attempt: that goes on, since the receiver may take it", async (t) => {
    for (const isTaken of [true, false]) {
      const { one, id } = paused();
      one.timers.advance(2_000);
      deleted(one);
      one.attempt(id, isTaken);
      const failed = { status: "failed", attempts: 2, lastError: "the webhook was deleted" };
      t.match(one.stored(id)?.delivery, isTaken ? { status: "delivered", attempts: 2 } : failed);
      t.equal(one.scheduler.figures.running, 0);
    }
  });
});

t.test("an outcome that cannot be appended is appended later, and nobody is told before", async (t) => {
  const webhook = webhookOf(1);
  const one = SchedulerHarness.serving(webhook);
  let answer: unknown;
  one.scheduler.test(webhook.id, (outcome) => {
    answer = outcome;
  });
  one.settle();
  const [id] = [...one.jobs.keys()] as [string];
  one.isFull = true;
  one.attempt(id, true);
  one.settle();
  t.match(answer, { error: { data: { code: "unavailable" } } });
  t.match(one.stored(id)?.delivery, { status: "pending" });
  one.isFull = false;
  one.timers.advance(1_000);
  t.match(one.stored(id)?.delivery, { status: "delivered", attempts: 1 });
  one.settle();
  t.equal(one.scheduler.figures.payloadBytes, 0);
});

t.test(
  "what cannot be read after a restart stays as it is stored, is told, and goes on once it can be read",
  async (t) => {
    const [flaky, fine] = [webhookOf(1), webhookOf(2)];
    const first = SchedulerHarness.serving(flaky, fine);
    const [stuck, other] = first.emit([flaky, fine]).deliveries.map(({ id }) => id) as [string, string];
    first.settle();
    first.attempt(stuck, false);
    first.settle();
    const before = first.stored(stuck);
    t.match(before, { delivery: { status: "pending", attempts: 1 }, history: listOf({ attemptNumber: 1 }) });

    const faults: (string | null)[] = [];
    const again: SchedulerHarness = new SchedulerHarness(first.records, {
      onFaultChange: () => faults.push(again.scheduler.fault),
    });
    again.isUnreadable = (id) => id === stuck;
    again.scheduler.serving(1);
    again.answerAllContent();
    t.same([...again.jobs.keys()], [other], "the others go on");
    t.match(faults, listOf(/^since \d{4}-.* 1 delivery waits, because stored data cannot be read: EIO$/));
    t.same(again.stored(stuck), before, "nothing is written over it");
    again.timers.advance(5_000);
    t.match(again.asked, listOf({ id: stuck }), "read again");
    again.answerAllContent();
    again.timers.advance(9_000);
    t.same(again.asked, [], "after a longer pause");
    again.timers.advance(1_000);
    again.answerAllContent();
    t.same(again.stored(stuck), before);
    t.equal(faults.length, 1, "told once");

    again.isUnreadable = () => false;
    again.timers.advance(20_000);
    again.answerAllContent();
    t.same(faults.slice(1), [null]);
    t.match(again.jobs.get(stuck), { attemptNumber: 2 });
    again.attempt(stuck, true);
    again.attempt(other, true);
    again.settle();
    t.match(again.stored(stuck), {
      delivery: { status: "delivered", attempts: 2, createdAtUs: before?.delivery.createdAtUs },
      history: listOf({ attemptNumber: 1 }, { attemptNumber: 2 }),
    });
    t.match(again.scheduler.figures, { running: 0, waiting: 0, payloadBytes: 0 });
  },
);

t.test(
  "a delivery for which the machine lacks a connection stays pending, counts no attempt, and is tried again",
  async (t) => {
    const [first, second] = [webhookOf(1), webhookOf(2)];
    const faults: (string | null)[] = [];
    const harness: SchedulerHarness = new SchedulerHarness([], {
      onFaultChange: () => faults.push(harness.scheduler.fault),
    });
    for (const webhook of [first, second]) harness.putWebhook(webhook);
    harness.settle();
    harness.scheduler.serving(1);
    const [lacking, deleted] = harness.emit([first, second]).deliveries.map(({ id }) => id) as [string, string];
    harness.settle();
    harness.lack(lacking);
    harness.lack(deleted);
    harness.settle();
    t.match(harness.stored(lacking), { delivery: { status: "pending", attempts: 0 }, history: listOf() });
    t.match(
      faults.at(-1),
      /^since \d{4}-.* 2 deliveries wait, because they cannot be sent: the process has no file descriptor left$/,
    );
    const answers: string[] = [];
    harness.retry(lacking, (answer) => answers.push("error" in answer ? `${answer.error}` : answer.deliveryId));
    harness.answerAllContent();
    harness.lack(lacking);
    harness.settle();
    t.match(answers, listOf(/could not be made: the process has no file descriptor left/), "whoever waits is told");

    harness.put({ kind: "webhook_deleted", webhook: second });
    harness.scheduler.webhookChanged(second.id);
    harness.answerAllContent();
    harness.settle();
    t.match(harness.stored(deleted), { delivery: { status: "failed", attempts: 0 } }, "the end of its webhook ends it");
    t.match(faults.at(-1), /1 delivery waits/);
    const told = faults.length;
    harness.timers.advance(5_000);
    harness.answerAllContent();
    harness.lack(lacking);
    harness.timers.advance(9_999);
    t.same([harness.asked, [...harness.jobs.keys()]], [[], []], "after a longer pause");
    harness.timers.advance(1);
    harness.answerAllContent();
    t.equal(faults.length, told, "told once");
    t.match(harness.jobs.get(lacking), { attemptNumber: 1 });
    harness.attempt(lacking, true);
    harness.settle();
    t.match(harness.stored(lacking), { delivery: { status: "delivered", attempts: 1 } });
    t.equal(faults.at(-1), null, "nothing waits any more");
  },
);

t.test("a stop waits for no delivery that is postponed, also one that comes in its grace time", async (t) => {
  const webhook = webhookOf(1);
  const harness = SchedulerHarness.serving(webhook);
  const ids = [harness.emit([webhook]), harness.emit([webhook])].map(({ deliveries: [one] }) => one!.id);
  harness.settle();
  harness.lack(ids[0] as string);
  t.equal(harness.timers.armed, 1);
  const stopped = harness.scheduler.stop(7_000);
  harness.lack(ids[1] as string);
  t.equal(harness.timers.armed, 0);
  await stopped;
});

t.test("health tells apart what cannot be read and what cannot be connected, each with its own pause", async (t) => {
  const [first, second] = [webhookOf(1), webhookOf(2)];
  const before = SchedulerHarness.serving(first, second);
  const [damaged, lacking] = before.emit([first, second]).deliveries.map(({ id }) => id) as [string, string];
  const harness = new SchedulerHarness(before.records);
  harness.isUnreadable = (id) => id === damaged;
  harness.scheduler.serving(1);
  harness.answerAllContent();
  // The pause of the damaged one has grown by then.
  for (const pauseMs of [5_000, 10_000, 20_000]) {
    harness.timers.advance(pauseMs);
    harness.answerAllContent();
  }
  harness.lack(lacking);
  t.match(
    harness.scheduler.fault,
    /1 delivery waits, because stored data cannot be read: EIO; since .* they cannot be sent/,
  );
  t.equal(harness.scheduler.figures.postponed, 2);
  harness.timers.advance(5_000);
  harness.answerAllContent();
  t.match(harness.jobs.get(lacking), { attemptNumber: 1 }, "it does not wait for the other one's pause");
});
