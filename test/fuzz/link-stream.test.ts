import t from "tap";
import { parseCellMessage } from "../../core/link/parse-cell-message.js";
import { RefusedError } from "../../core/link/refusal.js";
import { createRandom, type Random } from "../../core/random.js";
import { BufferPool } from "../../workers/buffer-pool.js";
import { FrameParser, type FrameToSend } from "../../workers/cell-link/frame-codec.js";
import { decodeBody } from "../../workers/cell-link/strict-message-pack.js";
import { mutatedBytes } from "../helpers/fuzz/byte-mutators.js";
import { type CorpusEntry, checkCorpus, corpusEntry, textOf } from "../helpers/fuzz/fuzz-corpus.js";
import { HELLO, SESSION, streamOf } from "../helpers/fuzz/link-session.js";
import { RawProducer } from "../helpers/link/raw-producer.js";
import { RecorderHarness, temporaryDirectory } from "../helpers/recorder/recorder-harness.js";
import { sized } from "../helpers/test-size.js";

const seed = Number(process.env.TEST_SEED ?? 20261120);
const MUTANTS = sized(4_000, 1_000_000);
const SESSIONS = sized(60, 5_000);
const INSTANCES = ["0b8c1d2e-3f40-4152-8364-758697a8b9ca", "1b8c1d2e-3f40-4152-8364-758697a8b9ca"] as const;
const KEPT_BYTES = 1024 * 1024;

let corpus: CorpusEntry[] = [];

/** What a parser makes of a stream that comes in chunks of this size. */
function judged(stream: Uint8Array, chunkBytes: number, buffers = new BufferPool(0)) {
  const frames: unknown[] = [];
  const parser = new FrameParser({
    buffers,
    onFrame({ kind, sequence, body, payload }) {
      const frame = { kind, sequence, payload: Buffer.from(payload).toString("hex") };
      buffers.release(payload);
      frames.push(body.length === 0 && kind !== "message" ? frame : { ...frame, ...bodyOf(kind, body) });
    },
  });
  let fault = null;
  for (let at = 0; at < stream.length && fault === null; at += chunkBytes) {
    const lent = Buffer.from(stream.subarray(at, at + chunkBytes));
    fault = parser.push(lent) ?? null;
    // As with a socket's reused buffer.
    lent.fill(0xee);
  }
  parser.close();
  return { frames, fault: fault === null ? null : { code: fault.code, params: fault.params } };
}

/** All but the value in a fault: for a wrong magic, that is the bytes which have come by then. */
function outlineOf({ frames, fault }: ReturnType<typeof judged>): string {
  return JSON.stringify([frames, fault?.code, fault?.params.field]);
}

function bodyOf(kind: string, bytes: Uint8Array): { body: unknown } {
  const decoded = decodeBody(bytes);
  if (!decoded.ok) return { body: { fault: decoded.fault } };
  if (kind !== "message") return { body: decoded.body };
  try {
    return { body: { message: parseCellMessage(decoded.body).type } };
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    return { body: { refused: error.refusal.code, params: error.refusal.params } };
  }
}

t.test("the corpus of the link: which frames come of each stream, and where it is refused", async (t) => {
  const session = corpusEntry("session", "a producer's session: a short run", { stream: streamOf(SESSION) });
  corpus = await checkCorpus(t, "link", [session], ({ parts }) => {
    const stream = parts.get("stream") ?? new Uint8Array(0);
    const whole = judged(stream, stream.length);
    const outline = outlineOf(whole);
    t.equal(outlineOf(judged(stream, 1)), outline, "byte by byte it is the same", { diagnostic: false });
    // Large ones end within a payload whose body came with them.
    for (let chunkBytes = 2; chunkBytes < 400; chunkBytes += 3) {
      if (outlineOf(judged(stream, chunkBytes)) !== outline) t.fail(`in chunks of ${chunkBytes} bytes it is another`);
    }
    return whole;
  });
});

