import t from "tap";
import type { RunChange, RunEnded } from "../../../core/link/change.js";
import { createRandom } from "../../../core/random.js";
import type { RunState } from "../../../core/run/run-state.js";
import type { Delivery } from "../../../core/webhook/delivery.js";
import type { WebhookChange } from "../../../core/webhook/webhook-change.js";
import type { LogRecord, RecordLocation } from "../../../storage/log/committed-batch.js";
import { decodeChanges, encodeChanges } from "../../../storage/records/change-record.js";
import { RECORD_TYPE } from "../../../storage/records/record-index.js";
import { encodeWebhookChange } from "../../../storage/records/webhook-record.js";
import { RecordConsistency } from "../../helpers/consistency/record-consistency.js";
import { endOf, recordedRun, recordOf } from "../../helpers/consistency/recorded-run.js";
import { CellHistory } from "../../helpers/link/cell-history.js";
import { listOf } from "../../helpers/list-of.js";
import {
  DELIVERY_ID,
  EVENT,
  EVENT_ID,
  failedDelivery,
  WEBHOOK,
  WEBHOOK_ID,
} from "../../helpers/webhooks/webhook-fixtures.js";

const SEED = Number(process.env.TEST_SEED ?? 1);
const PLACE: RecordLocation = { segmentBase: 1, offset: 64, length: 200 };
const { records, end, run } = recordedRun();

/** What is found after these records. */
function faultsOf(of: readonly LogRecord[], isLogWhole = true): string[] {
  const consistency = new RecordConsistency();
  for (const record of of) consistency.take(record, PLACE);
  return consistency.faults(isLogWhole).map(({ message, location }) => {
    t.equal(location, PLACE);
    return message;
  });
}

/** Of changes of the run that the index section says as of another state of it. */
function recordSaying(of: RunState, change: RunChange | RunEnded, said: RunChange | RunEnded = change): LogRecord {
  const { type, body } = encodeChanges(null, [change], of);
  const { index } = encodeChanges(null, [said], of);
  return { type, flags: 1, sequence: 1, timeUs: of.updatedAtUs, index, body };
}

