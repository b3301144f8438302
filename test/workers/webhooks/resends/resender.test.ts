import t from "tap";
import { createRandom } from "../../../../core/random.js";
import { ServiceError } from "../../../../core/service-errors.js";
import type { Resend } from "../../../../core/webhook/resend.js";
import { ResendItemsBuilder } from "../../../../storage/records/resend-record.js";
import type { InlineAnswer } from "../../../../workers/webhooks/deliveries/tracked-delivery.js";
import { ResendStates } from "../../../../workers/webhooks/resends/resend-states.js";
import { Resender } from "../../../../workers/webhooks/resends/resender.js";
import { listOf } from "../../../helpers/list-of.js";
import { heldBytes } from "../../../helpers/process/held-memory.js";
import { ManualTimers } from "../../../helpers/recorder/manual-timers.js";
import { countedId } from "../../../helpers/webhooks/scheduler-harness.js";
import { RESEND } from "../../../helpers/webhooks/webhook-fixtures.js";

const SEED = Number(process.env.TEST_SEED ?? 5);

/** A resend of so many deliveries. The test ends its attempts. */
function resending(count: number, perSecond = 20, states = new ResendStates()) {
  const builder = new ResendItemsBuilder(count);
  for (let nth = 0; nth < count; nth++) builder.add({ deliveryId: countedId(nth), missed: null });
  const resend: Resend = { ...RESEND, deliveries: count, perSecond };
  if (states.running().length === 0) states.put(resend, builder.bytes);
  const timers = new ManualTimers();
  const underWay = new Map<string, InlineAnswer>();
  /** Those that have left the queue. */
  const sent = new Set<string>();
  const begun: { id: string; atMs: number }[] = [];
  const ends: Resend[] = [];
  /** Those whose attempt was taken back before it began. */
  const takenBack: string[] = [];
  let isFull = false;
  const resender = new Resender({
    ...{ states, timers },
    attempt: ({ deliveryId }, _webhookId, answer) => {
      begun.push({ id: deliveryId, atMs: timers.nowMs() });
      underWay.set(deliveryId, answer);
      return () => {
        if (sent.has(deliveryId)) return;
        takenBack.push(deliveryId);
        underWay.delete(deliveryId);
        answer({ error: new ServiceError("unavailable", "taken back", {}) });
      };
    },
    end: (ended) => {
      if (isFull) throw new Error("the log is full");
      states.put(ended, new Uint8Array(0));
      return ends.push(ended);
    },
    report: () => {},
  });
  const answer = (id: string, outcome: "delivered" | "failed" | ServiceError): void => {
    const taken = underWay.get(id) as InlineAnswer;
    underWay.delete(id);
    if (outcome instanceof ServiceError) {
      taken({ error: outcome });
      return;
    }
    // The record comes before the answer.
    states.noted({ id, status: outcome });
    taken({ deliveryId: id, isDelivered: outcome === "delivered" });
  };
  const setFull = (is: boolean) => (isFull = is);
  return { states, timers, resender, begun, ends, underWay, sent, takenBack, answer, setFull };
}

t.test("oldest first, at most so many in a second, at most eight under way", async (t) => {
  const { timers, resender, begun, ends, underWay, answer, states } = resending(100, 20);
  resender.begin();
  t.equal(begun.length, 1, "the first one at once");
  timers.advance(10_000);
  t.equal(begun.length, 8);
  for (const id of [...underWay.keys()]) answer(id, "failed");
  t.equal(begun.length, 9, "one more, and not all at once");
  while (ends.length === 0) {
    for (const id of [...underWay.keys()]) answer(id, "delivered");
    timers.advance(1);
  }
  t.same(
    begun.map(({ id }) => id),
    Array.from({ length: 100 }, (_, nth) => countedId(nth)),
  );
  for (const [at, { atMs }] of begun.entries()) {
    const inSecond = begun.slice(at).filter((one) => one.atMs < atMs + 1000).length;
    t.ok(inSecond <= 20, `${inSecond} within a second`);
  }
  t.match(ends, listOf({ deliveries: 100, attempted: 100, delivered: 92, failed: 8, state: "done" }));
  t.match(states.figures(RESEND.id, RESEND.webhookId), { delivered: 92, state: "done" });
  t.equal(states.figures(RESEND.id, countedId(1)), undefined, "not of another webhook");
});

