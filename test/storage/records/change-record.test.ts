import { encode } from "@msgpack/msgpack";
import t from "tap";
import { isProcessingOpen } from "../../../core/capture/artefact.js";
import type { JsonObject } from "../../../core/json/json.js";
import type { Change } from "../../../core/link/change.js";
import { createRandom, type Random } from "../../../core/random.js";
import { storedEnd } from "../../../core/run/run-files.js";
import { RUN_STATUSES, type RunState, summarizeRun } from "../../../core/run/run-state.js";
import {
  decodeChanges,
  decodeRefusal,
  type EncodedRecord,
  encodeChanges,
  encodeRefusal,
} from "../../../storage/records/change-record.js";
import {
  decodeEndedSummary,
  decodeIndex,
  isChangeRecordType,
  isRecordOf,
  RECORD_TYPE,
  RecordDecodeError,
} from "../../../storage/records/record-index.js";
import { FRAME_ID, idOf, RUN_ID, stateWithRun } from "../../helpers/link/cell-messages.js";
import { randomObject, TEXTS } from "../../helpers/link/random-cell-message.js";
import { sized } from "../../helpers/test-size.js";

const seed = Number(process.env.TEST_SEED ?? 20261120);
t.comment(`TEST_SEED=${seed}`);

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
const unhex = (text: string): Uint8Array => new Uint8Array(Buffer.from(text.replaceAll(/\s/g, ""), "hex"));
const ORIGIN = { producer: "ljx-1", sequence: 0x3_0000_0102 };
/** Length of the name, sequence number as two u32 with the low one first, name. */
const ORIGIN_HEX = "05 02010000 03000000 6c6a782d31";
const OF_INSTANCE = { ...ORIGIN, instance: "5c41f0de-1234-4abc-9def-0123456789ab" };
/** Bit 7 of the length of the name, and the instance after it. */
const INSTANCE_HEX = "85 02010000 03000000 6c6a782d31 5c41f0de12344abc9def0123456789ab";

/** A run whose times and counts have a different value in every byte. */
function goldenRun(): RunState {
  const run = structuredClone(stateWithRun("running").runs.get(RUN_ID)) as RunState;
  return {
    ...run,
    id: "0197a3b2-c4d5-7e6f-8a9b-0c1d2e3f4a5b",
    programId: "01020304-0506-7708-890a-0b0c0d0e0f10",
    programName: "Gé",
    serialNumber: null,
    revision: 0x01020304,
    metadata: { a: 1 },
    createdAtUs: 0x0006_1122_3344_5566,
    updatedAtUs: 0x0006_1122_3344_5567,
    startedAtUs: 0x0006_1122_3344_5568,
    completedAtUs: null,
    errorMessage: "",
    capturesRemovedAtUs: 0x0006_1122_3344_5569,
  };
}

const RUN_HEX = "0197a3b2c4d57e6f8a9b0c1d2e3f4a5b";
const FRAME_HEX = FRAME_ID.replaceAll("-", "");
/** The program's name, and the metadata. */
const NAME_HEX = "47c3a9 7b2261223a317d";
const SUMMARY_HEX = `
  ${RUN_HEX}
  0102030405067708890a0b0c0d0e0f10
  01
  04030201
  66554433 22110600
  67554433 22110600
  68554433 22110600
  00000000 00000000
  03000000 00000000 01000000
  03000000 ffffffff 00000000 07000000`;

