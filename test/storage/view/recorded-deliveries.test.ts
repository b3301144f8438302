import { setImmediate as eventLoopTurn } from "node:timers/promises";
import t from "tap";
import { LIMITS } from "../../../core/limits.js";
import type { RunState } from "../../../core/run/run-state.js";
import { summarizeRun } from "../../../core/run/run-state.js";
import type { Delivery } from "../../../core/webhook/delivery.js";
import { newDelivery } from "../../../core/webhook/emit-run-event.js";
import { encodeChanges } from "../../../storage/records/change-record.js";
import { encodeEvents, IndexedEvents } from "../../../storage/records/event-index.js";
import { RunRecords } from "../../../storage/view/run-records.js";
import { ViewDeliveries } from "../../../storage/view/view-deliveries.js";
import { idOf, RUN_ID } from "../../helpers/link/cell-messages.js";
import { listRuns } from "../../helpers/store/view-comparison.js";
import { endedRun, listed, RecordsInMemory, recordOfEnd, stored } from "../../helpers/webhooks/delivery-records.js";
import {
  ATTEMPT,
  DELIVERY_ID,
  EVENT,
  failedDelivery,
  SECRET,
  WEBHOOK,
  WEBHOOK_ID,
} from "../../helpers/webhooks/webhook-fixtures.js";

t.test("a delivery begins in its run's record, and is read from there until it has its own", async (t) => {
  const log = new RecordsInMemory();
  log.put({ kind: "webhook_put", webhook: WEBHOOK, secret: SECRET });
  log.add(recordOfEnd(endedRun([EVENT])));
  const begun = newDelivery(EVENT.deliveries[0]!, EVENT, RUN_ID);
  t.strictSame(await log.view.delivery(DELIVERY_ID), { delivery: begun, history: [], payload: EVENT.payload });
  t.strictSame([...log.state.webhooks.pending()], [begun], "the settled one is not made again");
  log.put({ kind: "delivery_put", delivery: failedDelivery(RUN_ID), history: [ATTEMPT], payload: null });
  const content = { delivery: failedDelivery(RUN_ID), history: [ATTEMPT], payload: EVENT.payload };
  t.strictSame(await log.view.delivery(DELIVERY_ID), content);
  t.strictSame([...log.state.webhooks.pending()], []);
  t.strictSame(await listed(log.view, null, 10), [[content.delivery, content.payload]]);
  t.strictSame(await log.view.deliveriesOfRun(endedRun([EVENT])), [
    failedDelivery(RUN_ID),
    newDelivery(EVENT.deliveries[1]!, EVENT, RUN_ID),
  ]);
  // The tombstone of its captures says the same events again.
  log.add(recordOfEnd({ ...endedRun([EVENT]), capturesRemovedAtUs: EVENT.timeUs + 9 }));
  t.strictSame(await log.view.delivery(DELIVERY_ID), content, "what is known stays");
});

