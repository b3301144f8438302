import t from "tap";
import { createRandom } from "../../core/random.js";
import { createServiceClock, wallClockUs } from "../../core/service-clock.js";

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

t.test("a clock without a past begins above zero, which means null in records", async (t) => {
  t.equal(createServiceClock(() => 0).tick(), 1);
  t.ok(Number.isSafeInteger(createServiceClock(wallClockUs).tick()));
});
