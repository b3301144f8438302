import t from "tap";
import { createRandom, type Random } from "../../../core/random.js";
import type { DeliveryJob } from "../../../workers/dispatcher/dispatcher-messages.js";
import { DeskBench, webhookOf } from "../../helpers/desk-bench.js";

const SEED = Number(process.env.TEST_SEED ?? 5);

function bench(...webhooks: ReturnType<typeof webhookOf>[]): DeskBench {
  const one = new DeskBench();
  for (const webhook of webhooks) one.putWebhook(webhook);
  one.settle();
  one.desk.serving(1);
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

/** What receivers and clients have seen of one history, through its crash. */
class Ledger {
  readonly faults: string[] = [];
  /** By delivery: how often it arrived. */
  readonly arrivals = new Map<string, number>();
  /** Deliveries of the events, with the id of theirs. */
  readonly emitted = new Map<string, string>();
  retries = 0;
  #waiting = 0;

  arrives({ deliveryId, eventId, payload, attempts }: DeliveryJob): void {
    const isItself = this.emitted.get(deliveryId) === eventId;
    if (!isItself || Buffer.from(payload).toString() !== `{"event_id":"${eventId}"}`) this.faults.push("other bytes");
    if (attempts < 1) this.faults.push("a job without an attempt");
    this.arrivals.set(deliveryId, (this.arrivals.get(deliveryId) ?? 0) + 1);
  }

  /** A manual retry of any delivery; answered once, when what it says is durable. */
  retry(one: DeskBench, random: Random): void {
    const id = random.pick([...this.emitted.keys()]);
    let isAnswered = false;
    this.retries++;
    this.#waiting++;
    one.desk.retry(id, (outcome) => {
      if (isAnswered) this.faults.push(`a retry of ${id} was answered twice`);
      isAnswered = true;
      this.#waiting--;
      if ("error" in outcome) {
        if (one.stored(id, one.viewed) !== undefined) this.faults.push(`${id}: ${outcome.error.message}`);
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
  judge(one: DeskBench): { lost: number } {
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
    const { running, waiting, payloadBytes } = one.desk.figures;
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
  const ledger = new Ledger();
  let left = 3;
  let isOver = false;
  for (let step = 0; step < cut; step++) {
    if (left > 0 && random.chance(0.2)) {
      left--;
      const { id: eventId, deliveries } = one.emit(webhooks);
      for (const { id } of deliveries) ledger.emitted.set(id, eventId);
    } else if (left < 3 && random.chance(0.1)) {
      ledger.retry(one, random);
    } else {
      const isTaken = (job: DeliveryJob): boolean => {
        ledger.arrives(job);
        return random.chance(0.6);
      };
      isOver = !one.step(random, isTaken) && left === 0;
    }
  }
  if (isOver) ledger.judge(one);
  const durable = one.records.slice(0, random.integer(one.committed, one.records.length));
  const delivered = new Set<string>();
  for (const id of ledger.emitted.keys()) {
    if (one.stored(id, durable.length)?.delivery.status === "delivered") delivered.add(id);
  }
  const before = new Set(ledger.arrivals.keys());
  ledger.crashed();
  const again = new DeskBench(durable);
  // Fewer attempts than may have been made.
  if (random.chance(0.5)) again.putWebhook(webhookOf(2, { maxRetries: 0 }));
  again.desk.serving(1);
  let repeats = 0;
  for (let retries = ledger.emitted.size > 0 ? 3 : 0, isGoingOn = true; isGoingOn; ) {
    if (retries > 0 && random.chance(0.3)) {
      retries--;
      ledger.retry(again, random);
      continue;
    }
    isGoingOn = again.step(random, (job) => {
      if (delivered.has(job.deliveryId)) ledger.faults.push(`${job.deliveryId} goes out again`);
      if (before.has(job.deliveryId)) repeats++;
      ledger.arrives(job);
      return true;
    });
    isGoingOn ||= retries > 0;
  }
  const { lost } = ledger.judge(again);
  return { isOver, faults: ledger.faults, repeats, lost, retries: ledger.retries };
}

t.test(
  "a crash at every step, with manual retries: each event arrives, as itself, and is recorded as it went",
  async (t) => {
    const sum = { crashes: 0, repeats: 0, lost: 0, retries: 0 };
    for (let seed = SEED; seed < SEED + 20; seed++) {
      for (let cut = 0, isOver = false; !isOver; cut++) {
        const history = historyWithCrash(seed, cut);
        if (history.faults.length > 0) t.fail(`TEST_SEED=${seed}, step ${cut}: ${history.faults[0]}`);
        isOver = history.isOver;
        sum.crashes++;
        sum.repeats += history.repeats;
        sum.lost += history.lost;
        sum.retries += history.retries;
      }
    }
    const { crashes, repeats, lost, retries } = sum;
    t.ok(crashes > 300 && repeats > 0 && lost > 0, "crashes fell on both sides of records");
    t.comment(
      `${crashes} crashes from seed ${SEED}, ${retries} retries: ${repeats} attempts again, ${lost} deliveries never durable`,
    );
  },
);

t.test("payloads are held once for an event, as long as one of its deliveries is not at its end", async (t) => {
  const webhooks = [webhookOf(1), webhookOf(2), webhookOf(3)];
  const one = bench(...webhooks);
  const event = one.emit(webhooks);
  const bytes = Buffer.byteLength(event.payload);
  one.settle();
  t.equal(one.desk.figures.payloadBytes, bytes);
  const payloads = new Set([...one.jobs.values()].map(({ payload }) => payload));
  t.equal(payloads.size, 1);
  t.ok([...payloads][0]?.buffer instanceof SharedArrayBuffer);
  const [first, second, third] = event.deliveries.map(({ id }) => id) as [string, string, string];
  one.attempt(third, true, true);
  one.attempt(first, true, true);
  one.settle();
  t.equal(one.desk.figures.payloadBytes, bytes, "one is still under way");
  one.attempt(second, true, true);
  one.settle();
  t.equal(one.desk.figures.payloadBytes, 0);
});

t.test("beyond what may wait, a receiver that has its part waiting gets no more, and others do", async (t) => {
  const [slow, fine] = [webhookOf(1), webhookOf(2)];
  const one = new DeskBench([], { backlog: { waiting: 20, waitingOfReceiver: 5 } });
  for (const webhook of [slow, fine]) one.putWebhook(webhook);
  one.settle();
  one.desk.serving(1);
  for (let i = 0; i < 40; i++) {
    one.emit([slow]);
    one.settle();
  }
  t.equal(one.desk.figures.waiting, 20);
  t.equal(one.desk.figures.failed, 12, "8 run, 20 wait");
  const last = one.records.findLast((record) => "event" in record) as { event: { deliveries: { id: string }[] } };
  const id = last.event.deliveries[0]?.id as string;
  t.match(one.stored(id)?.delivery, {
    ...{ status: "failed", attempts: 0, lastError: "not attempted: 20 deliveries wait for the receiver already" },
  });
  const event = one.emit([fine]);
  one.settle();
  t.ok(one.jobs.has(event.deliveries[0]?.id as string), "another receiver is served");
  // A manual retry makes it.
  let answer: unknown;
  one.desk.retry(id, (outcome) => {
    answer = outcome;
  });
  one.answerContent();
  one.attempt(id, true, true);
  one.settle();
  t.same(answer, { deliveryId: id });
  t.match(one.stored(id)?.delivery, { status: "delivered", attempts: 1 });
});

t.test("a webhook that changes between two attempts", async (t) => {
  const webhook = webhookOf(1, { maxRetries: 3 });
  const change = (one: DeskBench, more: Parameters<typeof webhookOf>[1], secret: string | null = null): void => {
    one.putWebhook(webhookOf(1, { maxRetries: 3, ...more }), secret);
    one.desk.webhookChanged(webhook.id);
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
    one.desk.webhookChanged(webhook.id);
    // The attempt under way goes on: the receiver may take it.
    one.attempt(id, true, false);
    t.match(one.stored(id)?.delivery, { status: "delivered", attempts: 2 });
  }
  {
    const { one, id } = begun();
    one.put({ kind: "webhook_deleted", webhook });
    one.desk.webhookChanged(webhook.id);
    one.attempt(id, false, false);
    t.match(one.stored(id)?.delivery, { status: "failed", attempts: 2, lastError: "the webhook was deleted" });
    one.settle();
    t.same(one.desk.figures.running, 0);
  }
});

t.test("an outcome that cannot be appended is appended later, and nobody is told before", async (t) => {
  const webhook = webhookOf(1);
  const one = bench(webhook);
  let answer: unknown;
  one.desk.test(webhook.id, (outcome) => {
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
  t.equal(one.desk.figures.payloadBytes, 0);
});
