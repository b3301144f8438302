import t from "tap";
import type { Extent, StoredArtefact } from "../../core/capture.js";
import { createRandom } from "../../core/random.js";
import { storedEnd, withoutCaptures } from "../../core/run-files.js";
import { withArtefacts } from "../../core/run-fold.js";
import type { RunState } from "../../core/run-state.js";
import { RecordVerifier } from "../../http/record-verifier.js";
import { decodeChanges, encodeChanges } from "../../storage/change-record.js";
import { DroppedOrigins } from "../../storage/dropped-origins.js";
import type { LogRecord } from "../../storage/log-batch.js";
import { LOG_RECORD_TYPE } from "../../storage/record-format.js";
import { RECORD_TYPE } from "../../storage/record-index.js";
import { CellHistory, type HistoryRecord } from "../helpers/cell-history.js";
import { listOf } from "../helpers/list-of.js";

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

const { records, end, run } = recordedRun();
const batches = run.frames.flatMap((frame) => frame.batches);
const extents = batches.map(({ offset, lengthBytes, crc32 }) => ({ offset, lengthBytes, crc32 }));

t.test("a run's end names all stored bytes of the run, with the records before it or without", async (t) => {
  for (const before of [records, []]) {
    const verifier = new RecordVerifier();
    for (const record of before) t.same(verifier.verify(record), []);
    t.match(verifier.verify(end), listOf({ extents, fault: undefined, isRemoved: undefined }));
    t.same(verifier.inspection.namedAtEnd(), []);
    t.equal(verifier.runs, 1);
  }
});

t.test("of a run that goes on the bytes are those that its records name", async (t) => {
  const verifier = new RecordVerifier();
  for (const record of records) verifier.verify(record);
  t.same(
    verifier.inspection.namedAtEnd().flatMap((named) => named.extents),
    extents,
  );
});

t.test("an end that does not name what a record before it did is inconsistent", async (t) => {
  const frames = run.frames.map((frame) => ({ ...frame, batches: frame.batches.slice(1) }));
  const verifier = new RecordVerifier();
  for (const record of records) verifier.verify(record);
  const named = verifier.verify(endOf({ ...run, frames }));
  const faulty = named.filter(({ fault }) => fault !== undefined);
  const left = new Set(frames.flatMap((frame) => frame.batches.map(({ offset }) => offset)));
  t.same(
    faulty.flatMap((one) => one.extents.map(({ offset }) => offset)),
    batches.map(({ offset }) => offset).filter((offset) => !left.has(offset)),
  );
  t.match(faulty[0]?.fault, /does not name/);
});

t.test("a tombstone tells what is removed, also as the only end that is left", async (t) => {
  const removed = withoutCaptures(run, run.updatedAtUs + 1);
  const both = new RecordVerifier();
  t.equal(both.verify(end).length, 1);
  t.match(both.verify(endOf(removed)), listOf({ extents: { length: 0 }, isRemoved: true }));
  const alone = new RecordVerifier();
  for (const record of records) alone.verify(record);
  t.match(alone.verify(endOf(removed)), listOf({ extents: { length: 0 }, isRemoved: true }));
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
  t.equal(verifier.verify(endOf(open)).length, 1);
  t.match(verifier.verify(endOf(withPng)), listOf({ extents: listOf(made(from + 10)) }));
  t.match(verifier.verify(endOf(withPly)), listOf({ extents: listOf(made(from + 14), made(from + 20)) }));
  t.match(
    verifier.verify(endOf(withoutCaptures(withPly, 2 ** 52))),
    listOf({ extents: { length: 0 }, isRemoved: true }),
  );
  t.match(
    new RecordVerifier().verify(endOf(withPly))[0]?.extents.slice(-3),
    [10, 14, 20].map((at) => made(from + at)),
  );
  const going = new RecordVerifier();
  for (const record of records) going.verify(record);
  const change = { kind: "artefact_failed", runId: run.id, of: { stepIndex: 1 }, code: "c", message: "m" } as const;
  const failure = recordOf({ ...encodeChanges(null, [change], { ...run, status: "running" }), timeUs: 1 });
  t.same(going.verify(failure), [], "a failure names nothing");
});

t.test("a dropped stretch must tell of producers", async (t) => {
  const verifier = new RecordVerifier();
  const stretch = { ...end, type: LOG_RECORD_TYPE.dropped, index: new Uint8Array(8) };
  t.same(verifier.verify({ ...stretch, body: new DroppedOrigins().body() }), []);
  for (const body of [[0xc1], [0x80], [0x91, 0x01], [0x91, 0x92, 0xa1, 0x61, 0xc0], [0x91, 0x92, 0x01, 0x01]]) {
    t.throws(() => verifier.verify({ ...stretch, body: Uint8Array.from(body) }), { name: "RecordDecodeError" });
  }
});
