import t from "tap";
import { createRandom } from "../../../../core/random.js";
import { NO_SECRETS } from "../../../../core/webhook/webhook.js";
import { jobOf, nextAction } from "../../../../workers/webhooks/deliveries/delivery-action.js";
import { pauseEndMs } from "../../../../workers/webhooks/deliveries/retry-pause.js";
import { TrackedDelivery } from "../../../../workers/webhooks/deliveries/tracked-delivery.js";
import { countedId, webhookOf } from "../../../helpers/webhooks/scheduler-harness.js";
import { failedDelivery, NO_SIGNERS } from "../../../helpers/webhooks/webhook-fixtures.js";

const WINDOW_MS = 10_000;

interface Plan {
  attempts: number;
  timeoutMs: number;
  backoffMs: number;
}
const DEFAULTS: Plan = { attempts: 4, timeoutMs: 3000, backoffMs: 1000 };

/** Automatic attempts at a receiver that fails after `lastsMs` each time; gives what happened, as text. `lateMs`: by how much pauses end late. */
function play(plan: Plan, lastsMs: (limitMs: number, at: number) => number, takesAt = -1, lateMs = 0): string[] {
  const startMs = 5000;
  let nowMs = startMs;
  const webhook = webhookOf(1, {
    ...{ maxRetries: plan.attempts - 1, retryBackoffSeconds: plan.backoffMs / 1000 },
    deliveryTimeoutSeconds: plan.timeoutMs / 1000,
  });
  const delivery = { ...failedDelivery(null), status: "pending" as const, attempts: 0 };
  const tracked = new TrackedDelivery(countedId(2), webhook.id, "queued", delivery);
  tracked.payload = Buffer.from("{}");
  const events: string[] = [];
  for (let at = 0; ; at++) {
    const action = nextAction(tracked, { webhook, secrets: NO_SECRETS }, nowMs);
    if (action.kind !== "attempt") return [...events, `${nowMs - startMs} failed`];
    tracked.windowEndMs = action.windowEndMs;
    const job = jobOf(tracked, action.kept, NO_SIGNERS, action.windowEndMs - nowMs);
    const limitMs = Math.min(job.timeoutMs, job.windowLeftMs);
    events.push(`${nowMs - startMs} attempt ${limitMs}`);
    nowMs += lastsMs(limitMs, at);
    delivery.attempts++;
    if (at === takesAt) return [...events, `${nowMs - startMs} delivered`];
    const dueMs = pauseEndMs(tracked, delivery.attempts, webhook, nowMs);
    if (dueMs === null) return [...events, `${nowMs - startMs} failed`];
    nowMs = dueMs + lateMs;
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
    play(DEFAULTS, (limitMs) => limitMs),
    ["0 attempt 3000", "4000 attempt 3000", "8000 attempt 2000", "10000 failed"],
  );
  t.same(
    play({ ...DEFAULTS, timeoutMs: 300_000 }, (limitMs) => limitMs),
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

t.test("a pause that ended too late, by a busy thread, leaves no attempt after the window", async (t) => {
  t.same(
    play(DEFAULTS, () => 0, -1, WINDOW_MS),
    ["0 attempt 3000", "11000 failed"],
  );
});

t.test("whatever the settings: at least one attempt, at most all, none ends after the window", async (t) => {
  const seed = 20_261_121;
  const random = createRandom(seed);
  for (let round = 0; round < 2000; round++) {
    const plan: Plan = {
      attempts: random.integer(1, 11),
      timeoutMs: random.integer(1000, 300_000),
      backoffMs: random.integer(0, 30_000),
    };
    const events = play(plan, (limitMs) => random.integer(0, limitMs));
    const attempts = events.slice(0, -1).map((event) => event.split(" attempt ").map(Number) as [number, number]);
    const fits = attempts.every(([atMs, limitMs]) => limitMs > 0 && atMs + limitMs <= WINDOW_MS);
    if (attempts.length < 1 || attempts.length > plan.attempts || !fits) {
      t.fail(`seed ${seed}, round ${round}`, { plan, events });
      return;
    }
  }
  t.pass(`2000 plans from seed ${seed}`);
});
