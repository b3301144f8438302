import t from "tap";
import { createRandom } from "../../../../core/random.js";
import { DELIVERY_STATUSES, type Delivery } from "../../../../core/webhook/delivery.js";
import { EVENT_NAMES } from "../../../../core/webhook/webhook.js";
import { TypedColumn } from "../../../../storage/columns/typed-column.js";
import type { DeliveryPlaces } from "../../../../storage/records/webhook-record.js";
import { DeliveryList } from "../../../../storage/view/deliveries/delivery-list.js";
import { type DeliveryFilter, ViewDeliveries } from "../../../../storage/view/deliveries/view-deliveries.js";
import { idOf, RUN_ID } from "../../../helpers/link/cell-messages.js";
import { deliveriesOf, stored } from "../../../helpers/webhooks/delivery-records.js";
import { failedDelivery } from "../../../helpers/webhooks/webhook-fixtures.js";

const SEED = Number(process.env.TEST_SEED ?? 3);
const WEBHOOKS = [idOf(1), idOf(2)];
const HOUR_US = 3_600_000_000;
const DAY_US = 24 * HOUR_US;

/** The figures of all deliveries of a webhook, counted anew. */
function figuresOf(all: Iterable<Delivery>, webhookId: string, nowUs: number) {
  const own = [...all].filter((one) => one.webhookId === webhookId);
  const count = (wanted: string) =>
    own.filter(({ status, createdAtUs }) => status === wanted && createdAtUs >= nowUs - DAY_US).length;
  return { delivered: count("delivered"), failed: count("failed") };
}

t.test(`filters and figures against a plain model, seed ${SEED}`, async (t) => {
  const random = createRandom(SEED);
  const view = new ViewDeliveries();
  const model = new Map<string, Delivery>();
  const lasts = new Map(WEBHOOKS.map((id) => [id, { success: 0, failure: 0, error: null as string | null }]));
  let nowUs = 1_780_000_000_000_000;
  let count = 0;
  const put = (delivery: Delivery): void => {
    model.set(delivery.id, delivery);
    view.put(stored(delivery), { segmentBase: 1, offset: 1, length: 1 });
    const last = lasts.get(delivery.webhookId)!;
    if (delivery.status === "delivered") last.success = delivery.deliveredAtUs as number;
    if (delivery.status === "failed") Object.assign(last, { failure: nowUs, error: delivery.lastError });
  };
  for (let step = 0; step < 4000; step++) {
    nowUs += random.integer(1, HOUR_US / 10);
    const known = [...model.values()];
    const old = known.length > 0 && random.chance(0.5) ? random.pick(known) : undefined;
    const status = random.pick(["pending", "delivered", "failed"] as const);
    const base: Delivery = old ?? {
      ...{ ...failedDelivery(RUN_ID), id: idOf(100 + count++), webhookId: random.pick(WEBHOOKS) },
      // Now and then one comes out of order.
      ...{ createdAtUs: nowUs - (random.chance(0.02) ? random.integer(0, 3 * DAY_US) : 0), firstFailure: null },
      eventName: random.pick(EVENT_NAMES),
    };
    const lastError = status === "failed" ? `error ${step}` : null;
    const failure = { atUs: nowUs, statusCode: null, error: lastError, webhookName: null };
    const firstFailure = base.firstFailure ?? (status === "failed" ? failure : null);
    const deliveredAtUs = status === "delivered" ? nowUs : base.deliveredAtUs;
    put({ ...base, status, lastError, firstFailure, deliveredAtUs, updatedAtUs: nowUs });
    if (step % 40 !== 0) continue;
    for (const webhookId of WEBHOOKS) {
      const last = lasts.get(webhookId)!;
      t.match(view.figuresOf(webhookId, nowUs), {
        ...figuresOf(model.values(), webhookId, nowUs),
        ...{ lastSuccessAtUs: last.success || null, lastFailureAtUs: last.failure || null, lastError: last.error },
      });
      const filter: DeliveryFilter = {
        beforeUs: random.chance(0.5) ? nowUs - random.integer(0, 5 * DAY_US) : undefined,
        status: random.chance(0.7) ? random.pick(DELIVERY_STATUSES) : undefined,
        eventName: random.chance(0.5) ? random.pick(EVENT_NAMES) : undefined,
      };
      const limit = random.integer(1, 30);
      const expected = [...model.values()]
        .filter((one) => one.webhookId === webhookId && one.createdAtUs < (filter.beforeUs ?? Number.POSITIVE_INFINITY))
        .filter(({ status }) => filter.status === undefined || status === filter.status)
        .filter(({ eventName }) => filter.eventName === undefined || eventName === filter.eventName)
        .sort((a, b) => b.createdAtUs - a.createdAtUs)
        .slice(0, limit);
      const { found } = searched(view, webhookId, filter, limit);
      t.same(
        found.map(({ id }) => id),
        expected.map(({ id }) => id),
        JSON.stringify(filter),
      );
    }
  }
  t.comment(`${count} deliveries`);
});

