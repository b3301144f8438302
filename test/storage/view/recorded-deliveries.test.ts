import { setImmediate as eventLoopTurn } from "node:timers/promises";
import t from "tap";
import { LIMITS } from "../../../core/limits.js";
import type { RunState } from "../../../core/run/run-state.js";
import { summarizeRun } from "../../../core/run/run-state.js";
import type { Delivery } from "../../../core/webhook/delivery.js";
import { newDelivery } from "../../../core/webhook/emit-run-event.js";
import { encodeChanges } from "../../../storage/records/change-record.js";
import { ViewDeliveries } from "../../../storage/view/deliveries/view-deliveries.js";
import { RunRecords } from "../../../storage/view/run-records.js";
import { idOf, RUN_ID } from "../../helpers/link/cell-messages.js";
import { listRuns } from "../../helpers/store/view-comparison.js";
import {
  deliveriesOf,
  endedRun,
  listed,
  RecordsInMemory,
  recordOfEnd,
  stored,
} from "../../helpers/webhooks/delivery-records.js";
import {
  ATTEMPT,
  DELIVERY_ID,
  EVENT,
  failedDelivery,
  SECRETS,
  WEBHOOK,
  WEBHOOK_ID,
} from "../../helpers/webhooks/webhook-fixtures.js";

t.test("a delivery begins in its run's record, and is read from there until it has its own", async (t) => {
  const log = new RecordsInMemory();
  log.put({ kind: "webhook_put", webhook: WEBHOOK, secrets: SECRETS });
  log.add(recordOfEnd(endedRun([EVENT])));
  const begun = newDelivery(EVENT.deliveries[0]!, EVENT, RUN_ID);
  t.strictSame(await log.view.delivery(DELIVERY_ID), {
    delivery: begun,
    history: [],
    payload: EVENT.payload,
    isOwnPayload: false,
  });
  t.strictSame([...log.state.webhooks.pending()], [begun], "the settled one is not made again");
  log.put({ kind: "delivery_put", delivery: failedDelivery(RUN_ID), history: [ATTEMPT], payload: null });
  const content = { delivery: failedDelivery(RUN_ID), history: [ATTEMPT], payload: EVENT.payload, isOwnPayload: false };
  t.strictSame(await log.view.delivery(DELIVERY_ID), content);
  t.strictSame([...log.state.webhooks.pending()], []);
  t.strictSame(await listed(log.view, null, 10), [[content.delivery, content.payload]]);
  t.strictSame(await log.view.deliveriesOfRun(endedRun([EVENT])), [
    failedDelivery(RUN_ID),
    newDelivery(EVENT.deliveries[1]!, EVENT, RUN_ID),
  ]);
  // The tombstone of the captures repeats the same events.
  log.add(recordOfEnd({ ...endedRun([EVENT]), capturesRemovedAtUs: EVENT.timeUs + 9 }));
  t.strictSame(await log.view.delivery(DELIVERY_ID), content, "what is known stays");
});

t.test("the pause of a delivery that the store held when it was opened is over; one told since is shown", async (t) => {
  const log = new RecordsInMemory();
  const nextRetryAtUs = EVENT.timeUs + 1_000_000;
  const paused = { ...failedDelivery(RUN_ID), status: "pending" as const, firstFailure: null, nextRetryAtUs };
  log.put({ kind: "webhook_put", webhook: WEBHOOK, secrets: SECRETS });
  log.add(recordOfEnd(endedRun([EVENT])));
  const put = (delivery = paused) =>
    log.put({ kind: "delivery_put", delivery, history: [ATTEMPT], payload: EVENT.payload });
  const shown = async () => {
    const [[inList]] = (await listed(log.view, null, 10)) as [[Delivery, string]];
    const ofRun = (await log.view.deliveriesOfRun(endedRun([EVENT])))[0];
    return [(await log.view.delivery(DELIVERY_ID))?.delivery, inList, ofRun].map((one) => one?.nextRetryAtUs);
  };
  put();
  log.view.fold.finishOpening();
  t.same(await shown(), [null, null, null]);
  put();
  t.same(await shown(), [nextRetryAtUs, nextRetryAtUs, nextRetryAtUs]);
  put({ ...paused, nextRetryAtUs: null } as never);
  t.same(await shown(), [null, null, null]);
  put();
  log.view.fold.endPausesForGood();
  t.same(await shown(), [null, null, null], "nor when whoever waits for it has ended");
  put();
  t.same(await shown(), [null, null, null], "nor in a record that was on its way then");
});

