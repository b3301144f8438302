import t from "tap";
import { createRandom, type Random } from "../../../../core/random.js";
import { ServiceError } from "../../../../core/service-errors.js";
import type { EmittedEvent } from "../../../../core/webhook/emitted-event.js";
import type { Webhook } from "../../../../core/webhook/webhook.js";
import type { InlineAnswer } from "../../../../workers/webhooks/deliveries/tracked-delivery.js";
import { IN_ALL } from "../../../../workers/webhooks/delivery-queue.js";
import type { DeliveryJob } from "../../../../workers/webhooks/dispatcher-messages.js";
import { listOf } from "../../../helpers/list-of.js";
import { BEGUN_WINDOW, countedId, SchedulerBench, webhookOf } from "../../../helpers/webhooks/scheduler-bench.js";

const SEED = Number(process.env.TEST_SEED ?? 5);

function bench(...webhooks: ReturnType<typeof webhookOf>[]): SchedulerBench {
  const one = new SchedulerBench();
  for (const webhook of webhooks) one.putWebhook(webhook);
  one.settle();
  one.scheduler.serving(1);
  return one;
}

t.test("nothing is sent before the view has the record with the event", async (t) => {
  const webhook = webhookOf(1);
  const one = bench(webhook);
  const { deliveries } = one.emit([webhook]);
  t.equal(one.jobs.size, 0, "appended");
  one.commit(one.records.length);
  t.equal(one.jobs.size, 0, "durable");
  one.view(one.records.length);
  t.same([...one.jobs.keys()], [deliveries[0]?.id], "seen");
});

t.test("what is on its way to the log is answered by the log, also once there is no dispatcher", (t) => {
  const one = bench(webhookOf(1));
  const answers: boolean[] = [];
  one.scheduler.commits.add(one.committed + 1, (isCommitted) => answers.push(isCommitted));
  one.scheduler.commits.add(one.committed + 2, (isCommitted) => answers.push(isCommitted));
  one.scheduler.abandonAttempts();
  t.same(answers, []);
  one.scheduler.commits.committed(one.committed + 1);
  t.same(answers, [true]);
  t.equal(one.isDispatcherStopped, false);
  one.scheduler.abandon();
  t.equal(one.isDispatcherStopped, true, "no attempt is made that could not be recorded");
  t.same(answers, [true, false], "the log has failed");
  t.end();
});

/** What receivers and clients have seen of one history, through its crash. */
class Model {
  readonly faults: string[] = [];
  /** By delivery: how often it arrived. */
  readonly arrivals = new Map<string, number>();
  /** Deliveries of the events, with the id of theirs. */
  readonly emitted = new Map<string, string>();
  retries = 0;
  /** Retries that were refused because what is stored could not be read. */
  unread = 0;
  #waiting = 0;

  arrives({ deliveryId, eventId, payload, attempts }: DeliveryJob): void {
    const isItself = this.emitted.get(deliveryId) === eventId;
    if (!isItself || Buffer.from(payload).toString() !== `{"event_id":"${eventId}"}`) this.faults.push("other bytes");
    if (attempts < 1) this.faults.push("a job without an attempt");
    this.arrivals.set(deliveryId, (this.arrivals.get(deliveryId) ?? 0) + 1);
  }

  /** A manual retry of any delivery; answered once, when what it says is durable. */
  retry(one: SchedulerBench, random: Random): void {
    const id = random.pick([...this.emitted.keys()]);
    let isAnswered = false;
    this.retries++;
    this.#waiting++;
    one.retry(id, (outcome) => {
      if (isAnswered) this.faults.push(`a retry of ${id} was answered twice`);
      isAnswered = true;
      this.#waiting--;
      if ("error" in outcome) {
        const { code } = outcome.error.data;
        if (code === "internal_error") this.unread++;
        else if (one.stored(id, one.viewed) !== undefined) this.faults.push(`${id}: ${outcome.error.message}`);
      } else if (one.stored(id, one.committed)?.delivery.attempts === 0) {
        this.faults.push(`a retry of ${id} was answered before its attempt was recorded`);
      }
    });
  }

  /** Nobody waits across a crash. */
  crashed(): void {
    this.#waiting = 0;
  }

