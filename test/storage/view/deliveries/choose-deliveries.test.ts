import t from "tap";
import { createRandom } from "../../../../core/random.js";
import type { RunState } from "../../../../core/run/run-state.js";
import type { Delivery } from "../../../../core/webhook/delivery.js";
import type { ResendItem, ResendQuery } from "../../../../core/webhook/resend.js";
import type { Webhook } from "../../../../core/webhook/webhook.js";
import { encodeChanges } from "../../../../storage/records/change-record.js";
import { ResendItems } from "../../../../storage/records/resend-record.js";
import { idOf } from "../../../helpers/link/cell-messages.js";
import { endedRun, RecordsInMemory } from "../../../helpers/webhooks/delivery-records.js";
import { failedDelivery, SECRETS, WEBHOOK } from "../../../helpers/webhooks/webhook-fixtures.js";

const SEED = Number(process.env.TEST_SEED ?? 9);
const RUNS = 700;
const START_US = 1_795_200_000_000_000;
const SECOND_US = 1_000_000;
const ENDS = { completed: "ProgramCompleted", failed: "ProgramFailed", cancelled: "ProgramCancelled" } as const;
const HOOK: Webhook = { ...WEBHOOK, subscribedEvents: ["ProgramStarted", "ProgramCompleted", "ProgramFailed"] };

/** One delivery, or one event without a delivery, as the plain model has it. */
interface Known {
  timeUs: number;
  status: string;
  name: string;
  deliveryId: string | null;
  runId: string;
}

t.test(`which deliveries a resend chooses, against a plain model, seed ${SEED}`, async (t) => {
  const random = createRandom(SEED);
  const log = new RecordsInMemory();
  log.put({ kind: "webhook_put", webhook: HOOK, secrets: SECRETS });
  const known: Known[] = [];
  let nowUs = START_US;
  let count = 0;
  for (let nth = 0; nth < RUNS; nth++) {
    const status = random.pick(["completed", "failed", "cancelled"] as const);
    nowUs += random.integer(1, SECOND_US);
    const startedAtUs = nowUs;
    // Runs overlap: they do not end in the order in which they began.
    const completedAtUs = startedAtUs + random.integer(1, 20 * SECOND_US);
    const runId = idOf(10_000 + nth);
    const times = { startedAtUs, completedAtUs, updatedAtUs: completedAtUs };
    const run: RunState = { ...endedRun(), id: runId, status, ...times };
    log.add(encodeChanges(null, [{ kind: "run_ended", runId, run }], undefined));
    for (const [name, timeUs] of [["ProgramStarted", startedAtUs] as const, [ENDS[status], completedAtUs] as const]) {
      const isTold = random.chance(0.6);
      if (!isTold) {
        if (HOOK.subscribedEvents.includes(name))
          known.push({ timeUs, status: "missed", name, deliveryId: null, runId });
        continue;
      }
      const delivery: Delivery = {
        ...{ ...failedDelivery(runId), id: idOf(100_000 + count++), eventName: name, createdAtUs: timeUs },
        status: random.pick(["failed", "delivered", "exhausted"] as const),
      };
      log.put({ kind: "delivery_put", delivery, history: [], payload: null });
      known.push({ timeUs, status: delivery.status, name, deliveryId: delivery.id, runId });
    }
  }
  let pauses = 0;
  const giveWay = (): undefined => {
    pauses++;
    return undefined;
  };
  for (let round = 0; round < 40; round++) {
    const sinceUs = START_US + random.integer(0, nowUs - START_US);
    const query: ResendQuery = {
      ...{ sinceUs, untilUs: sinceUs + random.integer(1, nowUs - START_US) },
      statuses: random.pick([
        ["failed"],
        ["missed"],
        ["failed", "missed", "delivered", "exhausted"],
        ["delivered"],
      ] as const),
      eventNames: random.chance(0.3) ? ["ProgramStarted", "ProgramFailed"] : undefined,
    };
    const expected = known
      .filter(({ timeUs }) => timeUs >= query.sinceUs && timeUs < query.untilUs)
      .filter(({ status, name }) => {
        return query.statuses.some((one) => one === status) && (query.eventNames?.includes(name) ?? true);
      })
      .sort((a, b) => a.timeUs - b.timeUs);
    const { count, items } = await log.view.chooseDeliveries(HOOK, query, 10_000, giveWay);
    t.equal(count, expected.length, JSON.stringify(query));
    const list = new ResendItems(items);
    const chosen = Array.from({ length: count }, (_, at): ResendItem => list.item(at));
    t.same(
      chosen.map(({ deliveryId, missed }) => missed ?? deliveryId),
      expected.map(({ deliveryId, runId, name }) => deliveryId ?? { runId, eventName: name }),
    );
    t.equal(new Set(chosen.map(({ deliveryId }) => deliveryId)).size, count, "each has an id of its own");
  }
  const all: ResendQuery = { sinceUs: 0, untilUs: 2 * nowUs, statuses: ["failed", "delivered"], eventNames: undefined };
  t.equal((await log.view.chooseDeliveries(HOOK, all, 10, giveWay)).count > 10, true, "too many are told as such");
  t.comment(`${RUNS} runs, ${count} deliveries; it gave way ${pauses} times`);
});
