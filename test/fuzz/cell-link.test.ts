import t from "tap";
import { LIMITS } from "../../core/limits.js";
import { createRandom, type Random } from "../../core/random.js";
import { encodeFrame } from "../../workers/cell-link/frame-codec.js";
import { mutatedBytes, truncated } from "../helpers/fuzz/byte-mutators.js";
import {
  frameBegin,
  frameLines,
  LINE_BYTES,
  nextId,
  PROGRAM_ID,
  programPut,
  seriesAppend,
} from "../helpers/link/link-messages.js";
import { RawProducer } from "../helpers/link/raw-producer.js";
import { heldBytes } from "../helpers/process/held-memory.js";
import { RecorderHarness, temporaryDirectory } from "../helpers/recorder/recorder-harness.js";
import { sized } from "../helpers/test-size.js";

const SEED = Number(process.env.TEST_SEED ?? 11);
const STREAMS = sized(200, 10_000);
const MESSAGES = sized(1_200, 50_000);
const MIB = 1024 * 1024;
/** What a fuzzed service may hold in the end: its buffers and the test's own records. */
const HELD_LIMIT_BYTES = 200 * MIB;
/**
 * The buffers that one stream may make: the largest payload that a frame can claim, and what else it makes. Only the
 * bytes that arrive take memory (frame-codec.test.ts).
 */
const STREAM_LIMIT_BYTES = LIMITS.linkPayloadBytes + 32 * MIB;

t.test("random and mutated bytes: no crash, nothing applied in part, memory bounded", async (t) => {
  t.comment(`TEST_SEED=${SEED}`);
  const random = createRandom(SEED);
  const directory = temporaryDirectory(t);
  const recorder = await RecorderHarness.start(t, directory);
  const bystander = await recorder.connect("bystander");
  await bystander.accept(programPut());
  const heldBefore = heldBytes();
  let largestBytes = 0;
  const kinds = new Map<string, number>();
  for (let i = 0; i < STREAMS; i++) {
    const buffersBefore = process.memoryUsage().arrayBuffers;
    const raw = new RawProducer(recorder.address);
    const producer = `fuzz-${i}`;
    const runId = nextId();
    const frameId = nextId();
    const frames = [
      { kind: "hello", sequence: 0, body: { protocol: 1, producer } },
      {
        kind: "message",
        sequence: 1,
        body: { type: "run.create", id: runId, program_id: PROGRAM_ID, serial_number: "S" },
      },
      { kind: "message", sequence: 2, body: { type: "run.start", id: runId } },
      { kind: "ping", sequence: 9 },
      { kind: "message", sequence: 3, body: frameBegin(frameId, runId) },
      { kind: "message", sequence: 4, body: frameLines(frameId, 0, 20), payload: random.bytes(20 * LINE_BYTES) },
      { kind: "message", sequence: 5, body: { type: "run.finish", id: runId } },
    ] as const;
    const stream = Buffer.concat(frames.flatMap((frame) => encodeFrame(frame)));
    const way = i % 4;
    if (way === 0) raw.write(random.bytes(random.integer(1, 3_000)));
    else if (way === 1)
      raw.write(Buffer.concat([stream.subarray(0, encodeFrame(frames[0])[0]?.length ?? 0), random.bytes(500)]));
    else if (way === 2) raw.write(mutatedBytes(random, stream, stream).bytes);
    else raw.write(Buffer.concat([truncated(random, stream), mutatedBytes(random, stream, stream).bytes]));
    raw.socket.end();
    for (const frame of await raw.rest()) {
      const name = frame.kind === "refuse" ? `refuse ${frame.body.code}` : frame.kind;
      kinds.set(name, (kinds.get(name) ?? 0) + 1);
      t.notMatch(name, "unavailable", { diagnostic: false });
    }
    largestBytes = Math.max(largestBytes, process.memoryUsage().arrayBuffers - buffersBefore);
  }
  await bystander.accept({ type: "cell.put", kiosk_serial_number: "still here" });
  const grown = heldBytes() - heldBefore;
  t.ok(grown < HELD_LIMIT_BYTES, `${Math.round(grown / MIB)} MiB more are held`);
  t.ok(largestBytes < STREAM_LIMIT_BYTES, `a stream made ${Math.round(largestBytes / MIB)} MiB of buffers at most`);
  t.strictSame(
    recorder.lines.filter((line) => line.level === "error"),
    [],
    "no error of the service's own",
  );
  const [runs, refusals] = [[...recorder.runs], recorder.refusals.length];
  await recorder.stop();
  const again = await RecorderHarness.start(t, directory);
  t.equal(JSON.stringify([...again.runs]), JSON.stringify(runs), "what a restart reads is what was live");
  t.equal(again.refusals.length, refusals);
  t.equal(again.ready.recovery.findingCount, 0);
  t.ok((kinds.get("refuse bad_frame") ?? 0) > 50, "bad frames were among them");
  t.ok((kinds.get("ack") ?? 0) > 5, "and good ones");
  t.comment(
    `${STREAMS} streams: ${JSON.stringify(Object.fromEntries(kinds))}, ${runs.length} runs, +${Math.round(grown / MIB)} MiB`,
  );
});

/** A value that a field most likely does not take. */
function oddValue(random: Random): unknown {
  return random.pick<() => unknown>([
    () => null,
    () => -1,
    () => 2 ** 53 - 1,
    () => 1e308,
    () => 0.5,
    () => "",
    () => "x".repeat(random.integer(1, 20_000)),
    () => "__proto__",
    () => "../../etc/passwd",
    () => "\u0000\ufeff\u202e",
    () => [],
    () => ({}),
    () => ({ constructor: { prototype: 1 } }),
    () => Array.from({ length: 100 }, () => ({ a: [[[]]] })),
    () => JSON.parse(`${'{"d":'.repeat(50)}1${"}".repeat(50)}`),
    () => true,
    () => nextId(),
    () => "2026-13-40T99:99:99Z",
  ])();
}