t.test("golden bytes of every index section, little-endian", async (t) => {
  const run = goldenRun();
  const created: Change = {
    ...{ kind: "run_created", runId: run.id, programId: run.programId, programName: run.programName, robotId: null },
    ...{ serialNumber: null, revision: 1, metadata: null, traceId: null, steps: [] },
  };
  const ended: Change = { kind: "run_ended", runId: run.id, run };
  const begun: Change = { kind: "frame_begun", runId: run.id, frame: { ...run.frames[0], id: FRAME_ID } as never };
  const lines: Change = {
    ...{ kind: "frame_lines_stored", runId: run.id, frameId: FRAME_ID },
    batch: { offset: 9, lengthBytes: 9, crc32: 1, lineCount: 1, heightCrc32: 1 },
  };
  const cases: [string, EncodedRecord, number, string][] = [
    ["cell changes", encodeChanges(ORIGIN, [{ kind: "component_deleted", key: "plc" }], undefined), 16, ORIGIN_HEX],
    ["run created", encodeChanges(ORIGIN, [created], run), 17, `${ORIGIN_HEX}${SUMMARY_HEX} 00000000 ${NAME_HEX}`],
    ["frame begun", encodeChanges(ORIGIN, [begun], run), 18, `${ORIGIN_HEX} ${RUN_HEX} 01 03 ${FRAME_HEX}`],
    ["frame lines", encodeChanges(ORIGIN, [lines], run), 18, `${ORIGIN_HEX} ${RUN_HEX} 01 04 ${"00".repeat(16)}`],
    [
      "run ended",
      encodeChanges(null, [ended], undefined),
      19,
      `00 00000000 00000000 ${SUMMARY_HEX} 01000000 ${NAME_HEX} ${FRAME_HEX}
        09000000 00000000 69554433 22110600`,
    ],
    ["refusal", encodeRefusal(ORIGIN, { code: "not_found", message: "m", params: {} }), 20, ORIGIN_HEX],
    [
      "frame begun by an instance",
      encodeChanges(OF_INSTANCE, [begun], run),
      18,
      `${INSTANCE_HEX} ${RUN_HEX} 01 03 ${FRAME_HEX}`,
    ],
  ];
  for (const [what, record, type, index] of cases) {
    t.equal(record.type, type, what);
    t.equal(hex(record.index), hex(unhex(index)), what);
    t.ok(isChangeRecordType(type));
  }
  t.same(decodeIndex(RECORD_TYPE.runEnded, unhex(cases[4]?.[3] ?? "")), {
    ...{ type: 19, origin: null, summary: summarizeRun(run), frameIds: [FRAME_ID] },
    captures: { bytes: 9, removedAtUs: run.capturesRemovedAtUs, isOpen: false },
  });
  const [frame] = run.frames as [RunState["frames"][0]];
  const open: RunState = { ...run, frames: [{ ...frame, status: "complete" }], capturesRemovedAtUs: null };
  const openIndex = encodeChanges(null, [{ kind: "run_ended", runId: run.id, run: open }], undefined).index;
  t.equal(hex(openIndex.slice(-16)), "09000000000000800000000000000000", "something is to be made of the captures");
  t.match(decodeIndex(RECORD_TYPE.runEnded, openIndex), { captures: { bytes: 9, removedAtUs: null, isOpen: true } });
  t.same(decodeIndex(RECORD_TYPE.runDelta, unhex(cases[2]?.[3] ?? "")), {
    ...{ type: 18, origin: ORIGIN, runId: run.id, statusAfter: "running", frameId: FRAME_ID },
  });
  t.same(decodeIndex(RECORD_TYPE.runDelta, unhex(cases.at(-1)?.[3] ?? "")), {
    ...{ type: 18, origin: OF_INSTANCE, runId: run.id, statusAfter: "running", frameId: FRAME_ID },
  });
  const cut = unhex(cases.at(-1)?.[3] ?? "").slice(0, 20);
  t.throws(() => decodeIndex(RECORD_TYPE.refusal, cut), RecordDecodeError, "an instance that is cut");
  for (const type of [0, 1, 15, 21, 255]) t.notOk(isChangeRecordType(type), `${type} is not of this file`);
});

t.test("every status and every change has the code that it had", async (t) => {
  t.same(RUN_STATUSES, ["pending", "running", "finalizing", "completed", "failed", "cancelled"]);
  const kinds = [
    ...["run_started", "step_started", "step_finished", "frame_begun", "frame_lines_stored", "frame_ended"],
    ...["series_appended", "check_added", "defect_added", "job_started", "job_finished", "file_stored"],
    ...["event_added", "run_finalizing", "artefact_stored", "artefact_failed"],
  ];
  const run = goldenRun();
  for (const [code, kind] of kinds.entries()) {
    const change = { kind, runId: run.id, frame: { id: FRAME_ID } } as unknown as Change;
    t.equal(encodeChanges(null, [change], run).index[9 + 16 + 1], code, kind);
  }
});

const EXTENT = { offset: 2 ** 40, lengthBytes: 2 ** 31, crc32: 2 ** 32 - 1 };

function randomRun(random: Random): RunState {
  const text = (): string => random.pick([...TEXTS, "x".repeat(random.integer(0, 5_000))]);
  const maybe = <T>(value: T): T | null => (random.chance(0.5) ? value : null);
  const time = (): number => random.integer(1, 2 ** 53 - 1);
  const run = structuredClone(stateWithRun("running").runs.get(RUN_ID)) as RunState;
  const [frame] = run.frames;
  if (frame === undefined) throw new Error("no frame");
  return {
    ...run,
    ...{ programName: text(), serialNumber: maybe(text()), errorMessage: maybe(text()), summary: maybe(text()) },
    ...{ metadata: maybe(randomObject(random)), results: maybe(randomObject(random)), traceId: maybe(text()) },
    ...{ status: random.pick(RUN_STATUSES), revision: random.integer(1, 2 ** 32 - 1), robotId: maybe(text()) },
    ...{ createdAtUs: time(), updatedAtUs: time(), startedAtUs: maybe(time()), completedAtUs: maybe(time()) },
    eventLog: Array.from({ length: random.integer(0, 5) }, () => ({
      ...{ timestampUs: time(), eventType: text(), data: randomObject(random) },
    })),
    frames: Array.from({ length: random.chance(0.05) ? 1_000 : random.integer(0, 3) }, (_, n) => ({
      ...frame,
      ...{ id: idOf(n), metadata: maybe(randomObject(random)), jointPositions: maybe([random.normal(), 1e300, -0.5]) },
      ...{ status: random.pick(["complete", "incomplete"]) },
      ...(random.chance(0.5) && {
        artefacts: { ply: { kind: "cloud", points: n, lineCounts: EXTENT, mask: maybe(EXTENT), atUs: time() } },
      }),
    })),
  };
}

