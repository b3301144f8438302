import t from "tap";
import type { Extent, StoredArtefact } from "../../../core/capture/capture.js";
import { storedEnd, withoutCaptures } from "../../../core/run/run-files.js";
import { withArtefacts } from "../../../core/run/run-fold.js";
import type { RunState } from "../../../core/run/run-state.js";
import { encodeChanges } from "../../../storage/records/change-record.js";
import { RecordVerifier } from "../../../storage/repair/record-verifier.js";
import { endOf, recordedRun, recordOf } from "../../helpers/consistency/recorded-run.js";
import { listOf } from "../../helpers/list-of.js";

const { records, end, run } = recordedRun();
const batches = run.frames.flatMap((frame) => frame.batches);
const extents = batches.map(({ offset, lengthBytes, crc32 }) => ({ offset, lengthBytes, crc32 }));

t.test("a run's end names all stored bytes of the run, with the records before it or without", async (t) => {
  for (const before of [records, []]) {
    const verifier = new RecordVerifier();
    for (const record of before) t.same(verifier.verify(record), []);
    t.match(verifier.verify(end), listOf({ extents, isRemoved: undefined }));
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
