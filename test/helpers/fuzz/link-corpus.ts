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

export function linkCorpus(): CorpusEntry[] {
  const entries: CorpusEntry[] = [];
  const add = (name: string, about: string, stream: Uint8Array): void => {
    entries.push(corpusEntry(name, about, { stream }));
  };
  /** A frame with any bytes for a body. */
  const framed = (body: Uint8Array, payload = new Uint8Array(0)): Uint8Array => {
    const bytes = Buffer.alloc(24 + Math.ceil(body.length / 8) * 8 + payload.length);
    streamOf([{ kind: "message", sequence: 1, body: {} }])
      .slice(0, 24)
      .forEach((byte, at) => {
        bytes[at] = byte;
      });
    bytes.writeUInt32LE(body.length, 16);
    bytes.writeUInt32LE(payload.length, 20);
    bytes.set(body, 24);
    bytes.set(payload, bytes.length - payload.length);
    return bytes;
  };
  const good = streamOf([{ kind: "message", sequence: 1, body: { type: "run.start", id: RUN_ID } }]);
  const spoiled = (change: (bytes: Buffer) => unknown): Uint8Array => {
    const bytes = Buffer.from(good);
    change(bytes);
    return bytes;
  };
  add("session", "a producer's session: a short run", streamOf(SESSION));
  add(
    "answers",
    "what the service answers",
    streamOf([
      { kind: "welcome", sequence: 0, body: { committed: 2 ** 40, last_run_id: null } },
      { kind: "ack", sequence: 2 ** 53 - 1 },
      { kind: "refuse", sequence: 5, body: { code: "not_found", message: "no run", params: {} } },
      { kind: "pong", sequence: 1 },
    ]),
  );
  add("twice", "each message twice", streamOf(SESSION.flatMap((frame) => [frame, frame])));
  add("gap", "a message left out", streamOf(SESSION.filter((_, at) => at !== 3)));
  add("cut", "the end lies within a payload", streamOf(SESSION).slice(0, -40));
  add("magic", "another protocol", Buffer.from("GET /runs HTTP/1.1\r\nHost: cell\r\n\r\n"));
  add(
    "version",
    "version 2",
    spoiled((bytes) => bytes.writeUInt8(2, 4)),
  );
  add(
    "kind",
    "a kind that there is not",
    spoiled((bytes) => bytes.writeUInt8(8, 5)),
  );
  add(
    "reserved",
    "a reserved byte",
    spoiled((bytes) => bytes.writeUInt8(1, 7)),
  );
  add(
    "sequence",
    "a number above 2^53",
    spoiled((bytes) => bytes.writeUInt32LE(2 ** 21, 12)),
  );
  add(
    "body-length",
    "one byte of body more than is allowed",
    spoiled((bytes) => bytes.writeUInt32LE(LIMITS.linkBodyBytes + 1, 16)),
  );
  add(
    "body-length-4-gib",
    "a body of 4 GiB",
    spoiled((bytes) => bytes.writeUInt32LE(2 ** 32 - 1, 16)),
  );
  add(
    "payload-length",
    "one byte of payload more than is allowed",
    spoiled((bytes) => bytes.writeUInt32LE(LIMITS.linkPayloadBytes + 1, 20)),
  );
  add(
    "payload-length-most",
    "the largest payload, of which nothing comes",
    spoiled((bytes) => bytes.writeUInt32LE(LIMITS.linkPayloadBytes, 20)),
  );
  add(
    "padding",
    "padding that is not zero",
    spoiled((bytes) => bytes.writeUInt8(1, bytes.length - 1)),
  );
  add(
    "ping-with-body",
    "a ping with a body",
    spoiled((bytes) => bytes.writeUInt8(FRAME_KIND.ping, 5)),
  );
  add("body-empty", "a message without a body", framed(new Uint8Array(0)));
  add("body-not-a-map", "a body that is an array", framed(encode([1])));
  add("body-behind", "bytes behind the map", framed(Buffer.concat([encode({ type: "run.start" }), Uint8Array.of(1)])));
  add(
    "body-array-of-4-gib",
    "an array that claims 2^32 - 1 values",
    framed(Uint8Array.of(0x81, 0xa1, 0x61, 0xdd, 255, 255, 255, 255)),
  );
  add(
    "body-deep",
    "arrays within arrays",
    framed(Buffer.concat([Uint8Array.of(0x81, 0xa1, 0x61), new Uint8Array(100).fill(0x91), Uint8Array.of(1)])),
  );
  add("body-twice", "a key twice", framed(Uint8Array.of(0x82, 0xa1, 0x61, 1, 0xa1, 0x61, 2)));
  add(
    "body-proto",
    "a key __proto__",
    framed(Buffer.concat([Uint8Array.of(0x81, 0xa9), Buffer.from("__proto__"), Uint8Array.of(0x80)])),
  );
  add("body-number-key", "a key that is a number", framed(Uint8Array.of(0x81, 1, 1)));
  add("body-utf8", "text that is not UTF-8", framed(Uint8Array.of(0x81, 0xa1, 0xff, 1)));
  add("body-nan", "NaN", framed(Uint8Array.of(0x81, 0xa1, 0x61, 0xca, 0x7f, 0xc0, 0, 0)));
  add("body-uint64", "2^64 - 1", framed(Uint8Array.of(0x81, 0xa1, 0x61, 0xcf, 255, 255, 255, 255, 255, 255, 255, 255)));
  add("body-bin", "binary", framed(Uint8Array.of(0x81, 0xa1, 0x61, 0xc4, 1, 1)));
  add(
    "body-surrogate",
    "half of a pair of UTF-16, as UTF-8",
    framed(Uint8Array.of(0x81, 0xa1, 0x61, 0xa3, 0xed, 0xa0, 0x80)),
  );
  add("unknown-type", "a type of message that there is not", framed(encode({ type: "run.explode" })));
  add("unknown-field", "a field that a message does not have", framed(encode({ type: "run.start", id: RUN_ID, x: 1 })));
  add(
    "payload-unasked",
    "a payload on a message that has none",
    framed(encode({ type: "run.start", id: RUN_ID }), new Uint8Array(5)),
  );
  return entries;
}
