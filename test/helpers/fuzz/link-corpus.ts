/** Streams of the cell link to fuzz from: whole sessions of a producer, and every breach of a frame's table. */
import { encode } from "@msgpack/msgpack";
import { LIMITS } from "../../../core/limits.js";
import { encodeFrame, FRAME_KIND, type FrameToSend } from "../../../workers/cell-link/frame-codec.js";
import { frameBegin, frameLines, LINE_BYTES, PROGRAM_ID, programPut, seriesAppend } from "../link/link-messages.js";
import { type CorpusEntry, corpusEntry } from "./fuzz-corpus.js";

export const RUN_ID = "019bb000-0000-7000-8000-00000000000a";
const FRAME_ID = "019bb000-0000-7000-8000-00000000000b";

export const HELLO: FrameToSend = { kind: "hello", sequence: 0, body: { protocol: 1, producer: "corpus" } };

/** A short run, frame by frame; message n has the number n. */
export const SESSION: readonly FrameToSend[] = [
  HELLO,
  ...(
    [
      [programPut()],
      [{ type: "run.create", id: RUN_ID, program_id: PROGRAM_ID, serial_number: "S", metadata: { a: "µ" } }],
      [{ type: "run.start", id: RUN_ID }],
      [frameBegin(FRAME_ID, RUN_ID)],
      [frameLines(FRAME_ID, 0, 2), new Uint8Array(2 * LINE_BYTES).fill(7)],
      [{ type: "frame.end", id: FRAME_ID }],
      [seriesAppend(RUN_ID), new Uint8Array(16).fill(1)],
      [{ type: "check.add", run_id: RUN_ID, check: { name: "gap", status: "failed", value: 1.5 } }],
      [{ type: "file.put", run_id: RUN_ID, name: "a.pdf", content_type: "a/b" }, Uint8Array.of(1, 2, 3)],
      [{ type: "event.add", run_id: RUN_ID, event_type: "e", data: { deep: [[[1]]] } }],
      [{ type: "run.finish", id: RUN_ID, results: { mean: 0.25 } }],
    ] as [object, Uint8Array?][]
  ).map(
    ([body, payload], at): FrameToSend => ({ kind: "message", sequence: at + 1, body, ...(payload && { payload }) }),
  ),
  { kind: "ping", sequence: 9 },
];

export function streamOf(frames: readonly FrameToSend[]): Uint8Array {
  return Buffer.concat(frames.flatMap((frame) => encodeFrame(frame)));
}

/** A frame with any bytes for a body. */
function framed(body: Uint8Array, payload = new Uint8Array(0)): Uint8Array {
  const bytes = Buffer.alloc(24 + Math.ceil(body.length / 8) * 8 + payload.length);
  bytes.set(streamOf([{ kind: "message", sequence: 1, body: {} }]).slice(0, 24));
  bytes.writeUInt32LE(body.length, 16);
  bytes.writeUInt32LE(payload.length, 20);
  bytes.set(body, 24);
  bytes.set(payload, bytes.length - payload.length);
  return bytes;
}

type Row<What> = readonly [name: string, about: string, what: What];

const SESSIONS: readonly Row<Uint8Array>[] = [
  ["session", "a producer's session: a short run", streamOf(SESSION)],
  [
    "answers",
    "what the service answers",
    streamOf([
      { kind: "welcome", sequence: 0, body: { committed: 2 ** 40, last_run_id: null } },
      { kind: "ack", sequence: 2 ** 53 - 1 },
      { kind: "refuse", sequence: 5, body: { code: "not_found", message: "no run", params: {} } },
      { kind: "pong", sequence: 1 },
    ]),
  ],
  ["twice", "each message twice", streamOf(SESSION.flatMap((frame) => [frame, frame]))],
  ["gap", "a message left out", streamOf(SESSION.filter((_, at) => at !== 3))],
  ["cut", "the end lies within a payload", streamOf(SESSION).slice(0, -40)],
  ["magic", "another protocol", Buffer.from("GET /runs HTTP/1.1\r\nHost: cell\r\n\r\n")],
];

