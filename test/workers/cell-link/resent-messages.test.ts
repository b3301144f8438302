import t from "tap";
import { LIMITS } from "../../../core/limits.js";
import type { RawProducer } from "../../helpers/link/raw-producer.js";
import { listOf } from "../../helpers/list-of.js";
import { RecorderHarness, temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

const component = (key: string) => ({ type: "component.put", key, status: "healthy" });

const A = "0b8c1d2e-3f40-4152-8364-758697a8b9ca";
const B = "1b8c1d2e-3f40-4152-8364-758697a8b9ca";

t.test("what is committed is answered again and changes nothing, also after a restart", async (t) => {
  const directory = temporaryDirectory(t);
  const before = await RecorderHarness.start(t, directory);
  const raw = await before.connect("p", A);
  await raw.accept(component("a"));
  const refusal = await raw.deliver({ type: "component.delete", key: "unknown" });
  await raw.accept(component("c"));
  const resend = async (raw: RawProducer) => {
    for (const [sequence, body] of [component("a"), component("other than before"), component("c")].entries()) {
      raw.send({ kind: "message", sequence: sequence + 1, body });
    }
    return (await raw.untilPong()).filter((frame) => frame.kind === "refuse" || frame.sequence === 3);
  };
  const expected = [
    { kind: "refuse", sequence: 2, body: refusal },
    { kind: "ack", sequence: 3, body: {} },
  ];
  // The ack of the whole chunk may follow the pong.
  const again = await resend(raw);
  t.strictSame(before.row("recorder").status, "healthy", "a reconnect of one instance is no alternation");
  t.strictSame(again.length === 2 ? again : [...again, await raw.next()], expected);
  const records = before.origins.length + before.refusals.length;
  await before.stop();
  const after = await RecorderHarness.start(t, directory);
  const later = await after.connect("p", A.toUpperCase());
  t.match(later.welcome, { committed: 3, yours: 3 });
  const later2 = await resend(later);
  t.strictSame(later2.length === 2 ? later2 : [...later2, await later.next()], expected);
  t.equal(after.origins.length + after.refusals.length, records, "no record more");
});

t.test("what another instance sent is refused as taken, and closes the connection", async (t) => {
  const directory = temporaryDirectory(t);
  const before = await RecorderHarness.start(t, directory);
  const a = await before.connect("p", A);
  await a.accept(component("a1"));
  await a.accept(component("a2"));
  const b = await before.connect("p", B);
  t.strictSame(await a.rest(), [], "closed");
  t.match(b.welcome, { committed: 2, yours: 0 });
  const refusal = await b.deliver({ type: "component.delete", key: "unknown" });
  t.match(refusal, { code: "not_found" });
  await b.accept(component("b4"));
  t.equal(before.row("recorder").status, "healthy", "one instance after the other: a restart");
  const records = before.origins.length;

  /** What a connection gets for one message of this sequence number, and its welcome. */
  const answered = async (recorder: RecorderHarness, instance: string | undefined, sequence: number) => {
    const raw = await recorder.connect("p", instance);
    raw.send({ kind: "message", sequence, body: component("other") });
    const frame = await raw.next();
    return { welcome: raw.welcome, frame, isClosed: frame?.kind === "refuse" && (await raw.rest()).length === 0 };
  };
  const taken = (sequence: number) => ({
    frame: { sequence, body: { code: "sequence_taken", params: { path: "sequence", value: sequence, allowed: 5 } } },
    isClosed: true,
  });
  const isTold = async (recorder: RecorderHarness) => {
    t.match(await answered(recorder, A, 2), {
      welcome: { committed: 4, yours: 2 },
      frame: { kind: "ack", sequence: 2 },
    });
    for (const sequence of [3, 4]) t.match(await answered(recorder, A, sequence), taken(sequence), `${sequence}`);
    const [first, second] = [await recorder.connect("p", B), recorder.refusals.length];
    t.match(first.welcome, { committed: 4, yours: 4 });
    first.send({ kind: "message", sequence: 3, body: component("other") });
    t.match(await first.next(), { kind: "refuse", sequence: 3, body: refusal as object });
    t.equal(recorder.refusals.length, second);
    await first.close();
    for (const sequence of [1, 4])
      t.match(await answered(recorder, undefined, sequence), taken(sequence), "no instance");
  };
  await isTold(before);
  t.match(before.row("recorder"), { status: "degraded", detail: /producer p .*name of its own/ });
  before.timers.advance(60_000);
  t.equal(before.row("recorder").status, "healthy", "a minute later");
  t.equal(before.lines.filter(({ level }) => level === "warn").length, 1);
  t.equal(before.origins.length, records, "nothing was recorded");
  await before.stop();
  const after = await RecorderHarness.start(t, directory);
  await isTold(after);
});

t.test("on one connection too, what was another's stays so after what is its own", async (t) => {
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t));
  await (await recorder.connect("p", A)).accept(component("a1"));
  await (await recorder.connect("p")).accept(component("without"));
  const a = await recorder.connect("p", A);
  t.match(a.welcome, { committed: 2, yours: 1 });
  await a.accept(component("a3"));
  a.send({ kind: "message", sequence: 3, body: component("other") });
  t.match(await a.next(), { kind: "ack", sequence: 3 }, "its own of this connection");
  a.send({ kind: "message", sequence: 2, body: component("other") });
  t.match(await a.rest(), listOf({ kind: "refuse", sequence: 2, body: { code: "sequence_taken" } }));
});

t.test("the last 1,024 refusals of a producer are kept", async (t) => {
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t));
  const raw = await recorder.connect("p");
  const count = LIMITS.refusalsPerProducer + 10;
  for (let i = 0; i < count; i++) raw.message({ type: "component.delete", key: `k${i}` });
  for (let i = 1; i <= count; i++) t.match(await raw.next(), { kind: "refuse", sequence: i }, { diagnostic: false });
  raw.send({ kind: "message", sequence: 10, body: component("x") });
  t.match(await raw.next(), { kind: "ack", sequence: 10 }, "too long ago: its sequence number is used all the same");
  raw.send({ kind: "message", sequence: 11, body: component("x") });
  t.match(await raw.next(), { kind: "refuse", sequence: 11, body: { params: { value: "k10" } } });
});
