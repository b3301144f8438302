import t from "tap";
import type { Extent, StoredArtefact } from "../../../core/capture/capture.js";
import type { RunChange, RunEnded } from "../../../core/link/change.js";
import { createRandom } from "../../../core/random.js";
import { storedEnd, withoutCaptures } from "../../../core/run/run-files.js";
import { withArtefacts } from "../../../core/run/run-fold.js";
import type { RunState } from "../../../core/run/run-state.js";
import type { Delivery } from "../../../core/webhook/delivery.js";
import type { WebhookChange } from "../../../core/webhook/webhook-change.js";
import type { LogRecord, RecordLocation } from "../../../storage/log/log-batch.js";
import { decodeChanges, encodeChanges } from "../../../storage/records/change-record.js";
import { RECORD_TYPE } from "../../../storage/records/record-index.js";
import { encodeWebhookChange } from "../../../storage/records/webhook-record.js";
import { RecordVerifier } from "../../../storage/repair/record-verifier.js";
import { CellHistory, type HistoryRecord } from "../../helpers/link/cell-history.js";
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

function recordOf({ type, index, body, timeUs }: HistoryRecord, sequence = 1): LogRecord {
  return { type, flags: 1, sequence, timeUs, index, body };
}

const endOf = (run: RunState): LogRecord =>
  recordOf({ ...encodeChanges(null, [{ kind: "run_ended", runId: run.id, run }], undefined), timeUs: run.updatedAtUs });

/** The records of one run that ended with captures, and its end apart. */
function recordedRun(): { records: LogRecord[]; end: LogRecord; run: RunState } {
  const history = new CellHistory(createRandom(5));
  const records: LogRecord[] = [];
  for (;;) {
    const record = recordOf(history.next());
    records.push(record);
    if (record.type !== RECORD_TYPE.runEnded) continue;
    const [change] = decodeChanges(record.type, record.body);
    if (change?.kind !== "run_ended" || change.run.frames.every(({ batches }) => batches.length < 2)) continue;
    const { run } = change;
    const own = records.filter(({ type, body }) => type !== RECORD_TYPE.runEnded && Buffer.from(body).includes(run.id));
    return { records: own, end: record, run };
  }
}

/** Of a record, in findings. */
const PLACE: RecordLocation = { segmentBase: 1, offset: 64, length: 200 };
const { records, end, run } = recordedRun();
const batches = run.frames.flatMap((frame) => frame.batches);
const extents = batches.map(({ offset, lengthBytes, crc32 }) => ({ offset, lengthBytes, crc32 }));

t.test("a run's end names all stored bytes of the run, with the records before it or without", async (t) => {
  for (const before of [records, []]) {
    const verifier = new RecordVerifier();
    for (const record of before) t.same(verifier.verify(record, PLACE), []);
    t.match(verifier.verify(end, PLACE), listOf({ extents, fault: undefined, isRemoved: undefined }));
    t.same(verifier.inspection.namedAtEnd(), []);
    t.equal(verifier.runs, 1);
  }
});

t.test("of a run that goes on the bytes are those that its records name", async (t) => {
  const verifier = new RecordVerifier();
  for (const record of records) verifier.verify(record, PLACE);
  t.same(
    verifier.inspection.namedAtEnd().flatMap((named) => named.extents),
    extents,
  );
});

