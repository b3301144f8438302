import t from "tap";
import { frameLines, LINE_BYTES, programPut, runningRun } from "../../helpers/link/link-messages.js";
import { RecorderHarness, temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

interface Refused {
  rule: string;
  body: object;
  payload?: Uint8Array;
  code: string;
  params: object;
}

/** One that is no message, one whose payload is refused with it, and a long answer; core/link has every rule. */
const refused = (frameId: string): Refused[] => [
  {
    rule: "a body that JSON cannot say",
    body: { type: "cell.put", kiosk_serial_number: new Uint8Array(1) },
    code: "invalid_message",
    params: { path: "/kiosk_serial_number", allowed: /no bin/ },
  },
  {
    rule: "lines of another size",
    body: frameLines(frameId, 10, 2),
    payload: new Uint8Array(LINE_BYTES),
    code: "size_mismatch",
    params: { path: "payload", value: LINE_BYTES, allowed: 2 * LINE_BYTES },
  },
  {
    rule: "a path of a megabyte",
    body: { type: "cell.put", ["k".repeat(1_000_000)]: 1 },
    code: "invalid_message",
    params: { path: /^\/k+…$/ },
  },
];

t.test("what is refused gets its code, naming the field, and changes nothing", async (t) => {
  const directory = temporaryDirectory(t);
  const recorder = await RecorderHarness.start(t, directory);
  const raw = await recorder.connect("cell");
  await raw.accept(programPut());
  const { runId, frameId } = await runningRun(raw);
  const before = JSON.stringify([...recorder.runs]);
  const messages = refused(frameId);
  for (const { rule, body, payload, code, params } of messages) {
    const answer = await raw.deliver(body, payload);
    t.match(answer, { code, params }, rule);
    t.type(answer?.message, "string");
    t.ok(JSON.stringify(answer).length < 5_000, `${rule}: an answer of bounded size`);
  }
  t.equal(JSON.stringify([...recorder.runs]), before, "no refusal changed anything");
  t.equal(recorder.refusals.length, messages.length, "each is a record");
  await raw.accept(frameLines(frameId, 10, 2), new Uint8Array(2 * LINE_BYTES));
  const capture = recorder.run(runId).frames[0]?.batches;
  t.strictSame(
    capture?.map((batch) => batch.offset),
    [0, 10 * LINE_BYTES],
    "and no refused payload took place in the file",
  );
});
