import t from "tap";
import { LIMITS } from "../../../core/limits.js";
import { encodeFrame } from "../../../workers/cell-link/frame-codec.js";
import { GatedFileSystem } from "../../helpers/disk/gated-file-system.js";
import { nextId, PROGRAM_ID, programPut } from "../../helpers/link/link-messages.js";
import type { RawProducer } from "../../helpers/link/raw-producer.js";
import { RecorderHarness, temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

const MIB = 1024 * 1024;
/** What the system's own socket buffers may hold on both sides. */
const SOCKET_BUFFERS_BYTES = 4 * MIB;

/** Writes piece after piece, each when the one before has left this process, and counts what left. */
class Pump {
  leftBytes = 0;

  constructor(raw: RawProducer, pieces: readonly Uint8Array[]) {
    const write = (at: number): void => {
      const piece = pieces[at];
      if (piece === undefined) return;
      raw.socket.write(piece, () => {
        this.leftBytes += piece.length;
        write(at + 1);
      });
    };
    write(0);
  }

  /** What left once the service has stopped to read: while a bystander is served fifty times, not one piece more. */
  async standstill(bystander: RawProducer): Promise<number> {
    let before = -1;
    for (let still = 0; still < 50; ) {
      await bystander.untilPong();
      still = this.leftBytes === before ? still + 1 : 0;
      before = this.leftBytes;
    }
    return before;
  }
}

t.test("while nothing can be committed, the link reads no more than its bound, and drops nothing", async (t) => {
  const gate = new GatedFileSystem();
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t), { fileSystem: gate.fileSystem });
  const raw = await recorder.connect("head");
  const bystander = await recorder.connect("bystander");
  await raw.accept(programPut());
  const runId = nextId();
  await raw.accept({ type: "run.create", id: runId, program_id: PROGRAM_ID });
  gate.hold();
  const count = 100;
  const payload = new Uint8Array(MIB).fill(7);
  const pieces = Array.from({ length: count }, (_, i) => {
    const body = { type: "file.put", run_id: runId, name: `f${i}`, content_type: "a/b" };
    return encodeFrame({ kind: "message", sequence: ++raw.sequence, body, payload });
  });
  const taken = await new Pump(raw, pieces.flat()).standstill(bystander);
  t.comment(`${(taken / MIB).toFixed(1)} MiB of ${count} MiB taken while the disk stood still`);
  t.ok(taken >= LIMITS.linkConnectionPendingBytes / 2, "several messages are in flight");
  t.ok(taken <= LIMITS.linkConnectionPendingBytes + MIB + SOCKET_BUFFERS_BYTES);
  recorder.timers.advance(50_000);
  await bystander.untilPong();
  recorder.timers.advance(50_000);
  gate.release();
  for (;;) {
    const frame = await raw.next();
    t.ok(frame !== null, "a producer that the service made wait is not taken for silent", { diagnostic: false });
    if (frame?.kind === "ack" && frame.sequence === raw.sequence) break;
  }
  t.equal(recorder.run(runId).files.length, count);
  const offsets = recorder.run(runId).files.map((file) => file.offset);
  t.strictSame(
    offsets,
    offsets.map((_, at) => at * MIB),
    "each in its place",
  );
});

t.test("a producer that does not read its answers is not read either", async (t) => {
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t));
  const raw = await recorder.connect("deaf");
  const bystander = await recorder.connect("bystander");
  raw.socket.pause();
  const count = 600_000;
  const ping = Buffer.concat(
    Array.from({ length: 1_000 }, () => Buffer.concat(encodeFrame({ kind: "ping", sequence: 1 }))),
  );
  const pump = new Pump(
    raw,
    Array.from({ length: count / 1_000 }, () => ping),
  );
  const taken = await pump.standstill(bystander);
  t.ok(taken < count * 24, "it is made to wait");
  t.comment(`${(taken / MIB).toFixed(1)} of ${((count * 24) / MIB).toFixed(1)} MiB of pings taken`);
  t.ok(taken < LIMITS.linkUnreadAnswerBytes + 2 * SOCKET_BUFFERS_BYTES);
  raw.socket.resume();
  let pongs = 0;
  while (pongs < count) {
    const frame = await raw.next();
    if (frame?.kind !== "pong") break;
    pongs++;
  }
  t.equal(pongs, count, "every one is answered in the end");
});

t.test("large payloads wait for room; small ones and other producers do not; silence frees it", async (t) => {
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t));
  const bystander = await recorder.connect("bystander");
  const holders: RawProducer[] = [];
  const begin = { kind: "message", sequence: 1, body: { type: "x" }, payload: new Uint8Array(8) } as const;
  const head = Buffer.from(encodeFrame(begin)[0] as Uint8Array);
  head.writeUInt32LE(LIMITS.linkPayloadBytes, 20);
  // The first has the half of all room that belongs to the oldest. The second has sent enough to have the other half.
  for (const bytes of [LIMITS.linkUnclaimedPayloadBytes + 1, LIMITS.linkPayloadBytes / 2 + 1]) {
    const holder = await recorder.connect(`holder-${bytes}`);
    await new Promise<void>((resolve) => {
      holder.socket.write(Buffer.concat([head, new Uint8Array(bytes)]), () => resolve());
    });
    for (let nth = 0; nth < 3; nth++) await bystander.untilPong();
    holders.push(holder);
  }
  const late = await recorder.connect("late");
  const [lateHead, latePayload] = encodeFrame({ ...begin, payload: new Uint8Array(8 * MIB) }) as [
    Uint8Array,
    Uint8Array,
  ];
  const pieces = Array.from({ length: 8 }, (_, at) => latePayload.subarray(at * MIB, (at + 1) * MIB));
  const taken = await new Pump(late, [lateHead, ...pieces]).standstill(bystander);
  t.ok(taken < 8 * MIB, `${(taken / MIB).toFixed(1)} MiB of the late one's 8 MiB left its side`);
  t.match(await bystander.deliver({ type: "y" }, new Uint8Array(LIMITS.linkUnclaimedPayloadBytes)), {
    code: "invalid_message",
  });
  t.equal(recorder.refusals.length, 1, "the late one's message is not decided yet");
  recorder.timers.advance(LIMITS.linkSilenceTimeoutMs);
  for (const holder of holders) t.strictSame(await holder.rest(), [], "closed");
  t.match(await late.next(), { kind: "refuse", sequence: 1, body: { code: "invalid_message" } });
});
