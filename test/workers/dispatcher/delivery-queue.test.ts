import t from "tap";
import { createRandom } from "../../../core/random.js";
import { DeliveryQueue, IN_ALL, PER_RECEIVER } from "../../../workers/dispatcher/delivery-queue.js";

function takeAll(queue: DeliveryQueue<string>): string[] {
  const taken: string[] = [];
  for (let one = queue.take(); one !== undefined; one = queue.take()) taken.push(one);
  return taken;
}

t.test("oldest first within a receiver, at most so many of it", async (t) => {
  const queue = new DeliveryQueue<string>();
  for (let i = 0; i < 20; i++) queue.add("a", `a${i}`);
  t.same(
    takeAll(queue),
    Array.from({ length: PER_RECEIVER }, (_, i) => `a${i}`),
  );
  queue.ended("a");
  t.same(takeAll(queue), [`a${PER_RECEIVER}`]);
  t.equal(queue.waitingCount, 20 - PER_RECEIVER - 1);
});

t.test("receivers take turns", async (t) => {
  const queue = new DeliveryQueue<string>();
  for (const receiver of ["a", "b", "c"]) for (let i = 0; i < 2; i++) queue.add(receiver, `${receiver}${i}`);
  t.same(takeAll(queue), ["a0", "b0", "c0", "a1", "b1", "c1"]);
});

t.test("receivers that hold all places open cost another one nothing", async (t) => {
  const queue = new DeliveryQueue<string>();
  for (let receiver = 0; receiver < 20; receiver++) {
    for (let i = 0; i < 50; i++) queue.add(`slow${receiver}`, `slow${receiver} ${i}`);
  }
  t.equal(takeAll(queue).length, IN_ALL);
  queue.add("fast", "fast 0");
  queue.add("fast", "fast 1");
  t.same(takeAll(queue), ["fast 0"], "its first place is always free");
  queue.ended("fast");
  t.same(takeAll(queue), ["fast 1"]);
  queue.ended("fast");
  queue.ended("slow7");
  t.equal(takeAll(queue).length, 1, "a place that became free is used");
});

t.test("one that waits can be taken out of its turn", async (t) => {
  const queue = new DeliveryQueue<string>();
  queue.add("a", "a0");
  queue.add("a", "a1");
  t.ok(queue.remove("a", "a0"));
  t.notOk(queue.remove("a", "a0"));
  t.notOk(queue.remove("b", "a1"));
  t.same(takeAll(queue), ["a1"]);
  t.notOk(queue.remove("a", "a1"), "it runs");
});

t.test("against a plain model: bounds hold, nothing is lost, nobody who may run is left waiting", async (t) => {
  const seed = 41;
  const random = createRandom(seed);
  const queue = new DeliveryQueue<string>();
  const waiting = new Map<string, string[]>();
  const running = new Map<string, number>();
  let inAll = 0;
  for (let round = 0; round < 30_000; round++) {
    const receiver = `r${random.integer(0, 99)}`;
    const isUnder = (running.get(receiver) ?? 0) > 0;
    if (random.chance(0.55)) {
      queue.add(receiver, `${receiver} ${round}`);
      waiting.set(receiver, [...(waiting.get(receiver) ?? []), `${receiver} ${round}`]);
    } else if (isUnder) {
      queue.ended(receiver);
      running.set(receiver, (running.get(receiver) ?? 0) - 1);
      inAll--;
    }
    for (const taken of takeAll(queue)) {
      const from = taken.split(" ")[0] as string;
      const list = waiting.get(from) ?? [];
      const inOrder = list.shift() === taken;
      running.set(from, (running.get(from) ?? 0) + 1);
      inAll++;
      const isFirst = running.get(from) === 1;
      if (!inOrder || (running.get(from) ?? 0) > PER_RECEIVER || (inAll > IN_ALL && !isFirst)) {
        t.fail(`seed ${seed}, round ${round}: ${taken}`);
        return;
      }
    }
    const left = [...waiting].find(([one, list]) => {
      const count = running.get(one) ?? 0;
      return list.length > 0 && (count === 0 || (count < PER_RECEIVER && inAll < IN_ALL));
    });
    if (left !== undefined || queue.runningCount !== inAll) {
      t.fail(`seed ${seed}, round ${round}: ${left?.[0]} waits`);
      return;
    }
  }
  t.pass(`30,000 rounds from seed ${seed}, ${inAll} running, ${queue.waitingCount} waiting at the end`);
});
