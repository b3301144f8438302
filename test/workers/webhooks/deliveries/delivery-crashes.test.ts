import t from "tap";
import { createRandom, type Random } from "../../../../core/random.js";
import type { DeliveryJob } from "../../../../workers/webhooks/dispatcher/dispatcher-messages.js";
import { SchedulerHarness, webhookOf } from "../../../helpers/webhooks/scheduler-harness.js";

const SEED = Number(process.env.TEST_SEED ?? 5);

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

  arrives({ deliveryId, eventId, payload, windowLeftMs }: DeliveryJob): void {
    const isItself = this.emitted.get(deliveryId) === eventId;
    if (!isItself || Buffer.from(payload).toString() !== `{"event_id":"${eventId}"}`) this.faults.push("other bytes");
    if (windowLeftMs <= 0 || windowLeftMs > 10_000) this.faults.push(`an attempt with ${windowLeftMs} ms left`);
    this.arrivals.set(deliveryId, (this.arrivals.get(deliveryId) ?? 0) + 1);
  }

  /** A manual retry of a delivery that the view shows; answered once, when what it says is durable. */
  retry(one: SchedulerHarness, random: Random): void {
    const shown = [...this.emitted.keys()].filter((id) => one.stored(id, one.viewed) !== undefined);
    if (shown.length === 0) return;
    const id = random.pick(shown);
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
        else this.faults.push(`${id}: ${outcome.error.message}`);
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
  judge(one: SchedulerHarness): { lost: number } {
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
  const webhooks = [0, 3, 10].map((maxRetries, nth) => webhookOf(nth, { maxRetries, retryBackoffSeconds: nth % 2 }));
  const one = new SchedulerHarness();
  for (const webhook of webhooks) one.putWebhook(webhook);
  one.settle();
  one.scheduler.serving(1);
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
  const again = new SchedulerHarness(durable);
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