  /** After the last record: what is stored is what was seen. */
  judge(one: SchedulerBench): { lost: number } {
    let lost = 0;
    if (this.#waiting > 0) this.faults.push(`${this.#waiting} retries have no answer`);
    for (const id of this.emitted.keys()) {
      const stored = one.stored(id);
      const count = this.arrivals.get(id) ?? 0;
      if (stored === undefined) {
        lost++;
        if (count > 0) this.faults.push(`${id} arrived before its record was durable`);
        continue;
      }
      const { status, attempts } = stored.delivery;
      const isOver = status === "delivered" || (status === "failed" && attempts > 0);
      if (!isOver || count === 0)
        this.faults.push(`${id} is ${status} after ${attempts} attempts, arrived ${count} times`);
      const numbers = stored.history.map(({ attemptNumber }) => attemptNumber);
      if (numbers.some((number, at) => number !== at + 1)) this.faults.push(`${id} has attempts ${numbers}`);
    }
    if (one.scheduler.fault !== null) this.faults.push(one.scheduler.fault);
    const { running, waiting, payloadBytes } = one.scheduler.figures;
    if (running + waiting + payloadBytes > 0)
      this.faults.push(`${running}, ${waiting}, ${payloadBytes} bytes are left`);
    return { lost };
  }
}

/** A history up to its step `cut`, a crash that leaves any tail there may be, and a start after which receivers take everything. */
function historyWithCrash(seed: number, cut: number) {
  const random = createRandom(seed);
  const webhooks = [0, 3, 10].map((maxRetries, nth) => webhookOf(nth, { maxRetries }));
  const one = bench(...webhooks);
  const model = new Model();
  let left = 3;
  let isOver = false;
  for (let step = 0; step < cut; step++) {
    if (left > 0 && random.chance(0.2)) {
      left--;
      const { id: eventId, deliveries } = one.emit(webhooks);
      for (const { id } of deliveries) model.emitted.set(id, eventId);
    } else if (left < 3 && random.chance(0.1)) {
      model.retry(one, random);
    } else {
      const isTaken = (job: DeliveryJob): boolean => {
        model.arrives(job);
        return random.chance(0.6);
      };
      isOver = !one.step(random, isTaken) && left === 0;
    }
  }
  if (isOver) model.judge(one);
  const durable = one.records.slice(0, random.integer(one.committed, one.records.length));
  const delivered = new Set<string>();
  for (const id of model.emitted.keys()) {
    if (one.stored(id, durable.length)?.delivery.status === "delivered") delivered.add(id);
  }
  const before = new Set(model.arrivals.keys());
  model.crashed();
  const again = new SchedulerBench(durable);
  // Fewer attempts than may have been made.
  if (random.chance(0.5)) again.putWebhook(webhookOf(2, { maxRetries: 0 }));
  // Some reads fail, and succeed later.
  let unreadable = 10;
  again.isUnreadable = () => unreadable > 0 && random.chance(0.3) && unreadable-- > 0;
  again.scheduler.serving(1);
  let repeats = 0;
  for (let retries = model.emitted.size > 0 ? 3 : 0, isGoingOn = true; isGoingOn; ) {
    if (retries > 0 && random.chance(0.3)) {
      retries--;
      model.retry(again, random);
      continue;
    }
    isGoingOn = again.step(random, (job) => {
      if (delivered.has(job.deliveryId)) model.faults.push(`${job.deliveryId} goes out again`);
      if (before.has(job.deliveryId)) repeats++;
      model.arrives(job);
      return true;
    });
    isGoingOn ||= retries > 0;
    if (!isGoingOn && again.scheduler.fault !== null) {
      again.timers.advance(300_000);
      isGoingOn = true;
    }
  }
  const { lost } = model.judge(again);
  return { isOver, faults: model.faults, repeats, lost, retries: model.retries, unread: model.unread };
}

t.test(
  "a crash at every step, with manual retries: each event arrives, as itself, and is recorded as it went",
  async (t) => {
    const sum = { crashes: 0, repeats: 0, lost: 0, retries: 0, unread: 0 };
    for (let seed = SEED; seed < SEED + 20; seed++) {
      for (let cut = 0, isOver = false; !isOver; cut++) {
        const history = historyWithCrash(seed, cut);
        if (history.faults.length > 0) t.fail(`TEST_SEED=${seed}, step ${cut}: ${history.faults[0]}`);
        isOver = history.isOver;
        sum.crashes++;
        sum.repeats += history.repeats;
        sum.lost += history.lost;
        sum.retries += history.retries;
        sum.unread += history.unread;
      }
    }
    const { crashes, repeats, lost, retries, unread } = sum;
    t.ok(crashes > 300 && repeats > 0 && lost > 0 && unread > 0, "crashes fell on both sides of records");
    t.comment(
      `${crashes} crashes from seed ${SEED}, ${retries} retries (${unread} unread): ${repeats} attempts again, ${lost} deliveries never durable`,
    );
  },
);

t.test("payloads are held once for an event, as long as one of its deliveries is not at its end", async (t) => {
  const webhooks = [webhookOf(1), webhookOf(2), webhookOf(3)];
  const one = bench(...webhooks);
  const event = one.emit(webhooks);
  const bytes = Buffer.byteLength(event.payload);
  one.settle();
  t.equal(one.scheduler.figures.payloadBytes, bytes);
  const payloads = new Set([...one.jobs.values()].map(({ payload }) => payload));
  t.equal(payloads.size, 1);
  t.ok([...payloads][0]?.buffer instanceof SharedArrayBuffer);
  const [first, second, third] = event.deliveries.map(({ id }) => id) as [string, string, string];
  one.attempt(third, true, true);
  one.attempt(first, true, true);
  one.settle();
  t.equal(one.scheduler.figures.payloadBytes, bytes, "one is still under way");
  one.attempt(second, true, true);
  one.settle();
  t.equal(one.scheduler.figures.payloadBytes, 0);
});

t.test(
  "beyond what is queued, deliveries of a slow receiver wait in the log: each has its attempts, in order",
  async (t) => {
    const [slow, fine] = [webhookOf(1), webhookOf(2)];
    const backlog = { waiting: 20, waitingOfReceiver: 5 };
    const first = new SchedulerBench([], { backlog });
    for (const webhook of [slow, fine]) first.putWebhook(webhook);
    first.settle();
    first.scheduler.serving(1);
    const ids: string[] = [];
    const emit = (one: SchedulerBench, webhook = slow): string => {
      const id = one.emit([webhook]).deliveries[0]?.id as string;
      one.settle();
      return id;
    };
    for (let i = 0; i < 40; i++) ids.push(emit(first));
    const queuedBytes = first.scheduler.figures.payloadBytes;
    t.match(first.scheduler.figures, { waiting: 32, failed: 0 }, "8 run, all others wait");
    for (let i = 0; i < 40; i++) ids.push(emit(first));
    t.equal(first.scheduler.figures.payloadBytes, queuedBytes, "of those in the log no bytes are held");
    t.ok(first.jobs.has(emit(first, fine)), "another receiver is served");

    // A start finds them as it finds any that are pending.
    const one = new SchedulerBench(first.records, { backlog });
    one.scheduler.serving(1);
    t.match(one.scheduler.figures, { waiting: 72, failed: 0 });
    const retried = ids[79] as string;
    let answer: unknown;
    one.retry(retried, (outcome) => {
      answer = outcome;
    });
    const order: string[] = [];
    for (;;) {
      while (one.wanted.length > 0) one.answerContent();
      const [id] = one.jobs.keys();
      if (id === undefined) break;
      if (ids.includes(id)) order.push(id);
      one.attempt(id, true, true);
      one.settle();
    }
    t.same(answer, { deliveryId: retried }, "a manual retry does not wait for its turn");
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
  "with as many under way as may be, the next one of each receiver is given to the dispatcher behind its attempt",
  async (t) => {
    const webhooks = Array.from({ length: IN_ALL }, (_, n) => webhookOf(n + 1));
    const one = bench(...webhooks);
    const events = Array.from({ length: 3 }, () => one.emit(webhooks));
    one.settle();
    const idOf = (event: number, webhook: number): string => events[event]?.deliveries[webhook]?.id as string;
    t.equal(one.jobs.size, 2 * IN_ALL);
    t.same([one.jobs.get(idOf(0, 5))?.afterId, one.jobs.get(idOf(1, 5))?.afterId], [null, idOf(0, 5)]);
    t.match(one.scheduler.figures, { running: IN_ALL, waiting: 2 * IN_ALL });
    one.attempt(idOf(0, 5), true, false);
    t.equal(one.jobs.get(idOf(2, 5))?.afterId, idOf(1, 5), "behind the one that has begun by itself");
    // A webhook that changes: what has not begun goes with what it is then, behind the same attempt.
    const [webhook] = webhooks as [Webhook];
    one.putWebhook({ ...webhook, url: "http://elsewhere/" });
    one.scheduler.webhookChanged(webhook.id);
    t.same([...one.released].sort(), [idOf(0, 0), idOf(1, 0)].sort());
    one.endBehind(idOf(1, 0));
    t.match(one.jobs.get(idOf(1, 0)), { afterId: idOf(0, 0), url: "http://elsewhere/", window: null });
    // A manual retry of one that has not begun takes it out of its turn.
    let answered: unknown;
    one.retry(idOf(1, 7), (outcome) => {
      answered = outcome;
    });
    t.ok(one.released.has(idOf(1, 7)));
    one.endBehind(idOf(1, 7));
    t.match(one.jobs.get(idOf(1, 7)), { afterId: null, attempts: 1 });
    one.attempt(idOf(1, 7), true, true);
    one.settle();
    t.same(answered, { deliveryId: idOf(1, 7) });
    t.equal(one.jobs.get(idOf(2, 7))?.afterId, idOf(0, 7), "the next one has its place");
    while (one.jobs.size > 0) one.attempt([...one.jobs.keys()][0] as string, true, true);
    one.settle();
    t.match(one.scheduler.figures, { running: 0, waiting: 0, payloadBytes: 0 });
    for (const { deliveries } of events) {
      t.ok(deliveries.every(({ id }) => one.stored(id)?.delivery.status === "delivered"));
    }
  },
);

t.test("one that went ahead begins when there is room; the service is busy while many are under way", async (t) => {
  const webhooks = Array.from({ length: IN_ALL }, (_, n) => webhookOf(n + 1));
  const one = bench(...webhooks);
  const [first, second] = [one.emit(webhooks), one.emit(webhooks.slice(0, 2))];
  one.settle();
  const idOf = (event: EmittedEvent, webhook: number): string => event.deliveries[webhook]?.id as string;
  t.equal(one.jobs.get(idOf(second, 0))?.afterId, idOf(first, 0));
  t.ok(one.scheduler.isBusy);
  one.attempt(idOf(first, 9), true, true);
  t.same(
    [0, 1].map((webhook) => one.jobs.get(idOf(second, webhook))?.afterId),
    [null, idOf(first, 1)],
    "in the place that became free, the next in turn",
  );
  one.attempt(idOf(second, 0), true, true);
  t.equal(one.jobs.get(idOf(second, 1))?.afterId, null);
  for (const id of [...one.jobs.keys()].slice(0, IN_ALL / 2 + 1)) one.attempt(id, true, true);
  t.notOk(one.scheduler.isBusy);
  while (one.jobs.size > 0) one.attempt([...one.jobs.keys()][0] as string, true, true);
  one.settle();
  t.match(one.scheduler.figures, { running: 0, waiting: 0, payloadBytes: 0 });
});

t.test("none goes ahead whose event the front is to be asked for first", async (t) => {
  const webhooks = Array.from({ length: IN_ALL }, (_, n) => webhookOf(n + 1));
  const before = bench(...webhooks);
  for (let event = 0; event < 2; event++) before.emit(webhooks);
  const one = new SchedulerBench(before.records);
  one.scheduler.serving(1);
  while (one.wanted.length > 0) one.answerContent();
  t.equal(one.jobs.size, IN_ALL);
  t.match(one.scheduler.figures, { running: IN_ALL, waiting: IN_ALL });
  one.attempt([...one.jobs.keys()][0] as string, true, true);
  t.equal(one.wanted.length, 1, "of the one whose turn has come");
});

t.test("when a further attempt is due is stored for as long as the pause lasts", async (t) => {
  const webhook = webhookOf(1, { maxRetries: 3 });
  const one = bench(webhook);
  const id = one.emit([webhook]).deliveries[0]?.id as string;
  one.settle();
  one.attempt(id, false, false);
  const paused = one.stored(id)?.delivery;
  t.type(paused?.nextRetryAtUs, "number");
  one.beginAttempt(id);
  t.match(one.stored(id), {
    delivery: { status: "pending", attempts: 1, nextRetryAtUs: null },
    history: listOf({ attemptNumber: 1 }),
  });
  t.ok((one.stored(id)?.delivery.updatedAtUs ?? 0) > (paused?.updatedAtUs ?? 0));
  t.equal(one.scheduler.figures.running, 1);
  one.attempt(id, true, true);
  t.match(one.stored(id)?.delivery, { status: "delivered", attempts: 2, nextRetryAtUs: null });
});

t.test("a webhook that changes between two attempts", async (t) => {
  const webhook = webhookOf(1, { maxRetries: 3 });
  const change = (one: SchedulerBench, more: Parameters<typeof webhookOf>[1], secret: string | null = null): void => {
    one.putWebhook(webhookOf(1, { maxRetries: 3, ...more }), secret);
    one.scheduler.webhookChanged(webhook.id);
  };
  const begun = () => {
    const one = bench(webhook);
    const id = one.emit([webhook]).deliveries[0]?.id as string;
    one.settle();
    one.attempt(id, false, false);
    return { one, id };
  };
  {
    const { one, id } = begun();
    change(one, { url: "http://elsewhere/" }, "new");
    one.endPause(id);
    t.match(one.stored(id)?.delivery, { nextRetryAtUs: null }, "no pause is left");
    t.match(one.jobs.get(id), { url: "http://elsewhere/", secret: "new", firstAttemptNumber: 2, attempts: 3 });
    t.same(one.jobs.get(id)?.window, BEGUN_WINDOW, "in what is left of its window");
    one.attempt(id, true, true);
    t.match(one.stored(id)?.delivery, { status: "delivered", attempts: 2 });
  }
  {
    const { one, id } = begun();
    change(one, { enabled: false });
    one.endPause(id);
    t.match(one.stored(id)?.delivery, { status: "failed", attempts: 1, lastError: "the webhook was disabled" });
    t.equal(one.jobs.size, 0);
  }
  {
    const { one, id } = begun();
    one.put({ kind: "webhook_deleted", webhook });
    one.scheduler.webhookChanged(webhook.id);
    // The attempt under way goes on: the receiver may take it.
    one.attempt(id, true, false);
    t.match(one.stored(id)?.delivery, { status: "delivered", attempts: 2 });
  }
  {
    const { one, id } = begun();
    one.put({ kind: "webhook_deleted", webhook });
    one.scheduler.webhookChanged(webhook.id);
    one.attempt(id, false, false);
    t.match(one.stored(id)?.delivery, { status: "failed", attempts: 2, lastError: "the webhook was deleted" });
    one.settle();
    t.same(one.scheduler.figures.running, 0);
  }
});

t.test(
  "a test of a webhook that is deleted before its attempt begins is told that there is no such webhook",
  async (t) => {
    const webhook = webhookOf(1);
    const one = bench(webhook);
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

t.test("an outcome that cannot be appended is appended later, and nobody is told before", async (t) => {
  const webhook = webhookOf(1);
  const one = bench(webhook);
  let answer: unknown;
  one.scheduler.test(webhook.id, (outcome) => {
    answer = outcome;
  });
  one.settle();
  const [id] = [...one.jobs.keys()] as [string];
  one.isFull = true;
  one.attempt(id, true, true);
  one.settle();
  t.match(answer, { error: { data: { code: "unavailable" } } });
  t.match(one.stored(id)?.delivery, { status: "pending" });
  one.isFull = false;
  one.timers.advance(1_000);
  t.match(one.stored(id)?.delivery, { status: "delivered", attempts: 1 });
  one.settle();
  t.equal(one.scheduler.figures.payloadBytes, 0);
});

type Answer = Parameters<Parameters<SchedulerBench["retry"]>[1]>[0];

/** What a retry was answered: its delivery or the error's code; `waiting` before it is. */
function retried(one: SchedulerBench, id: string) {
  const seen = { answer: "waiting", params: {} as object };
  const request = one.retry(id, (outcome: Answer) => {
    if (seen.answer !== "waiting") throw new Error(`${id} is answered twice`);
    seen.answer = "error" in outcome ? outcome.error.data.code : outcome.deliveryId;
    if ("error" in outcome) seen.params = outcome.error.data.params;
  });
  return { seen, request };
}

/** Deliveries of one event each that failed with one attempt. */
function failedOnes(one: SchedulerBench, webhook: ReturnType<typeof webhookOf>, count: number): string[] {
  return Array.from({ length: count }, () => {
    const id = one.emit([webhook]).deliveries[0]?.id as string;
    one.settle();
    one.attempt(id, false, true);
    one.settle();
    return id;
  });
}

function answerAllContent(one: SchedulerBench): void {
  while (one.wanted.length > 0) one.answerContent();
}

t.test(
  "what cannot be read after a restart stays as it is stored, is told, and goes on once it can be read",
  async (t) => {
    const [flaky, fine] = [webhookOf(1), webhookOf(2)];
    const first = bench(flaky, fine);
    const [stuck, other] = first.emit([flaky, fine]).deliveries.map(({ id }) => id) as [string, string];
    first.settle();
    first.attempt(stuck, false, false);
    first.settle();
    const before = first.stored(stuck);
    t.match(before, { delivery: { status: "pending", attempts: 1 }, history: listOf({ attemptNumber: 1 }) });

    const faults: (string | null)[] = [];
    const again: SchedulerBench = new SchedulerBench(first.records, {
      onFaultChange: () => faults.push(again.scheduler.fault),
    });
    again.isUnreadable = (id) => id === stuck;
    again.scheduler.serving(1);
    answerAllContent(again);
    t.same([...again.jobs.keys()], [other], "the others go on");
    t.match(faults, listOf(/^since \d{4}-.* 1 delivery waits, because stored data cannot be read: EIO$/));
    t.same(again.stored(stuck), before, "nothing is written over it");
    again.timers.advance(5_000);
    t.same(again.wanted, [stuck], "read again");
    answerAllContent(again);
    again.timers.advance(9_000);
    t.same(again.wanted, [], "after a longer pause");
    again.timers.advance(1_000);
    answerAllContent(again);
    t.same(again.stored(stuck), before);
    t.equal(faults.length, 1, "told once");

    again.isUnreadable = () => false;
    again.timers.advance(20_000);
    answerAllContent(again);
    t.same(faults.slice(1), [null]);
    t.match(again.jobs.get(stuck), { firstAttemptNumber: 2, attempts: 2 }, "with its remaining attempts");
    again.attempt(stuck, true, true);
    again.attempt(other, true, true);
    again.settle();
    t.match(again.stored(stuck), {
      delivery: { status: "delivered", attempts: 2, createdAtUs: before?.delivery.createdAtUs },
      history: listOf({ attemptNumber: 1 }, { attemptNumber: 2 }),
    });
    t.match(again.scheduler.figures, { running: 0, waiting: 0, payloadBytes: 0 });
  },
);

t.test(
  "a retry of what cannot be read is an internal error and changes nothing; unknown is what is not there",
  async (t) => {
    const webhook = webhookOf(1);
    const first = bench(webhook);
    const [failed] = failedOnes(first, webhook, 1) as [string];
    const pending = first.emit([webhook]).deliveries[0]?.id as string;
    first.settle();
    const again = new SchedulerBench(first.records);
    again.isUnreadable = () => true;
    again.scheduler.serving(1);
    answerAllContent(again);
    const count = again.records.length;
    for (const id of [failed, pending]) {
      const { seen } = retried(again, id);
      answerAllContent(again);
      t.equal(seen.answer, "internal_error", id);
    }
    t.match(again.scheduler.fault, /1 delivery waits/, "of the failed one nothing is to be done");
    t.equal(again.records.length, count);
    again.isUnreadable = () => false;
    const { seen } = retried(again, pending);
    answerAllContent(again);
    t.equal(again.scheduler.fault, null);
    again.attempt(pending, true, true);
    again.settle();
    t.equal(seen.answer, pending);
    const unknown = retried(again, countedId(77));
    answerAllContent(again);
    t.equal(unknown.seen.answer, "delivery_not_found");
  },
);

t.test("retries are bounded for each receiver, and a slow one takes nothing from others", async (t) => {
  const [slow, fine] = [webhookOf(1), webhookOf(2)];
  const one = bench(slow, fine);
  const ids = failedOnes(one, slow, 256);
  const [other] = failedOnes(one, fine, 1) as [string];
  const all = ids.map((id) => retried(one, id));
  answerAllContent(one);
  t.equal(one.jobs.size, 8, "at a time");
  const refused = all.filter(({ seen }) => seen.answer === "unavailable");
  t.equal(refused.length, 256 - 64, "the others are refused at once");
  t.same(refused[0]?.seen.params, { retry_after_seconds: 10 });
  const { seen } = retried(one, other);
  answerAllContent(one);
  one.attempt(other, true, true);
  one.settle();
  t.equal(seen.answer, other, "while all of the slow one's are held open");
  // One round of attempts ends at the end of its window; those that cannot end in time any more are not begun.
  const begun = new Set(one.jobs.keys());
  one.timers.advance(10_000);
  for (const id of begun) one.attempt(id, false, true);
  one.settle();
  answerAllContent(one);
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
  for (const id of second) one.attempt(id, false, true);
  one.settle();
  t.equal(one.jobs.size, 0, "nothing that nobody waits for is made");
  t.equal(all.filter(({ seen: { answer } }) => answer === "waiting").length, 0);
  t.match(one.scheduler.figures, { running: 0, waiting: 0, payloadBytes: 0 });
  const last = retried(one, ids[200] as string);
  answerAllContent(one);
  t.equal(one.jobs.size, 1, "there is room again");
  one.attempt(ids[200] as string, true, true);
  one.settle();
  t.equal(last.seen.answer, ids[200]);
});

t.test("a delivery keeps its latest attempts, however often it is retried, and counts all", async (t) => {
  const webhook = webhookOf(1, { maxRetries: 3 });
  const one = bench(webhook);
  const [id] = failedOnes(one, webhook, 1) as [string];
  const before = one.stored(id)?.delivery.attempts ?? 0;
  for (let nth = 0; nth < 40; nth++) {
    const { seen } = retried(one, id);
    answerAllContent(one);
    t.equal(one.jobs.get(id)?.window, null, "a manual one has a window of its own");
    one.attempt(id, false, true);
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
  const webhook = webhookOf(1, { maxRetries: 3 });
  const one = bench(webhook);
  const [id] = failedOnes(one, webhook, 1) as [string];
  const { request, seen } = retried(one, id);
  const behind = retried(one, id);
  answerAllContent(one);
  const gone = new ServiceError("unavailable", "gone", {});
  for (const { request: dropped } of [{ request }, behind])
    if (dropped !== undefined) one.scheduler.drop(dropped, gone);
  t.equal(behind.seen.answer, "unavailable");
  t.equal(seen.answer, "waiting");
  one.attempt(id, false, true);
  one.settle();
  t.equal(seen.answer, id);
  t.match(one.stored(id)?.delivery, { attempts: 2 });
  t.equal(one.jobs.size, 0, "the second one is not made");

  // A pending one whose automatic attempts were to give way goes on by itself, as does a test.
  const pending = one.emit([webhook]).deliveries[0]?.id as string;
  one.settle();
  one.attempt(pending, false, false);
  const third = retried(one, pending).request;
  if (third !== undefined) one.scheduler.drop(third, gone);
  one.endPause(pending);
  t.match(one.jobs.get(pending), { firstAttemptNumber: 2, attempts: 3, window: BEGUN_WINDOW });
  one.attempt(pending, true, true);
  one.settle();

  // One that waited in vain until the window of the automatic attempts was over takes none of them away.
  const waiting = one.emit([webhook]).deliveries[0]?.id as string;
  one.settle();
  one.attempt(waiting, false, false);
  const tests = Array.from({ length: 8 }, () => one.scheduler.test(webhook.id, () => {}));
  one.settle();
  const overdue = retried(one, waiting);
  one.endPause(waiting);
  t.notOk(one.jobs.has(waiting), "it waits for a place");
  one.timers.advance(18_000);
  t.equal(overdue.seen.answer, "unavailable");
  t.match(one.jobs.get(waiting), { firstAttemptNumber: 2, attempts: 3, window: null });
  one.attempt(waiting, true, true);
  for (const id of one.jobs.keys()) one.attempt(id, true, true);
  t.equal(tests.length, 8);
  one.settle();
  const test = one.scheduler.test(webhook.id, () => {});
  if (test !== undefined) one.scheduler.drop(test, gone);
  one.settle();
  t.match([...one.jobs.values()], listOf({ eventName: "WebhookTest", attempts: 1 }));
  one.attempt([...one.jobs.keys()][0] as string, true, true);
  one.settle();
  t.match(one.scheduler.figures, { running: 0, waiting: 0, payloadBytes: 0 });
});