t.test("the pause of a delivery that the store held when it was opened is over; one told since is shown", async (t) => {
  const log = new RecordsInMemory();
  const nextRetryAtUs = EVENT.timeUs + 1_000_000;
  const paused = { ...failedDelivery(RUN_ID), status: "pending" as const, firstFailure: null, nextRetryAtUs };
  log.put({ kind: "webhook_put", webhook: WEBHOOK, secret: SECRET });
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
    log.put({ kind: "webhook_put", webhook: WEBHOOK, secret: SECRET });
    const [begun] = EVENT.deliveries;
    const ids: string[] = [];
    for (let nth = 0; nth < 70; nth++) {
      const [runId, timeUs] = [idOf(10_000 + nth), EVENT.timeUs + nth];
      // Mostly of half a megabyte; the second of more than a page may have.
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
    log.mostOpenReads = 0;
    await Promise.all(Array.from({ length: 20 }, () => listed(log.view, null, 10)));
    t.ok(log.mostOpenReads <= 16, `${log.mostOpenReads} of all clients`);
  },
);

t.test("deliveries of a webhook: newest first, paged by time, whatever order they came in", async (t) => {
  const deliveries = new ViewDeliveries();
  const at = (nth: number) => ({ ...failedDelivery(RUN_ID), id: idOf(1000 + nth), createdAtUs: 1000 + nth });
  const order = [0, 1, 2, 7, 8, 3, 4, 5, 6, 9];
  for (const nth of order) deliveries.put(stored(at(nth)), { segmentBase: 1, offset: nth, length: 1 });
  deliveries.put(stored({ ...at(0), id: idOf(2000), webhookId: idOf(2) }), { segmentBase: 1, offset: 0, length: 1 });
  const page = (beforeUs: number | null, limit: number) =>
    deliveries.ofWebhook(WEBHOOK_ID, beforeUs, limit).map(({ createdAtUs }) => createdAtUs - 1000);
  t.same(page(null, 100), [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
  t.same(page(null, 3), [9, 8, 7]);
  t.same(page(1007, 3), [6, 5, 4], "strictly before");
  t.same(page(1000, 3), []);
  t.same(deliveries.ofWebhook(idOf(3), null, 3), []);
  t.equal(deliveries.size, 11);
  const changes = deliveries.changesOf(RUN_ID);
  deliveries.put(stored(at(3)), { segmentBase: 1, offset: 99, length: 1 });
  t.equal(deliveries.changesOf(RUN_ID), changes + 1);
  t.equal(deliveries.row(idOf(1003))?.location?.offset, 99);
});

/** An event with as many deliveries, each to a webhook of its own. */
function eventOfMany(count: number): typeof EVENT {
  const [begun] = EVENT.deliveries;
  const deliveries = Array.from({ length: count }, (_, nth) => ({
    ...begun!,
    id: idOf(50_000 + nth),
    webhookId: idOf(60_000 + nth),
  }));
  return { ...EVENT, deliveries };
}

t.test("the deliveries of two events begin a few at a time, and all of them for whoever asks meanwhile", async (t) => {
  const [first, second] = [eventOfMany(90), { ...EVENT, timeUs: EVENT.timeUs + 5 }];
  const events = new IndexedEvents(encodeEvents([first, second]));
  t.equal(events.deliveryCount, 90 + second.deliveries.length);
  const parts: number[] = [];
  for (let start = 0; start < 92; start += 7) {
    events.forEachDelivery(
      (_, __, ___, timeUs) => parts.push(timeUs),
      start,
      Math.min(start + 7, events.deliveryCount),
    );
  }
  t.same(
    parts,
    [...Array(90).fill(first.timeUs), ...second.deliveries.map(() => second.timeUs)],
    "each once, in order",
  );

  const steps = new ViewDeliveries();
  t.notOk(steps.beginSome(), "nothing to begin");
  const changes = steps.changesOf(RUN_ID);
  steps.begin(RUN_ID, events);
  t.equal(steps.changesOf(RUN_ID), changes + 1, "an answer made from here on has another name at once");
  let taken = 0;
  while (steps.beginSome()) taken++;
  t.equal(taken, 3, "of 32 at most");
  t.equal(steps.size, events.deliveryCount);

  const last = { ...newDelivery(first.deliveries[89]!, first, RUN_ID), status: "delivered" as const };
  const readers: [string, (deliveries: ViewDeliveries) => unknown, unknown][] = [
    ["row", (all) => all.row(last.id)?.runId, RUN_ID],
    ["ofWebhook", (all) => all.ofWebhook(last.webhookId, null, 10).map(({ id }) => id), [last.id]],
    ["size", (all) => all.size, events.deliveryCount],
    [
      "put",
      (all) => {
        all.put(stored(last), { segmentBase: 1, offset: 7, length: 1 });
        return [all.size, all.row(last.id)?.status];
      },
      [events.deliveryCount, "delivered"],
    ],
    [
      "another event",
      (all) => {
        const other = { ...EVENT, deliveries: [{ ...EVENT.deliveries[0]!, id: idOf(70_000) }] };
        all.begin(idOf(9), new IndexedEvents(encodeEvents([other])));
        return [all.size, all.row(idOf(70_000))?.runId];
      },
      [events.deliveryCount + 1, idOf(9)],
    ],
  ];
  for (const [name, read, expected] of readers) {
    for (const taken of [0, 1]) {
      const deliveries = new ViewDeliveries();
      deliveries.begin(RUN_ID, events);
      for (let nth = 0; nth < taken; nth++) t.ok(deliveries.beginSome());
      t.same(read(deliveries), expected, `${name}, after ${taken} steps`);
      t.notOk(deliveries.beginSome());
    }
  }
});

t.test(
  "a live record whose event has many deliveries gives way among them, and readers find all the same",
  async (t) => {
    const log = new RecordsInMemory();
    log.put({ kind: "webhook_put", webhook: WEBHOOK, secret: SECRET });
    log.view.fold.finishOpening();
    const event = eventOfMany(200);
    let turns = 0;
    await log.view.fold.applyBatchInSlices(
      log.append(recordOfEnd(endedRun([event]))),
      async () => {
        turns++;
        if (turns === 3) t.equal(log.view.deliveries.row(event.deliveries[199]!.id)?.runId, RUN_ID, "found in between");
      },
      0,
    );
    t.equal(turns, 3, "the reader of the third turn has had the rest begin");

    const undisturbed = new RecordsInMemory();
    undisturbed.view.fold.finishOpening();
    turns = 0;
    const batch = undisturbed.append(recordOfEnd(endedRun([event])));
    await undisturbed.view.fold.applyBatchInSlices(batch, async () => void turns++, 0);
    t.equal(turns, 1 + Math.ceil(200 / 32), "after the record, and after each 32");
    const run = await undisturbed.view.run(RUN_ID);
    t.same(
      (await undisturbed.view.deliveriesOfRun(run!)).map(({ id }) => id),
      event.deliveries.map(({ id }) => id),
    );
  },
);

t.test("an event half begun is whole for who asks, and needs no bytes of its batch once that is applied", async (t) => {
  const event = eventOfMany(100);
  const deliveries = new ViewDeliveries();
  deliveries.begin(RUN_ID, new IndexedEvents(encodeEvents([event])));
  t.ok(deliveries.beginSome());
  t.equal(deliveries.size, 100);

  for (const isSliced of [false, true]) {
    const log = new RecordsInMemory();
    log.view.fold.finishOpening();
    const batch = log.append(recordOfEnd(endedRun([event])));
    const applied = { ...batch, bytes: batch.bytes.slice() };
    if (isSliced) await log.view.fold.applyBatchInSlices(applied, eventLoopTurn, 0);
    else log.view.fold.applyBatch(applied);
    // Others write to that memory next.
    applied.bytes.fill(0xff);
    t.equal(log.view.deliveries.row(event.deliveries[99]!.id)?.runId, RUN_ID, isSliced ? "in slices" : "in one go");
  }
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
  // Its first records are gone: it has its place among the runs when all has been read.
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