/** A good frame with one field of its header changed. */
const CHANGED_HEADERS: readonly Row<(bytes: Buffer) => unknown>[] = [
  ["version", "version 2", (bytes) => bytes.writeUInt8(2, 4)],
  ["kind", "a kind that there is not", (bytes) => bytes.writeUInt8(8, 5)],
  ["reserved", "a reserved byte", (bytes) => bytes.writeUInt8(1, 7)],
  ["sequence", "a number above 2^53", (bytes) => bytes.writeUInt32LE(2 ** 21, 12)],
  [
    "body-length",
    "one byte of body more than is allowed",
    (bytes) => bytes.writeUInt32LE(LIMITS.linkBodyBytes + 1, 16),
  ],
  ["body-length-4-gib", "a body of 4 GiB", (bytes) => bytes.writeUInt32LE(2 ** 32 - 1, 16)],
  [
    "payload-length",
    "one byte of payload more than is allowed",
    (bytes) => bytes.writeUInt32LE(LIMITS.linkPayloadBytes + 1, 20),
  ],
  [
    "payload-length-most",
    "the largest payload, of which nothing comes",
    (bytes) => bytes.writeUInt32LE(LIMITS.linkPayloadBytes, 20),
  ],
  ["padding", "padding that is not zero", (bytes) => bytes.writeUInt8(1, bytes.length - 1)],
  ["ping-with-body", "a ping with a body", (bytes) => bytes.writeUInt8(FRAME_KIND.ping, 5)],
];

/** The body of a message. One of a single key begins with 0x81, 0xa1, 0x61: a map of one entry, whose key is "a". */
const BODIES: readonly Row<Uint8Array>[] = [
  ["body-empty", "a message without a body", new Uint8Array(0)],
  ["body-not-a-map", "a body that is an array", encode([1])],
  ["body-behind", "bytes behind the map", Buffer.concat([encode({ type: "run.start" }), Uint8Array.of(1)])],
  [
    "body-array-of-4-gib",
    "an array that claims 2^32 - 1 values",
    Uint8Array.of(0x81, 0xa1, 0x61, 0xdd, 255, 255, 255, 255),
  ],
  ["body-deep", "arrays within arrays", Uint8Array.of(0x81, 0xa1, 0x61, ...new Array(100).fill(0x91), 1)],
  ["body-twice", "a key twice", Uint8Array.of(0x82, 0xa1, 0x61, 1, 0xa1, 0x61, 2)],
  ["body-proto", "a key __proto__", Uint8Array.of(0x81, 0xa9, ...Buffer.from("__proto__"), 0x80)],
  ["body-number-key", "a key that is a number", Uint8Array.of(0x81, 1, 1)],
  ["body-utf8", "text that is not UTF-8", Uint8Array.of(0x81, 0xa1, 0xff, 1)],
  ["body-nan", "NaN", Uint8Array.of(0x81, 0xa1, 0x61, 0xca, 0x7f, 0xc0, 0, 0)],
  ["body-uint64", "2^64 - 1", Uint8Array.of(0x81, 0xa1, 0x61, 0xcf, 255, 255, 255, 255, 255, 255, 255, 255)],
  ["body-bin", "binary", Uint8Array.of(0x81, 0xa1, 0x61, 0xc4, 1, 1)],
  ["body-surrogate", "half of a pair of UTF-16, as UTF-8", Uint8Array.of(0x81, 0xa1, 0x61, 0xa3, 0xed, 0xa0, 0x80)],
  ["unknown-type", "a type of message that there is not", encode({ type: "run.explode" })],
  ["unknown-field", "a field that a message does not have", encode({ type: "run.start", id: RUN_ID, x: 1 })],
];

export function linkCorpus(): CorpusEntry[] {
  const good = streamOf([{ kind: "message", sequence: 1, body: { type: "run.start", id: RUN_ID } }]);
  const entry = (name: string, about: string, stream: Uint8Array): CorpusEntry => corpusEntry(name, about, { stream });
  const changed = (change: (bytes: Buffer) => unknown): Uint8Array => {
    const bytes = Buffer.from(good);
    change(bytes);
    return bytes;
  };
  const unasked = framed(encode({ type: "run.start", id: RUN_ID }), new Uint8Array(5));
  return [
    ...SESSIONS.map((row) => entry(...row)),
    ...CHANGED_HEADERS.map(([name, about, change]) => entry(name, about, changed(change))),
    ...BODIES.map(([name, about, body]) => entry(name, about, framed(body))),
    entry("payload-unasked", "a payload on a message that has none", unasked),
  ];
}
