import t, { type Test } from "tap";
import { LIMITS } from "../../../core/limits.js";
import { encodeFrame } from "../../../workers/cell-link/frame-codec.js";
import { GatedFileSystem } from "../../helpers/disk/gated-file-system.js";
import {
  frameBegin,
  frameLines,
  LINE_BYTES,
  nextId,
  PROGRAM_ID,
  programPut,
} from "../../helpers/link/link-messages.js";
import { RawProducer, refusedHello } from "../../helpers/link/raw-producer.js";
import { listOf } from "../../helpers/list-of.js";
import { RecorderHarness, temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

const component = (key: string) => ({ type: "component.put", key, status: "healthy" });

const A = "0b8c1d2e-3f40-4152-8364-758697a8b9ca";

async function start(t: Test, options = {}) {
  return RecorderHarness.start(t, temporaryDirectory(t), options);
}

t.test("hello is answered with a welcome that says what is committed and the last run", async (t) => {
  const recorder = await start(t);
  const first = await recorder.connect("ljx-1");
  t.strictSame(first.welcome, { protocol: 1, service_version: "1.2.3", committed: 0, yours: 0, last_run_id: null });
  const runId = nextId();
  await first.accept(programPut());
  await first.accept({ type: "run.create", id: runId, program_id: PROGRAM_ID });
  await first.close();
  const second = await recorder.connect("ljx-1");
  t.strictSame(second.welcome, { protocol: 1, service_version: "1.2.3", committed: 2, yours: 0, last_run_id: runId });
  const other = await recorder.connect("co-processor");
  t.match(other.welcome, { committed: 0, last_run_id: runId });
});

t.test("a hello that is wrong is refused, naming the field, and closed", async (t) => {
  const { address } = await start(t);
  const cases: [object, string][] = [
    [{ protocol: 2, producer: "a" }, "/protocol"],
    [{ producer: "a" }, "/protocol"],
    [{ protocol: 1 }, "/producer"],
    [{ protocol: 1, producer: "" }, "/producer"],
    [{ protocol: 1, producer: "A" }, "/producer"],
    [{ protocol: 1, producer: "a/b" }, "/producer"],
    [{ protocol: 1, producer: "a".repeat(65) }, "/producer"],
    [{ protocol: 1, producer: "a", name: "b" }, "/name"],
    [{ protocol: 1, producer: "a", token: 5 }, "/token"],
    [{ protocol: 1, producer: "a", instance: 5 }, "/instance"],
    [{ protocol: 1, producer: "a", instance: "" }, "/instance"],
    [{ protocol: 1, producer: "a", instance: A.slice(1) }, "/instance"],
  ];
  for (const [body, path] of cases) {
    const frames = await refusedHello(address, body);
    t.match(frames, listOf({ kind: "refuse", sequence: 0, body: { code: "invalid_message", params: { path } } }), path);
    t.equal(frames.length, 1);
  }
  for (const producer of ["a".repeat(64), "0", "a.b_c-9"]) t.ok(await RawProducer.connect(address, producer), producer);
});

t.test("whatever is not a hello first is a bad frame", async (t) => {
  const { address } = await start(t);
  for (const kind of ["message", "ping", "pong", "ack"] as const) {
    const raw = new RawProducer(address);
    raw.send({ kind, sequence: 1, ...(kind === "message" ? { body: component("a") } : {}) });
    t.match(
      await raw.rest(),
      listOf({ kind: "refuse", sequence: 0, body: { code: "bad_frame", params: { field: "kind" } } }),
      kind,
    );
  }
  // The beginning of a large payload is enough: nothing is held before hello.
  const raw = new RawProducer(address);
  const [head] = encodeFrame({ kind: "message", sequence: 1, body: component("a"), payload: new Uint8Array(1) });
  const large = Buffer.from(head as Uint8Array);
  large.writeUInt32LE(LIMITS.linkPayloadBytes, 20);
  raw.write(large);
  t.match(await raw.rest(), listOf({ body: { code: "bad_frame", params: { field: "kind" } } }));
});

t.test("a broken frame gets bad_frame and closes its own connection only", async (t) => {
  const recorder = await start(t);
  const bystander = await recorder.connect("bystander");
  const change = (edit: (frame: Buffer) => void) => {
    const frame = Buffer.concat(encodeFrame({ kind: "message", sequence: 1, body: component("x") }));
    edit(frame);
    return frame;
  };
  const cases: [string, string, Buffer][] = [
    ["magic", "magic", change((frame) => frame.writeUInt8(0x44, 0))],
    ["version", "version", change((frame) => frame.writeUInt8(2, 4))],
    ["kind 0", "kind", change((frame) => frame.writeUInt8(0, 5))],
    ["kind 8", "kind", change((frame) => frame.writeUInt8(8, 5))],
    ["reserved", "reserved", change((frame) => frame.writeUInt16LE(1, 6))],
    ["sequence 2^53", "sequence", change((frame) => frame.writeUInt32LE(0x20_0000, 12))],
    ["sequence 0", "sequence", change((frame) => frame.writeUInt32LE(0, 8))],
    ["body over its limit", "body_length", change((frame) => frame.writeUInt32LE(LIMITS.linkBodyBytes + 1, 16))],
    [
      "payload over its limit",
      "payload_length",
      change((frame) => frame.writeUInt32LE(LIMITS.linkPayloadBytes + 1, 20)),
    ],
    ["padding", "padding", change((frame) => frame.writeUInt8(1, frame.length - 1))],
    [
      "a second hello",
      "kind",
      Buffer.concat(encodeFrame({ kind: "hello", sequence: 0, body: { protocol: 1, producer: "p" } })),
    ],
    ["a service's frame", "kind", Buffer.concat(encodeFrame({ kind: "ack", sequence: 1 }))],
  ];
  for (const [name, field, bytes] of cases) {
    const raw = await recorder.connect("broken");
    raw.write(bytes);
    const frames = await raw.rest();
    t.match(frames, listOf({ kind: "refuse", sequence: 0, body: { code: "bad_frame", params: { field } } }), name);
    t.equal(frames.length, 1, `${name}: nothing else`);
  }
  await bystander.accept(component("still-here"));
  t.strictSame(recorder.origins, [{ producer: "bystander", sequence: 1 }]);
});

t.test("a sequence number above the next one is a gap: refused and closed, nothing applied", async (t) => {
  const recorder = await start(t);
  const raw = await recorder.connect("p");
  await raw.accept(component("a"));
  raw.sequence = 2;
  raw.message(component("b"));
  t.match(
    await raw.rest(),
    listOf({ kind: "refuse", sequence: 3, body: { code: "sequence_gap", params: { value: 3, allowed: 2 } } }),
  );
  const again = await recorder.connect("p");
  t.equal(again.welcome.committed, 1);
});

t.test("no ack before the sync, and one for many messages after it", async (t) => {
  const gate = new GatedFileSystem();
  const recorder = await start(t, { fileSystem: gate.fileSystem });
  const raw = await recorder.connect("p");
  gate.hold();
  raw.message(component("a"));
  await gate.waiting();
  for (let i = 0; i < 50; i++) raw.message(component(`b${i}`));
  raw.message({ type: "component.delete", key: "unknown" });
  raw.message(component("c"));
  t.strictSame(await raw.untilPong(), [], "decided, and not a word of it");
  t.equal(recorder.origins.length, 0, "the front has not seen it either");
  gate.release();
  const frames = [];
  for (;;) {
    const frame = await raw.next();
    frames.push(frame);
    if (frame?.kind === "ack" && frame.sequence === 53) break;
  }
  const refusedAt = frames.findIndex((frame) => frame?.kind === "refuse" && frame.sequence === 52);
  t.ok(refusedAt >= 0);
  t.ok(
    frames.slice(0, refusedAt).every((frame) => (frame?.sequence ?? 0) < 52),
    "the refusal comes before any ack at or above it",
  );
  t.ok(frames.length <= 4, `53 answers in ${frames.length} frames`);
});

t.test("a second connection takes over; its welcome waits for what the first had sent", async (t) => {
  const gate = new GatedFileSystem();
  const recorder = await start(t, { fileSystem: gate.fileSystem });
  const first = await recorder.connect("p");
  gate.hold();
  first.message(component("a"));
  await gate.waiting();
  first.message(component("b"));
  await first.untilPong();
  // Half of a third message.
  const [bytes] = encodeFrame({ kind: "message", sequence: 3, body: component("c") });
  first.write((bytes as Uint8Array).subarray(0, 30));
  const second = new RawProducer(recorder.address);
  second.hello({ protocol: 1, producer: "p" });
  t.strictSame(await first.rest(), [], "the first one is closed");
  // Another connection is served meanwhile: the second one's hello was read before.
  const other = new RawProducer(recorder.address);
  other.hello({ protocol: 1, producer: "other" });
  t.match(await other.next(), { kind: "welcome" });
  gate.release();
  t.match(await second.next(), { kind: "welcome", body: { committed: 2 } });
  second.sequence = 2;
  await second.accept(component("c"));
  t.strictSame(
    recorder.origins.map((origin) => origin.sequence),
    [1, 2, 3],
  );
});

t.test(
  "frames cut anywhere have no effect until they are whole, and lines that were acknowledged are kept",
  async (t) => {
    const recorder = await start(t);
    const runId = nextId();
    const frameId = nextId();
    const first = await recorder.connect("head");
    await first.accept(programPut());
    await first.accept({ type: "run.create", id: runId, program_id: PROGRAM_ID });
    await first.accept({ type: "run.start", id: runId });
    await first.accept(frameBegin(frameId, runId));
    await first.accept(frameLines(frameId, 0, 10), new Uint8Array(10 * LINE_BYTES).fill(1));
    const bytes = Buffer.concat(
      encodeFrame({
        kind: "message",
        sequence: 6,
        body: frameLines(frameId, 10, 5),
        payload: new Uint8Array(5 * LINE_BYTES),
      }),
    );
    for (const cut of [1, 23, 24, 60, bytes.length - 1]) {
      const raw = await recorder.connect("head");
      t.equal(raw.welcome.committed, 5);
      raw.write(bytes.subarray(0, cut));
      raw.socket.end();
      t.strictSame(await raw.rest(), []);
    }
    t.equal(recorder.run(runId).frames[0]?.lines, 10);
    const raw = await recorder.connect("head");
    for (const byte of bytes) raw.write(Uint8Array.of(byte));
    t.match(await raw.next(), { kind: "ack", sequence: 6 });
    raw.sequence = 6;
    await raw.accept({ type: "frame.end", id: frameId });
    t.match(recorder.run(runId).frames[0], { lines: 15, status: "complete", batches: { length: 2 } });
  },
);

t.test("a producer that ends its side is answered all the same", async (t) => {
  const recorder = await start(t);
  const raw = await recorder.connect("p");
  raw.message(component("a"));
  raw.message(component("b"));
  raw.socket.end();
  t.match((await raw.rest()).at(-1), { kind: "ack", sequence: 2 });
});

t.test("ping is answered with a pong of its number", async (t) => {
  const recorder = await start(t);
  const raw = await recorder.connect("p");
  raw.send({ kind: "ping", sequence: 2 ** 53 - 1 });
  t.match(await raw.next(), { kind: "pong", sequence: 2 ** 53 - 1 });
  raw.send({ kind: "pong", sequence: 5 });
  await raw.accept(component("a"));
});

t.test("60 s of silence close a connection; one that speaks stays; hello has 5 s", async (t) => {
  const recorder = await start(t);
  const silent = await recorder.connect("silent");
  const lively = await recorder.connect("lively");
  const pending = new RawProducer(recorder.address);
  // Accepted before the one that is welcomed after it.
  await (await recorder.connect("behind")).close();
  recorder.timers.advance(LIMITS.linkHelloTimeoutMs);
  t.strictSame(await pending.rest(), []);
  recorder.timers.advance(45_000);
  await lively.untilPong();
  recorder.timers.advance(10_000);
  t.strictSame(await silent.rest(), []);
  await lively.accept(component("a"));
});

t.test("a silence that the service itself made does not count", async (t) => {
  const recorder = await start(t, { takesBatches: false });
  const raw = await recorder.connect("p");
  // The front takes nothing: at 32 MiB ahead the recorder stops reading.
  const big = { type: "component.put", key: "k", status: "healthy", detail: "x".repeat(16_000) };
  for (let i = 0; i < 2_200; i++) raw.message(big);
  await recorder.until(() => recorder.row("recorder").status === "degraded");
  t.match(recorder.row("recorder").detail, /producers wait/);
  recorder.timers.advance(10 * 60_000);
  recorder.takeBatches();
  await recorder.until(() => recorder.origins.length === 2_200 && recorder.row("recorder").status === "healthy");
  for (;;) {
    const frame = await raw.next();
    if (frame?.sequence === 2_200) break;
    t.ok(frame !== null, "still connected", { diagnostic: false });
  }
});

t.test("a failed sync: nothing is acknowledged, connections get unavailable, so do new ones", async (t) => {
  for (const part of ["/meta/", "/captures/"]) {
    const gate = new GatedFileSystem();
    const directory = temporaryDirectory(t);
    const recorder = await RecorderHarness.start(t, directory, { fileSystem: gate.fileSystem });
    const raw = await recorder.connect("p");
    const bystander = await recorder.connect("bystander");
    const runId = nextId();
    await raw.accept(programPut());
    await raw.accept({ type: "run.create", id: runId, program_id: PROGRAM_ID });
    gate.failDatasync(part);
    raw.message(
      { type: "file.put", run_id: runId, name: "a.pdf", content_type: "application/pdf" },
      new Uint8Array(100),
    );
    t.match(
      await raw.rest(),
      listOf({ kind: "refuse", sequence: 0, body: { code: "unavailable" } }),
      `${part}: no ack`,
    );
    t.match(await bystander.rest(), listOf({ kind: "refuse", sequence: 0, body: { code: "unavailable" } }));
    t.match(
      await refusedHello(recorder.address, { protocol: 1, producer: "p" }),
      listOf({ sequence: 0, body: { code: "unavailable" } }),
    );
    t.equal(recorder.row("log").status, "down");
    t.equal(recorder.row("recorder").status, "down");
    await recorder.stop();
    const again = await RecorderHarness.start(t, directory);
    const resumed = await again.connect("p");
    // The bytes may have reached the disk all the same. The sequence number tells, and the effect is there once.
    const committed = resumed.welcome.committed as number;
    t.ok(committed === 2 || committed === 3);
    t.equal(again.run(runId).files.length, committed - 2);
    if (committed === 2) {
      await resumed.accept(
        { type: "file.put", run_id: runId, name: "a.pdf", content_type: "application/pdf" },
        new Uint8Array(100),
      );
    }
    t.equal(again.run(runId).files.length, 1);
    await again.stop();
  }
});

t.test("stop commits and answers what was taken", async (t) => {
  const gate = new GatedFileSystem();
  const recorder = await start(t, { fileSystem: gate.fileSystem });
  const raw = await recorder.connect("p");
  gate.hold();
  raw.message(component("a"));
  await gate.waiting();
  raw.message(component("b"));
  await raw.untilPong();
  const stopped = recorder.stop();
  gate.release();
  t.match((await raw.rest()).at(-1), { kind: "ack", sequence: 2 });
  await stopped;
  t.equal(recorder.origins.length, 2);
});
