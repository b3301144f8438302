import t from "tap";
import { createRandom } from "../../../core/random.js";
import { type DeliveryPlan, DeliverySchedule } from "../../../core/webhook/delivery-schedule.js";

const WINDOW = 10_000;
const DEFAULTS: DeliveryPlan = { attempts: 4, timeoutMs: 3000, backoffMs: 1000, windowMs: WINDOW };

/** Drives a schedule against a receiver that fails after `lastsMs` each time; gives what happened, as text. */
function play(plan: DeliveryPlan, lastsMs: (timeoutMs: number, at: number) => number, deliversAt = -1): string[] {
  const startMs = 5000;
  let nowMs = startMs;
  const schedule = new DeliverySchedule(plan, startMs);
  const events: string[] = [];
  for (let at = 0; ; at++) {
    const begun = schedule.begin(nowMs);
    if (begun.kind === "done") return [...events, `${nowMs - startMs} ${begun.status}`];
    events.push(`${nowMs - startMs} attempt ${begun.timeoutMs}`);
    nowMs += lastsMs(begun.timeoutMs, at);
    const ended = schedule.ended(at === deliversAt, nowMs);
    if (ended.kind === "done") return [...events, `${nowMs - startMs} ${ended.status}`];
    nowMs = ended.untilMs;
  }
}

t.test("a receiver that refuses at once gets every attempt", async (t) => {
  t.same(
    play(DEFAULTS, () => 0),
    ["0 attempt 3000", "1000 attempt 3000", "2000 attempt 3000", "3000 attempt 3000", "3000 failed"],
  );
});

t.test("one that never answers gets what fits, the last one trimmed", async (t) => {
  t.same(
    play(DEFAULTS, (timeoutMs) => timeoutMs),
    ["0 attempt 3000", "4000 attempt 3000", "8000 attempt 2000", "10000 failed"],
  );
  t.same(
    play({ ...DEFAULTS, timeoutMs: 300_000 }, (timeoutMs) => timeoutMs),
    ["0 attempt 10000", "10000 failed"],
  );
});

t.test("a pause that would end at the window's end is not made", async (t) => {
  t.same(
    play({ ...DEFAULTS, backoffMs: 10_000 }, () => 0),
    ["0 attempt 3000", "0 failed"],
  );
  t.same(
    play({ ...DEFAULTS, backoffMs: 9999 }, () => 0),
    ["0 attempt 3000", "9999 attempt 1", "9999 failed"],
  );
});

t.test("no retries, no pause, and an attempt that is taken", async (t) => {
  t.same(
    play({ ...DEFAULTS, attempts: 1 }, () => 5),
    ["0 attempt 3000", "5 failed"],
  );
  t.same(
    play({ ...DEFAULTS, attempts: 2, backoffMs: 0 }, () => 1),
    ["0 attempt 3000", "1 attempt 3000", "2 failed"],
  );
  t.same(
    play(DEFAULTS, () => 10, 1),
    ["0 attempt 3000", "1010 attempt 3000", "1020 delivered"],
  );
});

t.test("a pause that ended too late, by a busy thread, leaves no attempt behind the window", async (t) => {
  const schedule = new DeliverySchedule(DEFAULTS, 0);
  schedule.begin(0);
  t.same(schedule.ended(false, 0), { kind: "pause", untilMs: 1000 });
  t.same(schedule.begin(WINDOW), { kind: "done", status: "failed" });
});

t.test("whatever the settings: at least one attempt, at most all, none ends behind the window", async (t) => {
  const seed = 20_261_121;
  const random = createRandom(seed);
  for (let round = 0; round < 2000; round++) {
    const plan: DeliveryPlan = {
      attempts: random.integer(1, 11),
      timeoutMs: random.integer(1000, 300_000),
      backoffMs: random.integer(0, 30_000),
      windowMs: WINDOW,
    };
    const events = play(plan, (timeoutMs) => random.integer(0, timeoutMs));
    const attempts = events.slice(0, -1).map((event) => event.split(" ").map(Number) as [number, number, number]);
    const fits = attempts.every(([atMs, , timeoutMs]) => timeoutMs > 0 && atMs + timeoutMs <= WINDOW);
    if (attempts.length < 1 || attempts.length > plan.attempts || !fits) {
      t.fail(`seed ${seed}, round ${round}`, { plan, events });
      return;
    }
  }
  t.pass(`2000 plans from seed ${seed}`);
});
