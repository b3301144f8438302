import t from "tap";
import { createRandom } from "../../../core/random.js";
import { DeliveryQueue, IN_ALL, PER_RECEIVER } from "../../../workers/webhooks/delivery-queue.js";

function takeAll(queue: DeliveryQueue<string>): string[] {
  const taken: string[] = [];
  for (let one = queue.take(); one !== undefined; one = queue.take()) taken.push(one);
  return taken;
}

function takeAllAhead(queue: DeliveryQueue<string>): string[] {
  const taken: string[] = [];
  const any = (): boolean => true;
  for (let one = queue.takeAhead(any); one !== undefined; one = queue.takeAhead(any)) taken.push(one);
  return taken;
}

t.test("oldest first within a receiver, at most so many of it", async (t) => {
  const queue = new DeliveryQueue<string>();
  for (let i = 0; i < 20; i++) queue.add("a", `a${i}`);
  t.same(
    takeAll(queue),
    Array.from({ length: PER_RECEIVER }, (_, i) => `a${i}`),
  );
  queue.ended("a", "a0");
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
  queue.ended("fast", "fast 0");
  t.same(takeAll(queue), ["fast 1"]);
  queue.ended("fast", "fast 1");
  queue.ended("slow7", "slow7 0");
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

/** As many receivers as may run at a time, each with `count` that wait but for the first, which runs. */
function fullQueue(count: number): DeliveryQueue<string> {
  const queue = new DeliveryQueue<string>();
  for (let receiver = 0; receiver < IN_ALL; receiver++) {
    for (let i = 0; i < count; i++) queue.add(`r${receiver}`, `r${receiver} ${i}`);
  }
  takeAll(queue);
  return queue;
}

t.test(
  "without room for more in all, one more of each receiver goes ahead, and takes the place of the one that ends",
  async (t) => {
    const queue = fullQueue(3);
    t.equal(queue.runningCount, IN_ALL);
    const ahead = takeAllAhead(queue);
    t.same(
      ahead,
      Array.from({ length: IN_ALL }, (_, receiver) => `r${receiver} 1`),
    );
    t.equal(queue.before("r7", "r7 1"), "r7 0");
    t.equal(queue.before("r7", "r7 0"), undefined, "it runs");
    t.same([queue.runningCount, queue.waitingCount], [IN_ALL, 2 * IN_ALL], "it still waits");
    queue.ended("r7", "r7 0");
    t.equal(queue.before("r7", "r7 1"), undefined, "its turn has come");
    t.same([queue.runningCount, queue.waitingCount], [IN_ALL, 2 * IN_ALL - 1]);
    t.same(takeAll(queue), []);
    t.same(takeAllAhead(queue), ["r7 2"], "the next one");
    queue.ended("r7", "r7 2");
    t.same([queue.runningCount, queue.waitingCount], [IN_ALL, 2 * IN_ALL - 2], "broken off before its turn");
    queue.ended("r7", "r7 1");
    t.equal(queue.runningCount, IN_ALL - 1);
  },
);

t.test("where there is room again, one that went ahead is the next, before what came behind it", async (t) => {
  const queue = fullQueue(3);
  takeAllAhead(queue);
  for (const one of ["r5 1", "r5 0"]) queue.ended("r5", one);
  t.equal(queue.runningCount, IN_ALL - 1);
  t.same(takeAll(queue), ["r5 2"], "of nothing that runs the first");
  queue.ended("r5", "r5 2");
  t.same(takeAll(queue), ["r0 1"]);
  t.equal(queue.before("r0", "r0 1"), undefined);
  t.same([queue.runningCount, queue.waitingCount], [IN_ALL, 2 * (IN_ALL - 1) - 1]);
  queue.ended("r0", "r0 1");
  t.same(takeAll(queue), ["r0 2"]);
});

t.test("none goes ahead behind one that it may not follow", async (t) => {
  const queue = fullQueue(2);
  const asked: string[] = [];
  const mayFollow = (running: string, next: string): boolean => {
    asked.push(`${running} < ${next}`);
    return false;
  };
  t.equal(queue.takeAhead(mayFollow), undefined);
  t.equal(asked.length, IN_ALL);
  t.ok(asked.includes("r3 0 < r3 1"));
  t.equal(queue.waitingCount, IN_ALL);
});

t.test(
  "none goes ahead of its turn where there is room, nor where nothing or more than one of the receiver runs",
  async (t) => {
    const queue = new DeliveryQueue<string>();
    for (let i = 0; i < 9; i++) queue.add("a", `a${i}`);
    t.equal(takeAll(queue).length, PER_RECEIVER);
    t.same(takeAllAhead(queue), [], "there is room in all");
    const full = fullQueue(1);
    full.add("r1", "r1 1");
    t.same(takeAll(full), []);
    full.ended("r1", "r1 0");
    t.same(takeAllAhead(full), [], "its turn has come");
    t.same(takeAll(full), ["r1 1"]);
  },
);

t.test("against a plain model: bounds hold, nothing is lost, nobody who may run is left waiting", async (t) => {
  const seed = 41;
  const random = createRandom(seed);
  const queue = new DeliveryQueue<string>();
  const waiting = new Map<string, string[]>();
  const running = new Map<string, string[]>();
  const ahead = new Map<string, string>();
  const runningOf = (receiver: string): string[] => running.get(receiver) ?? [];
  let inAll = 0;
  let aheadInAll = 0;
  for (let round = 0; round < 30_000; round++) {
    const receiver = `r${random.integer(0, 99)}`;
    const isUnder = runningOf(receiver).length > 0;
    if (random.chance(0.55)) {
      queue.add(receiver, `${receiver} ${round}`);
      waiting.set(receiver, [...(waiting.get(receiver) ?? []), `${receiver} ${round}`]);
    } else if (isUnder) {
      const next = ahead.get(receiver);
      ahead.delete(receiver);
      if (next !== undefined && random.chance(0.2)) {
        queue.ended(receiver, next);
      } else {
        const ended = random.pick(runningOf(receiver));
        queue.ended(receiver, ended);
        const left = runningOf(receiver).filter((one) => one !== ended);
        running.set(receiver, next === undefined ? left : [...left, next]);
        if (next === undefined) inAll--;
      }
    }
    for (const taken of takeAll(queue)) {
      const from = taken.split(" ")[0] as string;
      const list = waiting.get(from) ?? [];
      const isPromoted = ahead.get(from) === taken;
      // One that went ahead comes before those that still wait.
      const inOrder = isPromoted || (!ahead.has(from) && list.shift() === taken);
      if (isPromoted) ahead.delete(from);
      running.set(from, [...runningOf(from), taken]);
      inAll++;
      const count = runningOf(from).length;
      if (!inOrder || count > PER_RECEIVER || (inAll > IN_ALL && count !== 1)) {
        t.fail(`seed ${seed}, round ${round}: ${taken}`);
        return;
      }
    }
    for (const taken of takeAllAhead(queue)) {
      const from = taken.split(" ")[0] as string;
      const inOrder = waiting.get(from)?.shift() === taken;
      const isFollower = queue.before(from, taken) === runningOf(from)[0];
      if (!inOrder || !isFollower || ahead.has(from) || runningOf(from).length !== 1 || inAll < IN_ALL) {
        t.fail(`seed ${seed}, round ${round}: ${taken} goes ahead`);
        return;
      }
      ahead.set(from, taken);
      aheadInAll++;
    }
    const left = [...waiting].find(([one, list]) => {
      const count = runningOf(one).length;
      if (list.length > 0 && count === 1 && inAll >= IN_ALL && !ahead.has(one)) return true;
      return list.length > 0 && (count === 0 || (count < PER_RECEIVER && inAll < IN_ALL));
    });
    const waitingInAll = [...waiting.values()].reduce((sum, list) => sum + list.length, ahead.size);
    if (left !== undefined || queue.runningCount !== inAll || queue.waitingCount !== waitingInAll) {
      t.fail(`seed ${seed}, round ${round}: ${left?.[0]} waits`);
      return;
    }
  }
  t.pass(
    `30,000 rounds from seed ${seed}, ${inAll} running, ${queue.waitingCount} waiting at the end, ${aheadInAll} went ahead`,
  );
  t.ok(aheadInAll > 100);
});
