import t from "tap";
import { createRandom } from "../../core/random.js";
import {
  clockFault,
  createFollowingClock,
  createServiceClock,
  monotonicMs,
  wallClockUs,
} from "../../core/service-clock.js";
import { TIME_LIMIT_US } from "../../core/timestamps.js";

const seed = Number(process.env.TEST_SEED ?? 20261120);
t.comment(`TEST_SEED=${seed}`);

t.test("every time is max(wall, last + 1 µs)", async (t) => {
  const random = createRandom(seed);
  let wall = 1_795_200_000_000_000;
  let last = wall + 500;
  const clock = createServiceClock(() => wall, last);
  t.equal(clock.lastUs, last, "counts on from where the log stopped");
  for (let i = 0; i < 10_000; i++) {
    wall += random.pick([0, 0, 1, 0.25, 1000, -3_600_000_000, 3_600_000_000]);
    const expected = Math.max(Math.floor(wall), last + 1);
    const time = clock.tick();
    if (time !== expected || clock.lastUs !== time) return void t.fail(`tick ${i}: ${time}, not ${expected}`);
    last = time;
  }
  t.pass("10000 ticks");
});

t.test("a wall clock that is wrong for certain takes no later time along", async (t) => {
  let wall = 1_795_200_000_000_000;
  const clock = createServiceClock(() => wall);
  const before = clock.tick();
  for (const glitch of [
    TIME_LIMIT_US,
    TIME_LIMIT_US + 0.5,
    2 ** 53,
    8.64e18,
    Number.POSITIVE_INFINITY,
    -1,
    Number.NaN,
  ]) {
    wall = glitch;
    const last = clock.lastUs;
    t.equal(clock.tick(), last + 1, String(glitch));
  }
  wall = before + 1_000;
  t.equal(clock.tick(), wall, "right again");
  wall = TIME_LIMIT_US - 1;
  t.equal(clock.tick(), wall, "the last time that counts");
});

t.test("a fault says how far the service's clock is ahead, from a minute on", async (t) => {
  const wall = 1_795_200_000_000_000;
  for (const ahead of [-1e12, -1, 0, 1, 60_000_000]) t.equal(clockFault(wall + ahead, wall), null, String(ahead));
  const cases: [aheadUs: number, said: RegExp][] = [
    [60_000_001, /clock \(2026-11-20T18:41:00\.000001Z\) is 1 minutes ahead of the machine's\. .*check --reset-clock$/],
    [119 * 60e6, / 119 minutes ahead/],
    [120 * 60e6, / 2 hours ahead/],
    [47.9 * 3600e6, / 47 hours ahead/],
    [3652 * 86_400e6, / \(2036-11-19T\S*\) is 3652 days ahead of the machine's/],
  ];
  for (const [ahead, said] of cases) t.match(clockFault(wall + ahead, wall), said);
  t.match(
    clockFault(wall, Date.UTC(2300, 0, 1) * 1000),
    /the machine's clock is wrong: it says 2300-01-01T.* 2026-11-20T/,
  );
  t.match(clockFault(wall, -5), /ahead of the machine's/, "before 1970");
});

t.test("a clock without a past begins above zero, which means null in records", async (t) => {
  t.equal(createServiceClock(() => 0).tick(), 1);
  t.ok(Number.isSafeInteger(createServiceClock(wallClockUs).tick()));
});

t.test("a time that another thread gave is never given again, and takes the clock back never", async (t) => {
  const clock = createServiceClock(() => 1_000, 5_000);
  clock.observe(7_000);
  t.equal(clock.tick(), 7_001);
  clock.observe(6_000);
  t.equal(clock.tick(), 7_002);
});

t.test("the clock of another thread: the owner's time, and what has passed since", async (t) => {
  let nowMs = 50;
  const clock = createFollowingClock(() => nowMs);
  t.throws(() => clock.tick(), /has not been told/);
  clock.follow({ timeUs: 9_000_000, atMs: 40 });
  t.equal(clock.tick(), 9_010_000, "10 ms ago it was told");
  t.equal(clock.tick(), 9_010_001, "above every one before");
  nowMs += 0.25;
  t.equal(clock.tick(), 9_010_250);
  // The owner's wall clock was set back, so its clock stands still. This one goes on from there, and never back.
  clock.follow({ timeUs: 9_010_300, atMs: 50.25 });
  t.equal(clock.tick(), 9_010_301);
  clock.follow({ timeUs: 9_000_500, atMs: 50.25 });
  t.equal(clock.tick(), 9_010_302, "never back");
  const before = monotonicMs();
  t.ok(monotonicMs() >= before);
});
