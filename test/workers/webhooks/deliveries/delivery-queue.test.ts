import t from "tap";
import { createRandom } from "../../../../core/random.js";
import {
  DeliveryQueue,
  IN_ALL,
  mostUnderWay,
  PER_RECEIVER,
} from "../../../../workers/webhooks/deliveries/delivery-queue.js";

function takeAll(queue: DeliveryQueue<string>): string[] {
  const taken: string[] = [];
  for (let one = queue.take(); one !== undefined; one = queue.take()) taken.push(one);
  return taken;
}

t.test("receivers take turns; the deliveries of one event begin in the order in which they are added", async (t) => {
  const queue = new DeliveryQueue<string>();
  const order = ["c", "a", "b"];
  queue.add("a", "before");
  t.same(takeAll(queue), ["before"]);
  for (const event of [0, 1]) for (const receiver of order) queue.add(receiver, `${receiver}${event}`);
  t.same(takeAll(queue), ["c0", "a0", "b0", "c1", "a1", "b1"], "also if one of a receiver is under way");
});

t.test("where few descriptors may be opened, half of the places are for receivers without one", async (t) => {
  t.same([64, 256, 1_024, 524_288, null].map(mostUnderWay), [4, 16, 64, 32_768, Number.POSITIVE_INFINITY]);
  const queue = new DeliveryQueue<string>(4);
  for (let nth = 0; nth < 9; nth++) queue.add("dead", `dead${nth}`);
  t.same(takeAll(queue), ["dead0", "dead1"]);
  for (const receiver of ["a", "b", "c"]) queue.add(receiver, receiver);
  t.same(takeAll(queue), ["a", "b"]);
  queue.ended("a");
  t.same(takeAll(queue), ["c"], "all have their turn");
});

t.test("one that waits can be removed", async (t) => {
  const queue = new DeliveryQueue<string>();
  for (const one of ["a0", "a1", "a2"]) queue.add("a", one);
  const remove = (receiverId: string, id: string) => queue.remove(receiverId, (one) => one === id);
  remove("a", "a1");
  remove("a", "a1");
  remove("b", "a2");
  t.equal(queue.waitingCount, 2);
  t.same(takeAll(queue), ["a0", "a2"]);
  remove("a", "a2");
  t.equal(queue.runningCount, 2, "it runs");
});

for (const most of [Number.POSITIVE_INFINITY, 30]) {
  t.test(
    `against a plain model: bounds hold, nothing is lost, nobody who may run is left waiting (${most} at most)`,
    async (t) => {
      const seed = 41;
      const random = createRandom(seed);
      const queue = new DeliveryQueue<string>(most);
      const shared = Math.min(IN_ALL, most / 2);
      const waiting = new Map<string, string[]>();
      const running = new Map<string, number>();
      const runningOf = (receiver: string): number => running.get(receiver) ?? 0;
      let inAll = 0;
      for (let round = 0; round < 30_000; round++) {
        const receiver = `r${random.integer(0, 99)}`;
        if (random.chance(0.55)) {
          queue.add(receiver, `${receiver} ${round}`);
          waiting.set(receiver, [...(waiting.get(receiver) ?? []), `${receiver} ${round}`]);
        } else if (runningOf(receiver) > 0) {
          queue.ended(receiver);
          running.set(receiver, runningOf(receiver) - 1);
          inAll--;
        }
        for (const taken of takeAll(queue)) {
          const from = taken.split(" ")[0] as string;
          running.set(from, runningOf(from) + 1);
          inAll++;
          const isFirst = waiting.get(from)?.shift() === taken;
          if (!isFirst || runningOf(from) > PER_RECEIVER || inAll > most || (inAll > shared && runningOf(from) !== 1)) {
            t.fail(`seed ${seed}, round ${round}: ${taken}`);
            return;
          }
        }
        const left = [...waiting].find(
          ([one, { length }]) =>
            length > 0 && inAll < most && (runningOf(one) === 0 || (runningOf(one) < PER_RECEIVER && inAll < shared)),
        );
        const waitingInAll = [...waiting.values()].reduce((sum, { length }) => sum + length, 0);
        if (left !== undefined || queue.runningCount !== inAll || queue.waitingCount !== waitingInAll) {
          t.fail(`seed ${seed}, round ${round}: ${left?.[0]} waits`);
          return;
        }
      }
      t.pass(`30,000 rounds from seed ${seed}, ${inAll} running, ${queue.waitingCount} waiting at the end`);
    },
  );
}