t.test("random runs come back as they were, and so do their summaries", async (t) => {
  const random = createRandom(seed);
  for (let round = 0; round < 300; round++) {
    const run = randomRun(random);
    const origin = random.chance(0.2)
      ? null
      : { producer: "p".repeat(random.integer(1, 64)), sequence: random.integer(0, 2 ** 53 - 1) };
    const record = encodeChanges(origin, [{ kind: "run_ended", runId: run.id, run }], undefined);
    const expected = {
      ...{ type: 19, origin, summary: summarizeRun(run), frameIds: run.frames.map((frame) => frame.id) },
      captures: {
        bytes: storedEnd(run, "captures"),
        removedAtUs: run.capturesRemovedAtUs,
        isOpen: isProcessingOpen(run),
      },
    };
    const index = decodeIndex(record.type, record.index);
    const summary = decodeEndedSummary(record.index);
    const [change] = decodeChanges(record.type, record.body);
    if (JSON.stringify(summary) !== JSON.stringify(expected.summary))
      return void t.fail(`round ${round}: summary alone`);
    if (JSON.stringify(index) !== JSON.stringify(expected))
      return void t.fail(`round ${round}: index`, { found: index, expected });
    const back = change?.kind === "run_ended" ? change.run : undefined;
    if (JSON.stringify(back) !== JSON.stringify(run))
      return void t.fail(`round ${round}: body`, { found: back, expected: run });
  }
  for (const record of someRecords()) {
    const index = decodeIndex(record.type, record.index);
    const isEnd = index.type === RECORD_TYPE.runEnded;
    const id = "summary" in index ? index.summary.id : RUN_ID;
    t.equal(isRecordOf(record, RECORD_TYPE.runEnded, id), isEnd, `of type ${record.type}`);
    t.notOk(isRecordOf(record, RECORD_TYPE.runEnded, FRAME_ID), "of another run");
  }
});

/** One record of each type, with something in every part. */
function someRecords(): EncodedRecord[] {
  const run = { ...goldenRun(), serialNumber: "SN", errorMessage: "é" };
  return [
    encodeChanges(ORIGIN, [{ kind: "cell_put", cell: { kioskSerialNumber: "K", unitSystem: "metric" } }], undefined),
    encodeChanges(ORIGIN, [{ kind: "run_created", runId: run.id } as never], run),
    encodeChanges(
      ORIGIN,
      [{ kind: "event_added", runId: run.id, entry: { timestampUs: null, eventType: "x", data: { a: "b" } } }],
      run,
    ),
    encodeChanges(ORIGIN, [{ kind: "run_ended", runId: run.id, run }], undefined),
    encodeRefusal(ORIGIN, { code: "not_found", message: "no run", params: { path: "/id" } }),
  ];
}

function decodes(decode: () => unknown): boolean {
  try {
    decode();
    return true;
  } catch (error) {
    if (error instanceof RecordDecodeError) return false;
    throw error;
  }
}

t.test("an index section cut anywhere, or with a byte after it, is an error", async (t) => {
  for (const { type, index } of someRecords()) {
    for (let length = 0; length < index.length; length++) {
      if (decodes(() => decodeIndex(type, index.slice(0, length)))) return void t.fail(`type ${type} at ${length}`);
    }
    t.notOk(
      decodes(() => decodeIndex(type, Buffer.concat([index, Buffer.from([0])]))),
      `type ${type}: a byte after it`,
    );
    t.ok(
      decodes(() => decodeIndex(type, index)),
      `type ${type}: whole`,
    );
    // As a view into a larger buffer it ends where the view ends.
    const larger = Buffer.concat([Buffer.alloc(7, 0xaa), index, Buffer.alloc(64, 0xbb)]);
    t.same(decodeIndex(type, larger.subarray(7, 7 + index.length)), decodeIndex(type, index));
    t.notOk(decodes(() => decodeIndex(type, larger.subarray(7, 6 + index.length))));
  }
});

