import t from "tap";
import { LIMITS } from "../../../core/limits.js";
import { BufferPool } from "../../../workers/buffer-pool.js";
import {
  type BadFrame,
  encodeFrame,
  FRAME_KIND,
  type FrameKind,
  FrameParser,
  type FrameToSend,
} from "../../../workers/cell-link/frame-codec.js";
import { decodeBody } from "../../../workers/cell-link/strict-message-pack.js";
import { residentBytes } from "../../helpers/process/process-figures.js";

interface Seen {
  kind: FrameKind;
  sequence: number;
  body: string;
  payload: string;
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

function parseAll(chunks: Iterable<Uint8Array>, buffers = new BufferPool()): { seen: Seen[]; fault?: BadFrame } {
  const seen: Seen[] = [];
  const parser = new FrameParser({
    buffers,
    onFrame({ kind, sequence, body, payload }) {
      seen.push({ kind, sequence, body: hex(body), payload: hex(payload) });
      buffers.release(payload);
    },
  });
  let fault: BadFrame | undefined;
  for (const chunk of chunks) {
    // The parser must not rely on a chunk after push: as with a socket's reused buffer, it is overwritten.
    const lent = Buffer.from(chunk);
    fault = parser.push(lent);
    lent.fill(0xee);
    if (fault !== undefined) break;
  }
  parser.close();
  return fault === undefined ? { seen } : { seen, fault };
}

const bytesOf = (frame: FrameToSend): Buffer => Buffer.concat(encodeFrame(frame));

t.test("golden bytes: the example at the head of the codec", async (t) => {
  const payload = Uint8Array.of(0xff);
  const parts = encodeFrame({ kind: "message", sequence: 5, body: { type: "run.start" }, payload });
  t.equal(parts.length, 2);
  t.equal(parts[1], payload, "the payload is not copied");
  t.equal(
    hex(Buffer.concat(parts)),
    "434c4b310103000005000000000000001000000001000000".concat("81a474797065a972756e2e7374617274", "ff"),
  );
  const welcome = bytesOf({ kind: "welcome", sequence: 0, body: { committed: 2 ** 40, last_run_id: null } });
  t.equal(welcome.length % 8, 0, "a frame without payload ends with its padding");
  t.equal(hex(bytesOf({ kind: "ack", sequence: 2 ** 53 - 1 })), "434c4b3101040000ffffffffffff1f000000000000000000");
  t.match(decodeBody(Buffer.from(parseAll([welcome]).seen[0]?.body ?? "", "hex")), {
    ok: true,
    body: { committed: 2 ** 40, last_run_id: null },
  });
});

t.test("each breach of the table is a bad_frame that names the field, as soon as its bytes are there", async (t) => {
  const good = bytesOf({ kind: "message", sequence: 7, body: { type: "run.start" } });
  const u32 = (offset: number, value: number) => (bytes: Buffer) => bytes.writeUInt32LE(value, offset);
  const kind = (value: FrameKind) => (bytes: Buffer) => bytes.writeUInt8(FRAME_KIND[value], 5);
  const cases: [string, number, unknown, (bytes: Buffer) => unknown][] = [
    ["magic", 1, "47", (b) => b.write("GET ", 0, "latin1")],
    ["magic", 4, "434c4b32", (b) => b.write("2", 3, "latin1")],
    ["version", 5, 2, (b) => b.writeUInt8(2, 4)],
    ["kind", 6, 0, (b) => b.writeUInt8(0, 5)],
    ["kind", 6, 8, (b) => b.writeUInt8(8, 5)],
    ["reserved", 8, 256, (b) => b.writeUInt16LE(256, 6)],
    ["sequence", 16, 2 ** 53 + 8, (b) => u32(8, 8)(b) && u32(12, 2 ** 21)(b)],
    ["sequence", 16, 7, kind("hello")],
    ["body_length", 20, LIMITS.linkBodyBytes + 1, u32(16, LIMITS.linkBodyBytes + 1)],
    ["body_length", 20, 16, kind("ping")],
    ["payload_length", 24, LIMITS.linkPayloadBytes + 1, u32(20, LIMITS.linkPayloadBytes + 1)],
    ["payload_length", 24, 1, (b) => kind("refuse")(b) && u32(20, 1)(b)],
  ];
  for (const [field, knownAt, value, spoil] of cases) {
    const bytes = Buffer.from(good);
    spoil(bytes);
    const name = `${field} ${String(value)}`;
    for (const chunks of [[bytes], Array.from(bytes, (byte) => Uint8Array.of(byte)), [bytes.subarray(0, knownAt)]]) {
      const { seen, fault } = parseAll([...chunks]);
      t.match(fault, { code: "bad_frame", params: { field, allowed: /./ } }, name);
      t.equal(seen.length, 0);
    }
    t.same(parseAll([bytes.subarray(0, knownAt)]).fault?.params.value, value, name);
    t.equal(parseAll([bytes.subarray(0, knownAt - 1)]).fault, undefined, `${name}: not known a byte earlier`);
  }
  const unpadded = bytesOf({ kind: "message", sequence: 7, body: { type: "run.starts" } });
  unpadded[unpadded.length - 1] = 1;
  t.match(parseAll([unpadded]).fault, { params: { field: "padding", value: 1, allowed: "0" } });
});

t.test("a parser at its limits, and after a fault", async (t) => {
  const frame = { kind: "message", sequence: 1, body: { a: "x".repeat(LIMITS.linkBodyBytes - 8) } } as const;
  const payload = Buffer.alloc(LIMITS.linkPayloadBytes, 7);
  let received = 0;
  const buffers = new BufferPool();
  const parser = new FrameParser({
    buffers,
    onFrame(frame) {
      received++;
      t.equal(frame.body.length, LIMITS.linkBodyBytes);
      t.ok(payload.equals(frame.payload));
      buffers.release(frame.payload);
    },
  });
  for (let round = 0; round < 2; round++) {
    for (const part of encodeFrame({ ...frame, payload })) {
      for (let at = 0; at < part.length; at += 65_536) parser.push(part.subarray(at, at + 65_536));
    }
  }
  t.equal(received, 2);
  t.equal(buffers.keptBytes, LIMITS.linkPayloadBytes, "both used one buffer");
  t.match(parser.push(Uint8Array.of(1)), { code: "bad_frame" });
  t.match(parser.push(bytesOf({ kind: "ack", sequence: 1 })), { params: { field: "magic" } }, "the fault stays");
  t.equal(received, 2);
  t.throws(() => encodeFrame({ ...frame, body: { a: "x".repeat(LIMITS.linkBodyBytes) } }), /body_length/);
  t.throws(() => encodeFrame({ ...frame, sequence: 2 ** 53 }), /sequence/);
  t.throws(() => encodeFrame({ ...frame, payload: new Uint8Array(LIMITS.linkPayloadBytes + 1) }), /payload_length/);
});

t.test("a payload that is claimed and does not arrive takes no memory", async (t) => {
  const claims = 8;
  const head = encodeFrame({ kind: "message", sequence: 1, body: { type: "file.put" }, payload: Uint8Array.of(1) })[0];
  const claim = Buffer.from(head as Uint8Array);
  claim.writeUInt32LE(LIMITS.linkPayloadBytes, 20);
  const buffers = new BufferPool();
  const before = { resident: residentBytes(process.pid), reserved: process.memoryUsage().arrayBuffers };
  const parsers = Array.from({ length: claims }, () => new FrameParser({ buffers, onFrame: () => {} }));
  for (const parser of parsers) t.equal(parser.push(Buffer.concat([claim, Buffer.alloc(1_000)])), undefined);
  const reserved = process.memoryUsage().arrayBuffers - before.reserved;
  const resident = residentBytes(process.pid) - before.resident;
  // Garbage from before may be freed meanwhile.
  t.ok(reserved > (claims / 2) * LIMITS.linkPayloadBytes, `${Math.round(reserved / 2 ** 20)} MiB are reserved`);
  t.ok(resident < LIMITS.linkPayloadBytes / 2, `${Math.round(resident / 2 ** 20)} MiB of them are there`);
  for (const parser of parsers) parser.close();
});

t.test("closing gives the buffer of a partial payload back, and onFrame may close", async (t) => {
  const buffers = new BufferPool();
  const payload = new Uint8Array(100_000);
  const stream = bytesOf({ kind: "message", sequence: 1, body: {}, payload });
  const partial = new FrameParser({ buffers, onFrame: () => t.fail("not whole") });
  partial.push(stream.subarray(0, 90_000));
  t.equal(buffers.keptBytes, 0);
  partial.close();
  t.equal(buffers.keptBytes, 131_072);
  partial.close();
  t.equal(buffers.keptBytes, 131_072, "once");
  t.equal(partial.push(stream), undefined);

  let frames = 0;
  const closing = new FrameParser({
    buffers,
    onFrame() {
      frames++;
      closing.close();
    },
  });
  closing.push(Buffer.concat([bytesOf({ kind: "ping", sequence: 1 }), bytesOf({ kind: "ping", sequence: 2 })]));
  t.equal(frames, 1);
});

t.test("a stream that is held stands still before a payload, at any cut, and goes on whole", async (t) => {
  const frames: FrameToSend[] = [
    { kind: "message", sequence: 1, body: { type: "a" } },
    { kind: "message", sequence: 2, body: { type: "b" }, payload: new Uint8Array(10).fill(2) },
    { kind: "message", sequence: 3, body: { type: "c" } },
    { kind: "message", sequence: 4, body: { type: "d" }, payload: new Uint8Array(3).fill(4) },
    { kind: "ping", sequence: 5 },
  ];
  const stream = Buffer.concat(frames.flatMap((frame) => encodeFrame(frame)));
  let wrong = 0;
  let held = 0;
  for (let heldFrom = 0; heldFrom <= stream.length; heldFrom++) {
    for (const cut of [1, 7, 30, stream.length]) {
      let mayTake = true;
      const seen: [number, number][] = [];
      const parser = new FrameParser({
        onFrame: ({ sequence, payload }) => {
          if (payload.length > 0 && !mayTake) wrong++;
          seen.push([sequence, payload.reduce((sum, byte) => sum + byte, 0)]);
        },
        buffers: new BufferPool(0),
        payloadRoom: (lengthBytes, filledBytes) => (mayTake ? Math.min(lengthBytes, 2 * filledBytes + 1) : filledBytes),
        mayDeliverPayload: () => mayTake,
      });
      for (let at = 0; at < stream.length; at += cut) {
        if (at + cut > heldFrom) mayTake = false;
        if (parser.push(stream.subarray(at, at + cut)) !== undefined) wrong++;
      }
      if (parser.isHeld) held++;
      if (parser.proceed() !== undefined || (parser.isHeld && seen.some(([sequence]) => sequence === 5))) wrong++;
      mayTake = true;
      parser.proceed();
      if (parser.isHeld || JSON.stringify(seen) !== "[[1,0],[2,20],[3,0],[4,12],[5,0]]") wrong++;
    }
  }
  t.equal(wrong, 0);
  t.ok(held > 100, `${held} held`);
});