t.test(`mutants of the streams, seed ${seed}: frames or one fault, the same for any cut`, async (t) => {
  const random = createRandom(seed);
  const faults: string[] = [];
  const buffers = new BufferPool(KEPT_BYTES);
  const counts = { whole: 0, refused: 0, frames: 0 };
  const stream = ({ parts }: CorpusEntry): Uint8Array => parts.get("stream") ?? new Uint8Array(0);
  for (let mutant = 0; mutant < MUTANTS && faults.length < 3; mutant++) {
    const entry = random.pick(corpus);
    let bytes = stream(entry);
    const how: string[] = [];
    for (let edits = random.integer(1, 2); edits > 0; edits--) {
      const mutated = mutatedBytes(random, bytes, stream(random.pick(corpus)));
      bytes = mutated.bytes;
      how.push(mutated.how);
    }
    try {
      const whole = judged(bytes, bytes.length, buffers);
      if (mutant % 8 === 0 && outlineOf(judged(bytes, random.integer(1, 40))) !== outlineOf(whole)) {
        throw new Error("another cut gives something else");
      }
      if (buffers.keptBytes > KEPT_BYTES) throw new Error(`${buffers.keptBytes} bytes kept`);
      counts.frames += whole.frames.length;
      counts[whole.fault === null ? "whole" : "refused"]++;
    } catch (error) {
      const text = textOf({ about: `${entry.name}: ${how.join(", ")}`, parts: new Map([["stream", bytes]]) });
      faults.push(`${error instanceof Error ? error.stack : String(error)}\n${text}`);
    }
  }
  t.same(faults, []);
  t.ok(counts.refused > MUTANTS / 4 && counts.frames > MUTANTS, JSON.stringify(counts));
  t.comment(`${MUTANTS} mutants: ${JSON.stringify(counts)}, 0 faults`);
});

/** A session's messages with some of them repeated, left out, moved or numbered otherwise. */
function shuffled(random: Random, frames: readonly FrameToSend[]): FrameToSend[] {
  const result = frames.slice(1);
  for (let edits = random.integer(1, 4); edits > 0; edits--) {
    const at = random.integer(0, result.length - 1);
    const frame = result[at] as FrameToSend;
    const kind = random.integer(0, 3);
    if (kind === 0) result.splice(random.integer(0, result.length), 0, frame);
    else if (kind === 1) result.splice(at, 1);
    else if (kind === 2) result.splice(random.integer(0, result.length - 1), 0, ...result.splice(at, 1));
    else
      result[at] = { ...frame, sequence: random.pick([0, 1, Math.min(frame.sequence + 1, 2 ** 53 - 1), 2 ** 53 - 1]) };
  }
  return result;
}

t.test(
  `sessions whose messages are repeated, lost, moved and misnumbered: each number takes effect once, in order`,
  async (t) => {
    const random = createRandom(seed + 1);
    const recorder = await RecorderHarness.start(t, temporaryDirectory(t));
    const answers = new Map<string, number>();
    for (let session = 0; session < SESSIONS; session++) {
      const raw = new RawProducer(recorder.address);
      const instance = random.pick([...INSTANCES, INSTANCES[0], INSTANCES[0], undefined]);
      const hello = {
        ...HELLO,
        body: { protocol: 1, producer: `fuzz-${session % 20}`, ...(instance && { instance }) },
      };
      raw.write(streamOf([hello, ...shuffled(random, SESSION)]));
      raw.socket.end();
      for (const frame of await raw.rest()) {
        const name = frame.kind === "refuse" ? `refuse ${String(frame.body.code)}` : frame.kind;
        answers.set(name, (answers.get(name) ?? 0) + 1);
      }
    }
    const next = new Map<string, number>();
    let wrong = 0;
    for (const { producer, sequence } of recorder.origins) {
      if (sequence !== (next.get(producer) ?? 1)) wrong++;
      next.set(producer, sequence + 1);
    }
    t.equal(wrong, 0, "the sequence numbers that took effect have no gap, and none twice");
    t.strictSame(
      recorder.lines.filter(({ level }) => level === "error"),
      [],
    );
    t.ok((answers.get("refuse sequence_gap") ?? 0) > SESSIONS / 10, "gaps were among them");
    t.comment(
      `${SESSIONS} sessions, ${recorder.origins.length} records: ${JSON.stringify(Object.fromEntries(answers))}`,
    );
  },
);
