import t from "tap";
import { LIMITS } from "../../../core/limits.js";
import {
  frameBegin,
  frameLines,
  LINE_BYTES,
  nextId,
  PROGRAM_ID,
  programPut,
  runningRun,
  seriesAppend,
} from "../../helpers/link/link-messages.js";
import { RecorderHarness, temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

interface Refused {
  rule: string;
  body: object | ((ids: Ids) => object);
  payload?: Uint8Array;
  code: string;
  params: object | ((ids: Ids) => object);
}
interface Ids {
  runId: string;
  frameId: string;
  jobId: string;
  endedId: string;
  unknown: string;
}

const REFUSED: Refused[] = [
  {
    rule: "an unknown type",
    body: { type: "run.pause" },
    code: "invalid_message",
    params: { path: "/type", value: "run.pause" },
  },
  { rule: "no type", body: {}, code: "invalid_message", params: { path: "/type", value: null } },
  {
    rule: "an unknown field",
    body: { type: "cell.put", kiosk: "K" },
    code: "invalid_message",
    params: { path: "/kiosk", allowed: /unit_system/ },
  },
  {
    rule: "a missing field",
    body: { type: "component.put", key: "a" },
    code: "invalid_message",
    params: { path: "/status" },
  },
  {
    rule: "a value that is not allowed",
    body: { type: "component.put", key: "a", status: "ok" },
    code: "invalid_message",
    params: { path: "/status", value: "ok", allowed: ["healthy", "degraded", "down", "estopped"] },
  },
  {
    rule: "an id that is no UUIDv7",
    body: { type: "run.start", id: "x" },
    code: "invalid_message",
    params: { path: "/id", value: "x", allowed: /UUIDv7/ },
  },
  {
    rule: "a component of our own",
    body: { type: "component.put", key: "log", status: "healthy" },
    code: "name_taken",
    params: { path: "/key", value: "log" },
  },
  {
    rule: "deleting an unknown component",
    body: { type: "component.delete", key: "x" },
    code: "not_found",
    params: { path: "/key", value: "x" },
  },
  {
    rule: "deleting an unknown program",
    body: ({ unknown }) => ({ type: "program.delete", id: unknown }),
    code: "not_found",
    params: ({ unknown }) => ({ path: "/id", value: unknown }),
  },
  {
    rule: "a run of an unknown program",
    body: ({ unknown }) => ({ type: "run.create", id: nextId(), program_id: unknown }),
    code: "not_found",
    params: { path: "/program_id" },
  },
  {
    rule: "a run that exists",
    body: ({ runId }) => ({ type: "run.create", id: runId, program_id: PROGRAM_ID }),
    code: "already_exists",
    params: ({ runId }) => ({ path: "/id", value: runId }),
  },
  {
    rule: "a run that has ended",
    body: ({ endedId }) => ({ type: "run.create", id: endedId, program_id: PROGRAM_ID }),
    code: "already_exists",
    params: { path: "/id" },
  },
  {
    rule: "a run id below the last one",
    body: { type: "run.create", id: "01900000-0000-7000-8000-000000000009", program_id: PROGRAM_ID },
    code: "id_out_of_order",
    params: ({ runId }) => ({ path: "/id", last_run_id: runId }),
  },
  {
    rule: "an unknown run",
    body: ({ unknown }) => ({ type: "run.start", id: unknown }),
    code: "not_found",
    params: { path: "/id" },
  },
  {
    rule: "a step that is not there",
    body: ({ runId }) => ({ type: "step.start", run_id: runId, index: 4 }),
    code: "not_found",
    params: { path: "/index", value: 4, allowed: "1 to 3" },
  },
  {
    rule: "a step that runs already",
    body: ({ runId }) => ({ type: "step.start", run_id: runId, index: 1 }),
    code: "illegal_transition",
    params: { path: "/index", status: "running" },
  },
  {
    rule: "finishing a step that does not run",
    body: ({ runId }) => ({ type: "step.finish", run_id: runId, index: 2, status: "completed" }),
    code: "illegal_transition",
    params: { path: "/index", status: "pending", allowed: ["running"] },
  },
  {
    rule: "skipping a step that runs",
    body: ({ runId }) => ({ type: "step.finish", run_id: runId, index: 1, status: "skipped" }),
    code: "illegal_transition",
    params: { allowed: ["pending"] },
  },
  {
    rule: "a frame that exists",
    body: ({ runId, frameId }) => frameBegin(frameId, runId),
    code: "already_exists",
    params: { path: "/id" },
  },
  {
    rule: "an unknown frame",
    body: ({ unknown }) => frameLines(unknown, 0, 1),
    payload: new Uint8Array(LINE_BYTES),
    code: "not_found",
    params: { path: "/id" },
  },
  {
    rule: "lines with a hole before them",
    body: ({ frameId }) => frameLines(frameId, 11, 1),
    payload: new Uint8Array(LINE_BYTES),
    code: "out_of_sequence",
    params: { path: "/first_line", value: 11, allowed: 10 },
  },
  {
    rule: "lines once more",
    body: ({ frameId }) => frameLines(frameId, 9, 1),
    payload: new Uint8Array(LINE_BYTES),
    code: "out_of_sequence",
    params: { value: 9, allowed: 10 },
  },
  {
    rule: "lines of another size",
    body: ({ frameId }) => frameLines(frameId, 10, 2),
    payload: new Uint8Array(LINE_BYTES),
    code: "size_mismatch",
    params: { path: "payload", value: LINE_BYTES, allowed: 2 * LINE_BYTES },
  },
  {
    rule: "lines over the limit",
    body: ({ frameId }) => frameLines(frameId, 10, LIMITS.frameLines),
    payload: new Uint8Array(LINE_BYTES),
    code: "too_large",
    params: { path: "/line_count", allowed: LIMITS.frameLines - 10 },
  },
  {
    rule: "a payload that nothing asked for",
    body: ({ runId }) => ({ type: "run.finish", id: runId }),
    payload: new Uint8Array(1),
    code: "size_mismatch",
    params: { path: "payload", value: 1, allowed: 0 },
  },
  {
    rule: "rows of a broken size",
    body: ({ runId }) => seriesAppend(runId),
    payload: new Uint8Array(9),
    code: "size_mismatch",
    params: { path: "payload", value: 9 },
  },
  {
    rule: "a series without rows",
    body: ({ runId }) => seriesAppend(runId),
    code: "size_mismatch",
    params: { path: "payload", value: 0 },
  },
  {
    rule: "a job that exists",
    body: ({ runId, jobId }) => ({ type: "job.start", run_id: runId, id: jobId, name: "again" }),
    code: "already_exists",
    params: { path: "/id" },
  },
  {
    rule: "an unknown job",
    body: ({ runId, unknown }) => ({ type: "job.finish", run_id: runId, id: unknown, status: "failed" }),
    code: "not_found",
    params: { path: "/id" },
  },
  {
    rule: "a file name with a slash",
    body: ({ runId }) => ({ type: "file.put", run_id: runId, name: "../x", content_type: "a/b" }),
    payload: new Uint8Array(1),
    code: "invalid_message",
    params: { path: "/name", value: "../x" },
  },
  {
    rule: "a file name of the service's own",
    body: ({ runId }) => ({ type: "file.put", run_id: runId, name: "step-1-cl_sweep.csv", content_type: "a/b" }),
    code: "name_taken",
    params: { path: "/name" },
  },
  {
    rule: "a file name that is taken",
    body: ({ runId }) => ({ type: "file.put", run_id: runId, name: "taken", content_type: "a/b" }),
    code: "name_taken",
    params: { path: "/name", value: "taken" },
  },
  {
    rule: "frame_ids among the results",
    body: ({ runId }) => ({ type: "run.finish", id: runId, results: { frame_ids: [] } }),
    code: "invalid_message",
    params: { path: "/results/frame_ids" },
  },
  {
    rule: "a time that does not exist",
    body: ({ runId }) => ({
      type: "event.add",
      run_id: runId,
      event_type: "e",
      data: {},
      timestamp: "2026-02-30T00:00:00Z",
    }),
    code: "invalid_message",
    params: { path: "/timestamp" },
  },
  {
    rule: "a path of a megabyte",
    body: { type: "cell.put", ["k".repeat(1_000_000)]: 1 },
    code: "invalid_message",
    params: { path: /^\/k+…$/ },
  },
];

t.test("every rule is refused with its code, naming the field, and changes nothing", async (t) => {
  const directory = temporaryDirectory(t);
  const recorder = await RecorderHarness.start(t, directory);
  const raw = await recorder.connect("cell");
  await raw.accept(programPut());
  const endedId = nextId();
  await raw.accept({ type: "run.create", id: endedId, program_id: PROGRAM_ID });
  await raw.accept({ type: "run.cancel", id: endedId });
  const unknown = nextId();
  const ids = { ...(await runningRun(raw)), endedId, unknown };
  await raw.accept({ type: "file.put", run_id: ids.runId, name: "taken", content_type: "a/b" }, new Uint8Array(3));
  const before = JSON.stringify([...recorder.runs]);
  for (const { rule, body, payload, code, params } of REFUSED) {
    const answer = await raw.deliver(typeof body === "function" ? body(ids) : body, payload);
    t.match(answer, { code, params: typeof params === "function" ? params(ids) : params }, rule);
    t.type(answer?.message, "string");
    t.ok(JSON.stringify(answer).length < 5_000, `${rule}: an answer of bounded size`);
  }
  t.equal(JSON.stringify([...recorder.runs]), before, "no refusal changed anything");
  t.equal(recorder.refusals.length, REFUSED.length, "each is a record");
  await raw.accept(frameLines(ids.frameId, 10, 2), new Uint8Array(2 * LINE_BYTES));
  const capture = recorder.run(ids.runId).frames[0]?.batches;
  t.strictSame(
    capture?.map((batch) => batch.offset),
    [0, 10 * LINE_BYTES],
    "and no refused payload took place in the file",
  );
});

t.test("bodies that are no JSON in MessagePack are refused as messages, and the session goes on", async (t) => {
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t));
  const raw = await recorder.connect("cell");
  const send = (bytes: number[]) => {
    raw.sequence++;
    const frame = Buffer.alloc(24 + Math.ceil(bytes.length / 8) * 8);
    frame.write("CLK1", 0, "latin1");
    frame.set([1, 3], 4);
    frame.writeUInt32LE(raw.sequence, 8);
    frame.writeUInt32LE(bytes.length, 16);
    frame.set(bytes, 24);
    raw.write(frame);
  };
  const bodies: [string, number[]][] = [
    ["an empty body", []],
    ["an array", [0x90]],
    ["an integer key", [0x81, 0x01, 0x01]],
    ["a map that claims more than is there", [0xdf, 0xff, 0xff, 0xff, 0xff]],
    ["bin", [0x81, 0xa1, 0x61, 0xc4, 0x01, 0x00]],
    ["ext", [0x81, 0xa1, 0x61, 0xd4, 0x01, 0x00]],
    ["NaN", [0x81, 0xa1, 0x61, 0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0]],
    ["broken UTF-8", [0x81, 0xa1, 0x61, 0xa1, 0xff]],
    ["two values", [0x80, 0x80]],
  ];
  for (const [name, bytes] of bodies) {
    send(bytes);
    t.match(await raw.next(), { kind: "refuse", sequence: raw.sequence, body: { code: "invalid_message" } }, name);
  }
  await raw.accept(programPut());
});
