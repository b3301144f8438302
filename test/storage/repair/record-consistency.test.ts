import t from "tap";
import type { RunChange, RunEnded } from "../../../core/link/change.js";
import type { RunState } from "../../../core/run/run-state.js";
import type { Delivery } from "../../../core/webhook/delivery.js";
import type { WebhookChange } from "../../../core/webhook/webhook-change.js";
import type { LogRecord, RecordLocation } from "../../../storage/log/committed-batch.js";
import { encodeChanges } from "../../../storage/records/change-record.js";
import { encodeWebhookChange } from "../../../storage/records/webhook-record.js";
import { RecordConsistency } from "../../helpers/consistency/record-consistency.js";
import { endOf, recordedRun, recordOf } from "../../helpers/consistency/recorded-run.js";
import { listOf } from "../../helpers/list-of.js";
import {
  EVENT,
  EVENT_ID,
  failedDelivery,
  SECRETS,
  WEBHOOK,
  WEBHOOK_ID,
} from "../../helpers/webhooks/webhook-fixtures.js";

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

/** A record of the run that has `change` in its body, and `said` in its index section. */
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
  const others: [field: string, other: Partial<RunState>][] = [
    ["programName", { programName: "another" }],
    ["frames", { frames: run.frames.slice(1) }],
    ["events", { emitted: [EVENT] }],
  ];
  for (const [field, other] of others) {
    const faults = faultsOf([recordSaying(run, ended(run), ended({ ...run, ...other }))], false);
    t.match(faults, listOf(new RegExp(`^its index section and its body differ in .*\\b${field}\\b`)));
  }
  t.same(faultsOf([recordSaying(run, ended({ ...run, metadata: { a: -0, b: "µ", c: [null] } }))]), []);
  const started: RunChange = { kind: "run_started", runId: run.id, event: EVENT };
  t.match(faultsOf([recordSaying(run, started, { kind: "run_started", runId: run.id })], false), listOf(/in events$/));
});

const webhookRecord = (change: WebhookChange): LogRecord => recordOf({ ...encodeWebhookChange(change), timeUs: 1 });
const putWebhook = (id: string): LogRecord =>
  webhookRecord({ kind: "webhook_put", webhook: { ...WEBHOOK, id }, secrets: SECRETS });
const deliveryOf = (change: Partial<Delivery> = {}, payload: string | null = null): LogRecord =>
  webhookRecord({ kind: "delivery_put", delivery: { ...failedDelivery(run.id), ...change }, history: [], payload });

t.test("what a record refers to must be there, where the log has lost none", async (t) => {
  const [created] = records as [LogRecord];
  const started: RunChange = { kind: "run_started", runId: run.id, event: EVENT };
  const start = recordSaying({ ...run, status: "running" }, started);
  const endWithEvent = endOf({ ...run, emitted: [EVENT] });
  // The event has two deliveries. The second goes to a webhook that has the event's own id.
  const hooks = [putWebhook(WEBHOOK_ID), putWebhook(EVENT_ID)];
  const wrong: [string, LogRecord[], RegExp][] = [
    ["a change without a beginning", [...hooks, start], /^a change belongs to run .* no record before it begins/],
    ["one with its beginning after it", [...hooks, start, created], /^a change belongs to run .* none ends it$/],
    ["a delivery of no event", [...hooks, created, deliveryOf()], /^delivery .* no record has that event$/],
    ["of another webhook", [...hooks, created, start, deliveryOf({ webhookId: EVENT_ID })], /names another event/],
    [
      "a webhook that never was",
      [...hooks.slice(1), created, start],
      /^a delivery goes to webhook .*a1, but no record/,
    ],
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
    ["a test", [...hooks, deliveryOf({ runId: null }, "{}")]],
  ];
  for (const [what, of] of right) t.same(faultsOf(of), [], what);
});