t.test("the version of the deliveries changes with all that may change how one is shown", async (t) => {
  const log = new RecordsInMemory();
  const { deliveries, fold } = log.view;
  const changes = {
    begin: () => log.add(recordOfEnd(endedRun([EVENT]))),
    put: () => log.put({ kind: "delivery_put", delivery: failedDelivery(RUN_ID), history: [ATTEMPT], payload: null }),
    endPauses: () => fold.finishOpening(),
    endPausesForGood: () => fold.endPausesForGood(),
  };
  for (const [name, change] of Object.entries(changes)) {
    const { version } = deliveries;
    change();
    t.not(deliveries.version, version, name);
  }
});

t.test("a delivery whose record comes before its run's", async (t) => {
  const settled = { ...EVENT, deliveries: EVENT.deliveries.map((one) => ({ ...one, settled: true as const })) };
  const log = new RecordsInMemory();
  log.put({ kind: "delivery_put", delivery: failedDelivery(RUN_ID), history: [ATTEMPT], payload: null });
  log.add(recordOfEnd(endedRun([settled])));
  t.strictSame([...log.state.webhooks.pending()], [], "nothing that has come to its end goes out again");
  t.equal((await log.view.delivery(DELIVERY_ID))?.delivery.status, "failed");
});

t.test(
  "a page of deliveries reads a few records at a time, holds no more than it may, and leaves none out",
  async (t) => {
    const log = new RecordsInMemory();
    log.put({ kind: "webhook_put", webhook: WEBHOOK, secrets: SECRETS });
    const [begun] = EVENT.deliveries;
    const ids: string[] = [];
    for (let nth = 0; nth < 70; nth++) {
      const [runId, timeUs] = [idOf(10_000 + nth), EVENT.timeUs + nth];
      // Most payloads have half a megabyte. The second one has more than a page may hold.
      const payload = JSON.stringify({
        event_id: nth,
        fill: "x".repeat(nth === 1 ? LIMITS.deliveriesPageBytes : 512 * 1024),
      });
      const event = {
        ...EVENT,
        id: idOf(20_000 + nth),
        timeUs,
        payload,
        deliveries: [{ ...begun!, id: idOf(30_000 + nth) }],
      };
      const run = { ...endedRun([event]), id: runId };
      log.add(encodeChanges(null, [{ kind: "run_ended", runId, run }], undefined));
      ids.push(event.deliveries[0]!.id);
    }
    const pages: number[] = [];
    const seen: string[] = [];
    for (let beforeUs: number | null = null; ; ) {
      const page: [Delivery, string][] = await listed(log.view, beforeUs, 200);
      if (page.length === 0) break;
      pages.push(page.length);
      for (const [{ id }, payload] of page) {
        t.equal(JSON.parse(payload).event_id, ids.indexOf(id));
        seen.push(id);
      }
      beforeUs = page.at(-1)?.[0].createdAtUs ?? 0;
    }
    t.same(seen, ids.toReversed(), "each once");
    t.same(pages, [63, 5, 1, 1], "of 32 MiB, and one that is larger alone");
    t.equal(log.mostOpenReads, 4);
  },
);