t.test(`whatever happens, each chosen one is attempted before it is done, and no other; seed ${SEED}`, async (t) => {
  const random = createRandom(SEED);
  for (let round = 0; round < 30; round++) {
    const count = random.integer(1, 60);
    let life = resending(count, 1000);
    life.resender.begin();
    const attempted = new Set<string>();
    while (life.states.running().length > 0) {
      const id = [...life.underWay.keys()].at(random.integer(0, Math.max(0, life.underWay.size - 1)));
      if (id !== undefined && random.chance(0.7)) {
        const isMade = random.chance(0.8);
        if (isMade) attempted.add(id);
        const outcome = random.chance(0.5) ? "delivered" : "failed";
        life.answer(id, isMade ? outcome : new ServiceError("unavailable", "no descriptor", {}));
      } else if (random.chance(0.05)) {
        // The service is killed. Its state comes from the records; the attempts under way are lost.
        life = resending(count, 1000, life.states);
        life.resender.begin();
      } else {
        life.setFull(random.chance(0.2));
        life.timers.advance(random.integer(1, 6_000));
      }
    }
    t.equal(attempted.size, count);
    t.match(life.states.figures(RESEND.id, RESEND.webhookId), { attempted: count, deliveries: count, state: "done" });
  }
});

t.test("what cannot be read is tried three times and has failed; a deleted webhook and a client cancel", async (t) => {
  const unreadable = resending(1);
  unreadable.resender.begin();
  for (let read = 0; read < 3; read++) {
    unreadable.answer(countedId(0), new ServiceError("internal_error", "damaged", {}));
    unreadable.timers.advance(5_000);
  }
  t.match(unreadable.ends, listOf({ attempted: 0, delivered: 0, failed: 1, state: "done" }));
  const deleted = resending(3);
  deleted.resender.begin();
  deleted.answer(countedId(0), new ServiceError("webhook_deleted", "gone", {}));
  t.match(deleted.ends, listOf({ attempted: 0, state: "cancelled" }));
  const cancelled = resending(50);
  cancelled.resender.begin();
  cancelled.timers.advance(100);
  const running = cancelled.states.get(RESEND.id)!;
  cancelled.setFull(true);
  t.equal(cancelled.resender.cancel(running), undefined, "that cannot be recorded");
  cancelled.setFull(false);
  t.equal(cancelled.resender.cancel(running), 1, "its record");
  const count = cancelled.begun.length;
  cancelled.timers.advance(10_000);
  t.equal(cancelled.begun.length, count, "none begins");
  t.match(cancelled.ends, listOf({ deliveries: 50, attempted: 0, state: "cancelled" }));
  const stopped = resending(3);
  stopped.resender.begin();
  stopped.answer(countedId(0), new ServiceError("unavailable", "later", {}));
  stopped.resender.stop();
  t.equal(stopped.timers.armed, 0, "nothing keeps the process from ending");
});

t.test("a cancel takes back what has not begun, and counts what went", async (t) => {
  const { states, timers, resender, begun, ends, underWay, sent, takenBack, answer } = resending(50);
  resender.begin();
  timers.advance(1_000);
  const ids = begun.map(({ id }) => id);
  t.equal(ids.length, 8);
  for (const id of ids.slice(0, 3)) sent.add(id);
  answer(ids[0]!, "delivered");
  resender.cancel(states.get(RESEND.id)!);
  t.same(
    takenBack,
    begun.slice(3).map(({ id }) => id),
  );
  t.same([...underWay.keys()], ids.slice(1, 3), "what was sent goes on");
  t.match(ends, listOf({ deliveries: 50, attempted: 1, delivered: 1, state: "cancelled" }), "at once");
  answer(ids[1]!, "failed");
  answer(ids[2]!, "delivered");
  const figures = { deliveries: 50, attempted: 3, delivered: 2, failed: 1, state: "cancelled" };
  t.match(states.figures(RESEND.id, RESEND.webhookId), figures);
  t.equal(ends.length, 2, "one more record, for all of them");
  timers.advance(60_000);
  t.equal(timers.armed + states.running().length, 0, "nothing is left");
});

t.test("100,000 deliveries take little memory", async (t) => {
  const before = heldBytes();
  const { timers, resender, begun, ends, underWay, answer, states } = resending(100_000, 1000);
  const held = heldBytes() - before;
  t.ok(held < 16 * 1024 * 1024, `${Math.round(held / 1024)} KiB`);
  resender.begin();
  let most = 0;
  while (ends.length === 0) {
    begun.length = 0;
    most = Math.max(most, underWay.size);
    for (const id of [...underWay.keys()]) answer(id, "delivered");
    timers.advance(1);
  }
  t.ok(most <= 8, `${most} under way`);
  t.match(ends, listOf({ attempted: 100_000, delivered: 100_000, state: "done" }));
  t.equal(states.running().length, 0);
  t.comment(`100,000 deliveries: ${Math.round(held / 1024)} KiB, ${most} under way at a time`);
});
