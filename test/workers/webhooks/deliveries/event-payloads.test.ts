import t from "tap";
import { EventPayloads } from "../../../../workers/webhooks/deliveries/event-payloads.js";
import { ShortMemory } from "../../../helpers/short-memory.js";
import { SchedulerHarness, webhookOf } from "../../../helpers/webhooks/scheduler-harness.js";

t.test("an event for which there is no memory is not kept, and nothing fails", async (t) => {
  const memory = new ShortMemory(t);
  const payloads = new EventPayloads();
  memory.leastRefusedBytes = 10;
  payloads.keep("large", "x".repeat(20), 1);
  payloads.keep("small", "x".repeat(5), 1);
  t.equal(memory.refusals, 1);
  t.equal(payloads.get("large"), null);
  t.equal(payloads.get("small")?.length, 5);
  t.equal(payloads.keptBytes, 5);
  payloads.ended("large");
  payloads.ended("small");
  t.equal(payloads.keptBytes, 0);
});

t.test("a retry whose event finds no memory is refused for now", async (t) => {
  const memory = new ShortMemory(t);
  const webhook = webhookOf(1);
  const harness = SchedulerHarness.serving(webhook);
  const id = harness.emit([webhook], "x".repeat(2_000)).deliveries[0]?.id as string;
  harness.settle();
  harness.refuse(id);
  harness.settle();
  memory.leastRefusedBytes = 1_000;
  let answer: unknown;
  harness.retry(id, (outcome) => {
    answer = outcome;
  });
  harness.answerAllContent();
  t.match(answer, { error: { data: { code: "unavailable" }, message: /the machine has no memory left/ } });
});

t.test("a delivery that was read, and finds no memory, stays pending and is tried again", async (t) => {
  const memory = new ShortMemory(t);
  const webhook = webhookOf(1);
  const harness = SchedulerHarness.serving(webhook);
  memory.leastRefusedBytes = 1_000;
  harness.emit([webhook], "x".repeat(2_000));
  harness.settle();
  harness.answerAllContent();
  t.equal(harness.jobs.size, 0);
  t.match(
    harness.scheduler.fault,
    /1 delivery waits, because stored data cannot be read: the machine has no memory left/,
  );
  memory.leastRefusedBytes = Number.POSITIVE_INFINITY;
  harness.timers.advance(10_000);
  harness.answerAllContent();
  t.equal(harness.jobs.size, 1);
  t.equal(harness.scheduler.fault, null);
});