t.test("an end that does not name what a record before it did is inconsistent", async (t) => {
  const frames = run.frames.map((frame) => ({ ...frame, batches: frame.batches.slice(1) }));
  const verifier = new RecordVerifier();
  for (const record of records) verifier.verify(record, PLACE);
  const named = verifier.verify(endOf({ ...run, frames }), PLACE);
  const faulty = named.filter(({ fault }) => fault !== undefined);
  const left = new Set(frames.flatMap((frame) => frame.batches.map(({ offset }) => offset)));
  t.same(
    faulty.flatMap((one) => one.extents.map(({ offset }) => offset)),
    batches.map(({ offset }) => offset).filter((offset) => !left.has(offset)),
  );
  t.match(faulty[0]?.fault, /run's end does not$/);
});

t.test("a tombstone tells what is removed, also as the only end that is left", async (t) => {
  const removed = withoutCaptures(run, run.updatedAtUs + 1);
  const both = new RecordVerifier();
  t.equal(both.verify(end, PLACE).length, 1);
  t.match(both.verify(endOf(removed), PLACE), listOf({ extents: { length: 0 }, isRemoved: true }));
  const alone = new RecordVerifier();
  for (const record of records) alone.verify(record, PLACE);
  t.match(alone.verify(endOf(removed), PLACE), listOf({ extents: { length: 0 }, isRemoved: true }));
  t.same(alone.inspection.namedAtEnd(), []);
});

t.test("another end names what was made of the captures since", async (t) => {
  const [first, ...others] = run.frames.map((frame) => ({ ...frame, status: "complete" as const }));
  const open: RunState = { ...run, frames: [first as NonNullable<typeof first>, ...others] };
  const from = storedEnd(open, "captures");
  const made = (offset: number) => ({ offset, lengthBytes: 4, crc32: offset });
  const store = (state: RunState, format: "png" | "ply", ...offsets: number[]): RunState => {
    const [lineCounts, mask = null] = offsets.map(made) as [Extent, Extent?];
    const artefact: StoredArtefact =
      format === "png" ? { kind: "picture", file: lineCounts } : { kind: "cloud", points: 1, lineCounts, mask };
    const of = { frameId: (first as NonNullable<typeof first>).id, format };
    return withArtefacts(state, [{ kind: "artefact_stored", runId: run.id, of, artefact }], state.updatedAtUs + 1);
  };
  const withPng = store(open, "png", from + 10);
  const withPly = store(withPng, "ply", from + 20, from + 14);
  const verifier = new RecordVerifier();
  t.equal(verifier.verify(endOf(open), PLACE).length, 1);
  t.match(verifier.verify(endOf(withPng), PLACE), listOf({ extents: listOf(made(from + 10)) }));
  t.match(verifier.verify(endOf(withPly), PLACE), listOf({ extents: listOf(made(from + 14), made(from + 20)) }));
  t.match(
    verifier.verify(endOf(withoutCaptures(withPly, 2 ** 52)), PLACE),
    listOf({ extents: { length: 0 }, isRemoved: true }),
  );
  t.match(
    new RecordVerifier().verify(endOf(withPly), PLACE)[0]?.extents.slice(-3),
    [10, 14, 20].map((at) => made(from + at)),
  );
  const going = new RecordVerifier();
  for (const record of records) going.verify(record, PLACE);
  const change = { kind: "artefact_failed", runId: run.id, of: { stepIndex: 1 }, code: "c", message: "m" } as const;
  const failure = recordOf({ ...encodeChanges(null, [change], { ...run, status: "running" }), timeUs: 1 });
  t.same(going.verify(failure, PLACE), [], "a failure names nothing");
});

/** What is found behind these records. */
function faultsOf(of: readonly LogRecord[], isLogWhole = true): string[] {
  const verifier = new RecordVerifier();
  for (const record of of) verifier.verify(record, PLACE);
  return verifier.faults(isLogWhole).map(({ message, location }) => {
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
    ["one with its beginning behind it", [...hooks, start, created], /^a change belongs to run .* none ends it$/],
    ["a delivery of no event", [...hooks, created, deliveryOf()], /^delivery .* no record has that event$/],
    ["of another event", [...hooks, created, start, deliveryOf({ eventId: DELIVERY_ID })], /names another event/],
    ["of another run", [...hooks, created, start, deliveryOf({ runId: DELIVERY_ID })], /names another event/],
    ["of another webhook", [...hooks, created, start, deliveryOf({ webhookId: EVENT_ID })], /names another event/],
    ["an event behind it is another", [...hooks, deliveryOf({ webhookId: EVENT_ID }), endWithEvent], /names another/],
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
    ["a beginning dropped for the end behind", [...hooks, start, deliveryOf(), endWithEvent]],
    ["an event dropped for the end behind the delivery", [...hooks, deliveryOf(), endWithEvent]],
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