t.test("codes that there are not, broken UTF-8 and broken JSON are errors", async (t) => {
  const [, created, delta, ended] = someRecords() as [EncodedRecord, EncodedRecord, EncodedRecord, EncodedRecord];
  const head = 14;
  const broken = (record: EncodedRecord, offset: number, byte: number): boolean => {
    const index = record.index.slice();
    index[offset] = byte;
    return decodes(() => decodeIndex(record.type, index));
  };
  t.notOk(broken(created, head + 32, 6), "a status");
  t.notOk(broken(delta, head + 16, 6), "a status of a delta");
  t.notOk(broken(delta, head + 17, 16), "a change");
  t.notOk(broken(ended, head + 101, 0xc3), "UTF-8 of the program's name");
  t.notOk(broken(created, created.index.length - 1, 0x20), "JSON of the metadata");
});

t.test("a body cut anywhere, or that holds something else, is an error", async (t) => {
  for (const { type, body } of someRecords()) {
    const decode = (bytes: Uint8Array) =>
      type === RECORD_TYPE.refusal ? decodeRefusal(bytes) : decodeChanges(type, bytes);
    for (let length = 0; length < body.length; length++) {
      if (decodes(() => decode(body.slice(0, length)))) return void t.fail(`type ${type} at ${length}`);
    }
    t.ok(
      decodes(() => decode(body)),
      `type ${type}: whole`,
    );
    for (const other of [
      null,
      1,
      "x",
      [],
      {},
      { changes: null },
      { changes: [] },
      { changes: [null] },
      { changes: [{}] },
      { run: 1 },
      { run: {} },
      { refusal: [] },
      { changes: [{ kind: "constructor" }] },
    ]) {
      t.notOk(
        decodes(() => decode(encode(other))),
        `type ${type}: ${JSON.stringify(other)}`,
      );
    }
  }
  t.notOk(decodes(() => decodeChanges(RECORD_TYPE.refusal, encode({ changes: [] }))));
  t.notOk(decodes(() => decodeChanges(99, encode({ changes: [] }))));
  const claims = unhex("81 a3 72756e dd ffffffff");
  t.notOk(
    decodes(() => decodeChanges(RECORD_TYPE.runEnded, claims)),
    "an array of 4 billion items in 9 bytes",
  );
});

t.test("fuzzed bytes: an error or a value of the shape, nothing else", async (t) => {
  const random = createRandom(seed + 1);
  const records = someRecords();
  let decoded = 0;
  for (let round = 0; round < sized(7_000, 20_000); round++) {
    const { type, index, body } = random.pick(records);
    const bytes = random.chance(0.1)
      ? random.bytes(random.integer(0, 300))
      : (random.chance(0.5) ? index : body).slice();
    for (let n = random.integer(1, 4); n > 0 && bytes.length > 0; n--)
      bytes[random.integer(0, bytes.length - 1)] = random.integer(0, 255);
    if (decodes(() => decodeIndex(type, bytes))) decoded++;
    if (decodes(() => (type === RECORD_TYPE.refusal ? decodeRefusal(bytes) : decodeChanges(type, bytes)))) decoded++;
  }
  t.ok(decoded > 100, `${decoded} still decoded, the others were errors`);
});

t.test("free-form keys that JavaScript has a meaning for", async (t) => {
  const data = JSON.parse(
    '{"constructor": {"prototype": 1}, "toString": "x", "hasOwnProperty": null, "then": []}',
  ) as JsonObject;
  const state = stateWithRun("running");
  const decision = state.send({ type: "event.add", run_id: RUN_ID, event_type: "x", data });
  if ("refusal" in decision) throw new Error(decision.refusal.message);
  const { type, body } = encodeChanges(null, decision.changes, state.runs.get(RUN_ID));
  t.strictSame(JSON.stringify(decodeChanges(type, body)), JSON.stringify(decision.changes));
});

t.test("what a run's report says stands in the index section", async (t) => {
  const { run: before } = { run: stateWithRun("completed").runs.get(RUN_ID) as RunState };
  const outcomes = [
    [[], "completed", null, 0],
    [["passed", "warning"], "completed", "passed", 1],
    [["passed", "failed", "error"], "completed", "failed", 2],
    [["passed", "not_evaluated"], "completed", "indeterminate", 3],
    [["failed"], "failed", null, 0],
    [["passed"], "cancelled", null, 0],
  ] as const;
  for (const [statuses, status, qualityStatus, code] of outcomes) {
    const run: RunState = { ...before, status, checks: statuses.map((one) => ({ name: "c", status: one })) };
    const { index } = encodeChanges(null, [{ kind: "run_ended", runId: run.id, run }], undefined);
    t.equal((index[9 + 32] as number) >>> 4, code, status);
    t.same(decodeEndedSummary(index), { ...summarizeRun(run), qualityStatus });
    index[9 + 32]! |= 0x40;
    t.throws(() => decodeEndedSummary(index), RecordDecodeError);
  }
});