t.test("deliveries of a webhook: newest first, paged by time, whatever order they came in", async (t) => {
  const deliveries = new ViewDeliveries();
  const at = (nth: number) => ({ ...failedDelivery(RUN_ID), id: idOf(1000 + nth), createdAtUs: 1000 + nth });
  const order = [0, 1, 2, 7, 8, 3, 4, 5, 6, 9];
  for (const nth of order) deliveries.put(stored(at(nth)), { segmentBase: 1, offset: nth, length: 1 });
  deliveries.put(stored({ ...at(0), id: idOf(2000), webhookId: idOf(2) }), { segmentBase: 1, offset: 0, length: 1 });
  const page = (beforeUs: number | null, limit: number) =>
    deliveriesOf(deliveries, WEBHOOK_ID, beforeUs, limit).map(({ createdAtUs }) => createdAtUs - 1000);
  t.same(page(null, 100), [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
  t.same(page(null, 3), [9, 8, 7]);
  t.same(page(1007, 3), [6, 5, 4], "strictly before");
  t.same(page(1000, 3), []);
  t.same(deliveriesOf(deliveries, idOf(3), null, 3), []);
  const changes = deliveries.changesOf(RUN_ID);
  deliveries.put(stored(at(3)), { segmentBase: 1, offset: 99, length: 1 });
  t.equal(deliveries.changesOf(RUN_ID), changes + 1);
  t.equal(deliveries.row(idOf(1003))?.location?.offset, 99);
});

t.test("kept list entries: under eight addresses, and a read that was overtaken takes the place of none", async (t) => {
  let release = () => {};
  const older = { ...endedRun(), updatedAtUs: 1000 };
  const newer = summarizeRun({ ...older, updatedAtUs: 2000 });
  const record = { ...encodeChanges(null, [{ kind: "run_ended", runId: RUN_ID, run: older }], undefined), flags: 0 };
  const readMany = async () => {
    await new Promise<void>((resolve) => {
      release = resolve;
    });
    return [record];
  };
  const location = { segmentBase: 1, offset: 0, length: 100 };
  const records = new RunRecords({ reader: { readMany } as never });
  const bases = Array.from({ length: 8 }, (_, nth) => `http://cell-${nth}`);
  const stored = { id: RUN_ID, ordinal: 5, updatedAtUs: 1000, location };
  const readUnder = async (baseUrl: string) => {
    const read = records.readSummariesJson([stored], baseUrl);
    await eventLoopTurn();
    release();
    return read;
  };
  for (const base of bases) await readUnder(base);
  for (const base of bases) t.ok(records.cachedSummaryJson(5, 1000, base), base);
  t.equal(records.cachedSummaryJson(5, 2000, bases[0]!), undefined, "of another state of the run");
  t.equal(records.cachedSummaryJson(6, 1000, bases[0]!), undefined, "of another run");
  const overtaken = records.readSummariesJson([stored], bases[0]!);
  await eventLoopTurn();
  records.ended(5, newer);
  release();
  t.equal((await overtaken).length, 1);
  const asked = bases[0]!;
  t.equal(records.cachedSummaryJson(5, 1000, asked), undefined);
  t.same(JSON.parse(`${Buffer.from(records.cachedSummaryJson(5, 2000, asked)!)}`).id, RUN_ID);
});

t.test("list entries that were asked for while a store was read are not taken for those of other runs", async (t) => {
  const log = new RecordsInMemory();
  const [older, younger] = [idOf(1), idOf(2)].map((id) => ({ ...endedRun(), id })) as [RunState, RunState];
  const add = (run: RunState) => log.add(encodeChanges(null, [{ kind: "run_ended", runId: run.id, run }], undefined));
  const listedIds = async () =>
    (await listRuns(log.view, { offset: 0, limit: 10 }, "http://cell")).runs.map(
      (json) => JSON.parse(`${Buffer.from(json)}`).id,
    );
  add(younger);
  t.same(await listedIds(), [younger.id]);
  // Its first records are gone, so it gets its place among the runs when all has been read.
  add(older);
  log.view.fold.finishOpening();
  t.same(await listedIds(), [younger.id, older.id], "though both were updated at the same microsecond");
});

t.test("another record at the place of the one that is wanted is a fault, and no damage", async (t) => {
  const log = new RecordsInMemory();
  log.add(recordOfEnd({ ...endedRun(), id: idOf(1) }));
  log.put({ kind: "delivery_put", delivery: failedDelivery(null), history: [ATTEMPT], payload: "{}" });
  log.misplaces = true;
  const fault = { name: "MisplacedRecordError" };
  await t.rejects(log.view.run(idOf(1)), { ...fault, message: /^there is no consolidated record of run / });
  await t.rejects(listRuns(log.view, { offset: 0, limit: 10 }, "http://cell"), fault);
  await t.rejects(log.view.delivery(DELIVERY_ID), {
    ...fault,
    message: /^the record of delivery .* is not at its place$/,
  });
});