t.test("figures after an idle day look at the rows of one minute, however many the day before had", async (t) => {
  let looks = 0;
  class CountedColumn extends TypedColumn<Uint8Array> {
    override get(row: number): number {
      looks++;
      return super.get(row);
    }
  }
  const [created, statuses] = [new TypedColumn(Float64Array), new CountedColumn(Uint8Array)];
  const list = new DeliveryList(created, statuses);
  const first = 1_780_000_000_000_000;
  const places = { ...{ status: 1, deliveredAtUs: 0, firstFailedAtUs: 0 }, updatedAtUs: 0 } as DeliveryPlaces;
  for (let row = 0; row < 10_000; row++) {
    created.push(first + row * 1_000_000);
    statuses.push(DELIVERY_STATUSES.indexOf("delivered"));
    list.add(row);
    list.changed(row, DELIVERY_STATUSES.indexOf("pending"), { ...places, status: statuses.get(row) }, new Uint8Array());
  }
  looks = 0;
  t.match(list.figures(first + DAY_US - 1_000_000), { delivered: 10_000, failed: 0 });
  t.match(list.figures(first + DAY_US + 4_000 * 1_000_000), { delivered: 6_000, failed: 0 });
  t.match(list.figures(first + 3 * DAY_US), { delivered: 0, failed: 0 });
  t.ok(looks <= 120, `${looks} rows`);
});

t.test("a search that finds little stops again and again, so that others can work", async (t) => {
  const view = new ViewDeliveries();
  for (let nth = 0; nth < 20_000; nth++) {
    const delivery = { ...failedDelivery(null), id: idOf(100 + nth), webhookId: idOf(1), createdAtUs: 1_000 + nth };
    view.put(stored(delivery), { segmentBase: 1, offset: nth, length: 1 });
  }
  t.same(searched(view, idOf(1), { status: "delivered" }, 10), { found: [], pieces: 3 });
  t.equal(searched(view, idOf(1), { status: "failed" }, 10).pieces, 1, "one that is full ends at once");
});

t.test("what comes late while a search goes on hides nothing from it", async (t) => {
  const view = new ViewDeliveries();
  const put = (nth: number, createdAtUs: number, status: "failed" | "delivered"): void => {
    const delivery = { ...failedDelivery(null), id: idOf(100 + nth), webhookId: idOf(1), createdAtUs, status };
    view.put(stored(delivery), { segmentBase: 1, offset: nth, length: 1 });
  };
  // The failed ones stand where pieces meet.
  const isFailed = (nth: number): boolean => nth % 1_024 < 2 || nth % 1_024 === 1_023;
  const failed: string[] = [];
  for (let nth = 0; nth < 20_000; nth++) {
    put(nth, 1_000_000 + 10 * nth, isFailed(nth) ? "failed" : "delivered");
    if (isFailed(nth)) failed.push(idOf(100 + nth));
  }
  let late = 20_000;
  const putLate = (): void => {
    for (const atUs of [1_000_005, 1_100_005]) put(late, atUs + late++, "delivered");
  };
  const search = view.search(idOf(1), { status: "failed" }, 1_000);
  let step = search.next();
  for (; step.done !== true; step = search.next()) putLate();
  t.same(step.value.map(({ id }) => id).reverse(), failed);
  const chosen: string[] = [];
  for (const few of view.between(idOf(1), 0, Number.MAX_SAFE_INTEGER, (status) => status === "failed")) {
    chosen.push(...few.map(({ id }) => id));
    putLate();
  }
  t.same(chosen, failed);
});

t.test("one that comes late is put in its place in far less than a millisecond", async (t) => {
  const view = new ViewDeliveries();
  const put = (nth: number, createdAtUs: number): void => {
    const delivery = { ...failedDelivery(null), id: idOf(100 + nth), webhookId: idOf(1), createdAtUs };
    view.put(stored(delivery), { segmentBase: 1, offset: nth, length: 1 });
  };
  for (let nth = 0; nth < 100_000; nth++) put(nth, 1_000_000 + 10 * nth);
  const times: number[] = [];
  for (let nth = 0; nth < 1_000; nth++) {
    // A receiver that takes its time: thousands came meanwhile.
    const beganMs = performance.now();
    put(100_000 + nth, 1_000_000 + 10 * 95_000 + 10 * nth + 5);
    view.figuresOf(idOf(1), 2_000_000);
    deliveriesOf(view, idOf(1), null, 20);
    times.push(performance.now() - beganMs);
  }
  const median = times.sort((a, b) => a - b)[500] as number;
  t.ok(median < 0.5, `${median} ms`);
  t.comment(`one put in among 100,000, with figures and a page: ${median.toFixed(3)} ms`);
});

/** The answer of a search, and in how many pieces it was found. */
function searched(view: ViewDeliveries, ...asked: Parameters<ViewDeliveries["search"]>) {
  const search = view.search(...asked);
  for (let pieces = 1; ; pieces++) {
    const { done, value } = search.next();
    if (done === true) return { found: value, pieces };
  }
}