function mutatedMessage(random: Random, message: object): object {
  const copy = structuredClone(message) as Record<string, unknown>;
  const keys = Object.keys(copy);
  const key = random.pick(keys);
  const way = random.integer(0, 4);
  if (way === 0) delete copy[key];
  else if (way === 1) copy[key] = oddValue(random);
  else if (way === 2) copy[random.pick(["extra", "toString", "id", "run_id", "index", "metadata"])] = oddValue(random);
  else if (way === 3) {
    const nested = keys.filter((name) => typeof copy[name] === "object" && copy[name] !== null);
    if (nested.length > 0) copy[random.pick(nested)] = mutatedMessage(random, copy[random.pick(nested)] as object);
  }
  return copy;
}

/** What messages are about. */
const newSubject = () => ({ runId: nextId(), frameId: nextId(), jobId: nextId(), lines: 0 });
type Subject = ReturnType<typeof newSubject>;

/** A message of any type about the subject, with a payload of so many lines, rows or bytes. */
function messageAbout(
  random: Random,
  { runId, frameId, jobId, lines }: Subject,
  nth: number,
  count: number,
): [object, Uint8Array?] {
  const message = random.pick<() => [object, Uint8Array?]>([
    () => [{ type: "cell.put", kiosk_serial_number: "K", unit_system: "metric" }],
    () => [{ type: "component.put", key: "robot", status: "healthy", enabled: true }],
    () => [{ type: "component.delete", key: "robot" }],
    () => [programPut()],
    () => [{ type: "run.create", id: runId, program_id: PROGRAM_ID, serial_number: "S", metadata: { a: 1 } }],
    () => [{ type: "run.start", id: runId }],
    () => [{ type: "step.start", run_id: runId, index: random.integer(1, 3) }],
    () => [
      {
        type: "step.finish",
        run_id: runId,
        index: random.integer(1, 3),
        status: "completed",
        result: { checks: [{ name: "c", status: "passed" }] },
      },
    ],
    () => [frameBegin(frameId, runId)],
    () => [frameLines(frameId, lines, count), random.bytes(count * LINE_BYTES)],
    () => [{ type: "frame.end", id: frameId }],
    () => [seriesAppend(runId), random.bytes(8 * count)],
    () => [{ type: "check.add", run_id: runId, check: { name: "gap", status: "failed", value: 1 } }],
    () => [{ type: "defect.add", run_id: runId, defect: { type: "dent", region_2d: { bbox: [1, 2] } } }],
    () => [{ type: "job.start", run_id: runId, id: jobId, name: "j" }],
    () => [{ type: "job.finish", run_id: runId, id: jobId, status: "completed" }],
    () => [{ type: "file.put", run_id: runId, name: `f${nth}`, content_type: "a/b" }, random.bytes(count)],
    () => [{ type: "event.add", run_id: runId, event_type: "e", data: { nth } }],
    () => [{ type: "run.finish", id: runId, results: { a: 1 } }],
    () => [{ type: "run.cancel", id: runId }],
  ]);
  return message();
}

t.test("random and mutated messages: each is taken whole or refused, and the session goes on", async (t) => {
  t.comment(`TEST_SEED=${SEED}`);
  const random = createRandom(SEED);
  const directory = temporaryDirectory(t);
  const recorder = await RecorderHarness.start(t, directory);
  const raw = await recorder.connect("fuzz");
  await raw.accept(programPut());
  let accepted = 1;
  const codes = new Map<string, number>();
  let subject = newSubject();
  for (let i = 0; i < MESSAGES; i++) {
    const { runId } = subject;
    const count = random.integer(1, 30);
    const [body, payload] = messageAbout(random, subject, i, count);
    const sent = random.chance(0.5) ? mutatedMessage(random, body) : body;
    const linesBefore = recorder.runs.get(runId)?.frames[0]?.lines ?? 0;
    const answer = await raw.deliver(sent, random.chance(0.05) ? random.bytes(count) : payload);
    if (answer === null) accepted++;
    else codes.set(answer.code, (codes.get(answer.code) ?? 0) + 1);
    subject.lines = recorder.runs.get(runId)?.frames[0]?.lines ?? 0;
    if (answer !== null) t.equal(subject.lines, linesBefore, "a refused message adds no lines", { diagnostic: false });
    const status = recorder.runs.get(runId)?.status;
    if (status === "completed" || status === "cancelled" || status === "failed" || random.chance(0.02)) {
      subject = newSubject();
    }
  }
  const refused = [...codes.values()].reduce((sum, count) => sum + count, 0);
  t.equal(recorder.refusals.length, refused, "every refusal is one record");
  t.equal(recorder.origins.length, accepted + refused, "every message is one record");
  t.strictSame(
    recorder.lines.filter((line) => line.level === "error"),
    [],
  );
  t.ok(accepted > MESSAGES / 10 && refused > MESSAGES / 4, "both kinds were among them");
  const runs = [...recorder.runs];
  await recorder.stop();
  const again = await RecorderHarness.start(t, directory);
  // Runs that were finalizing at the stop end at the start.
  const active = (entries: typeof runs) => entries.filter(([, run]) => run.status !== "finalizing").map(([id]) => id);
  const before = new Map(runs);
  const differing = active(runs).filter((id) => JSON.stringify(again.run(id)) !== JSON.stringify(before.get(id)));
  t.strictSame(differing, [], "what a restart reads is what was live");
  t.comment(
    `${MESSAGES} messages: ${accepted} accepted, ${JSON.stringify(Object.fromEntries(codes))}, ${runs.length} runs`,
  );
});