t.test("an end that does not name what a record before it did is found", async (t) => {
  const frames = run.frames.map((frame) => ({ ...frame, batches: frame.batches.slice(1) }));
  t.same(faultsOf([...records, end]), []);
  t.match(faultsOf([...records, endOf({ ...run, frames })]), listOf(/run's end does not$/));
});

t.test("an index section that says something else than its body is found, in a damaged log too", async (t) => {
  const ended = (of: RunState): RunEnded => ({ kind: "run_ended", runId: of.id, run: of });
  const others: Partial<RunState>[] = [
    ...[{ programName: "another" }, { status: "failed" as const }, { serialNumber: "another" }, { revision: 7 }],
    ...[{ metadata: { a: 1 } }, { updatedAtUs: run.updatedAtUs + 1 }, { startedAtUs: 5 }, { completedAtUs: null }],
    ...[{ errorMessage: "another" }, { steps: [] }, { frames: run.frames.slice(1) }, { emitted: [EVENT] }],
    ...[
      { capturesRemovedAtUs: run.updatedAtUs },
      { checks: [...run.checks, { name: "a", status: "failed" as const }] },
    ],
  ];
  const names = new Set<string>();
  for (const other of others) {
    const faults = faultsOf([recordSaying(run, ended(run), ended({ ...run, ...other }))], false);
    t.match(faults, listOf(/^its index section and its body differ in /), JSON.stringify(other));
    for (const name of String(faults[0])
      .replace(/^.* differ in /, "")
      .split(", "))
      names.add(name);
  }
  t.same([...names].sort(), [
    ...["captures", "completedAtUs", "errorMessage", "events", "frames", "metadata", "programName", "progress"],
    ...["qualityStatus", "revision", "serialNumber", "startedAtUs", "status", "updatedAtUs"],
  ]);
  t.same(faultsOf([recordSaying(run, ended({ ...run, metadata: { a: -0, b: "µ", c: [null] } }))]), []);
  const [created] = decodeChanges(RECORD_TYPE.runCreated, (records[0] as LogRecord).body) as [RunChange];
  const [frame] = run.frames;
  const { lines, batches: _, status, completedAtUs, artefacts, ...begun } = frame as NonNullable<typeof frame>;
  const begin: RunChange = { kind: "frame_begun", runId: run.id, frame: begun };
  const another: RunChange = { ...begin, frame: { ...begun, id: EVENT_ID } };
  t.match(faultsOf([recordSaying(run, begin, another)], false), listOf(/differ in frame$/));
  const started: RunChange = { kind: "run_started", runId: run.id, event: EVENT };
  t.match(faultsOf([recordSaying(run, started, { kind: "run_started", runId: run.id })], false), listOf(/in events$/));
  const renamed = { ...(records[0] as LogRecord), ...recordSaying({ ...run, programName: "another" }, created) };
  t.match(faultsOf([renamed], false), listOf(/differ in .*programName/));
});

const webhookRecord = (change: WebhookChange): LogRecord => recordOf({ ...encodeWebhookChange(change), timeUs: 1 });
const putWebhook = (id: string): LogRecord =>
  webhookRecord({ kind: "webhook_put", webhook: { ...WEBHOOK, id }, secret: null });
const deliveryOf = (change: Partial<Delivery> = {}, payload: string | null = null): LogRecord =>
  webhookRecord({ kind: "delivery_put", delivery: { ...failedDelivery(run.id), ...change }, history: [], payload });

t.test("what a record refers to must be there, where the log has lost none", async (t) => {
  const [created] = records as [LogRecord];
  const started: RunChange = { kind: "run_started", runId: run.id, event: EVENT };
  const start = recordSaying({ ...run, status: "running" }, started);
  const endWithEvent = endOf({ ...run, emitted: [EVENT] });
  // The event's second delivery has its id for a webhook's too.
  const hooks = [putWebhook(WEBHOOK_ID), putWebhook(EVENT_ID)];
  const deleted = webhookRecord({ kind: "webhook_deleted", webhook: { id: WEBHOOK_ID, name: "gone" } });
  const wrong: [string, LogRecord[], RegExp][] = [
    ["a change without a beginning", [...hooks, start], /^a change belongs to run .* no record before it begins/],
    ["one with its beginning after it", [...hooks, start, created], /^a change belongs to run .* none ends it$/],
    ["a delivery of no event", [...hooks, created, deliveryOf()], /^delivery .* no record has that event$/],
    ["of another event", [...hooks, created, start, deliveryOf({ eventId: DELIVERY_ID })], /names another event/],
    ["of another run", [...hooks, created, start, deliveryOf({ runId: DELIVERY_ID })], /names another event/],
    ["of another webhook", [...hooks, created, start, deliveryOf({ webhookId: EVENT_ID })], /names another event/],
    ["an event after it is another", [...hooks, deliveryOf({ webhookId: EVENT_ID }), endWithEvent], /names another/],
    [
      "a webhook that never was",
      [...hooks.slice(1), created, start],
      /^a delivery goes to webhook .*a1, but no record/,
    ],
    ["that of a test", [deliveryOf({ runId: null }, "{}")], /^a delivery goes to webhook /],
  ];
  for (const [what, of, message] of wrong) {
    t.match(faultsOf(of), listOf(message), what);
    t.same(faultsOf(of, false), [], `${what}: where records are lost that may be one of them`);
  }
  t.match(faultsOf([...hooks, deliveryOf({ runId: null })], false), listOf(/^a test delivery has no event$/));
  t.match(
    faultsOf([...hooks, created, endWithEvent, start], false),
    listOf(/^a change of run .* stands behind the run's end$/),
  );
  const right: [string, LogRecord[]][] = [
    ["all in order", [...hooks, created, start, deliveryOf(), endWithEvent]],
    ["a beginning dropped for the end after it", [...hooks, start, deliveryOf(), endWithEvent]],
    ["an event dropped for the end after the delivery", [...hooks, deliveryOf(), endWithEvent]],
    ["webhooks put again, the first records dropped", [created, start, deliveryOf(), ...hooks]],
    ["a deleted webhook", [deleted, hooks[1] as LogRecord, created, start, deliveryOf()]],
    ["a test", [...hooks, deliveryOf({ runId: null }, "{}")]],
    ["an end alone, more than once", [...hooks, endWithEvent, endWithEvent, deliveryOf()]],
    // The first end was damaged while the run went on and ended again, and was put back then.
    ["an end, put back, before another one", [...hooks, created, endWithEvent, start, endWithEvent, deliveryOf()]],
  ];
  for (const [what, of] of right) t.same(faultsOf(of), [], what);
});

t.test("nothing is found in histories", async (t) => {
  const random = createRandom(SEED);
  t.comment(`TEST_SEED=${SEED}`);
  for (let round = 0; round < 5; round++) {
    const history = new CellHistory(random);
    const all = Array.from({ length: 600 }, () => recordOf(history.next()));
    t.same(faultsOf(all), []);
  }
});
