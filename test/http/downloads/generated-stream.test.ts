import t from "tap";
import { createRandom } from "../../../core/random.js";
import { generatedStream } from "../../../http/downloads/generated-stream.js";
import { conditionalReply } from "../../../http/replies/conditional-reply.js";
import { downloadReply, type StreamBody } from "../../../http/replies/reply.js";
import { RequestHeaders } from "../../../http/requests/request-headers.js";

const seed = Number(process.env.TEST_SEED ?? 20_261_126);
t.comment(`TEST_SEED=${seed}`);
const random = createRandom(seed);

/** A body of pieces of random lengths, some empty, and all its bytes. */
function randomBody() {
  const head = random.bytes(random.integer(0, 40));
  const lengths = Array.from({ length: random.integer(0, 12) }, () => (random.chance(0.3) ? 0 : random.integer(1, 90)));
  const pieces = lengths.map((length) => random.bytes(length));
  let end = head.length;
  const ends = Float64Array.from(lengths, (length) => (end += length));
  const asked: { nth: number; isContinued: boolean }[] = [];
  const body = generatedStream({
    head,
    ends,
    piece: async (nth, { isContinued }) => {
      asked.push({ nth, isContinued });
      return pieces[nth] as Uint8Array;
    },
  });
  return { body, whole: Buffer.concat([head, ...pieces]), pieces, asked };
}

async function readAll(body: StreamBody): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for (let position = 0; position < body.totalBytes; ) {
    const length = Math.min(random.integer(1, 60), body.totalBytes - position);
    const into = random.chance(0.5) ? new Uint8Array(length + random.integer(0, 9)) : undefined;
    const part = await body.read(position, length, undefined, into);
    if (part.length < 1 || part.length > length) throw new Error(`${part.length} bytes of ${length}`);
    parts.push(part);
    position += part.length;
  }
  return Buffer.concat(parts);
}

t.test("any bytes of any range are those of the whole, and only pieces that it touches are made", async (t) => {
  for (let round = 0; round < 300; round++) {
    const { body, whole, pieces, asked } = randomBody();
    t.equal(body.totalBytes, whole.length);
    const first = random.integer(0, whole.length + 2);
    const last = random.integer(0, whole.length + 2);
    const headers = new RequestHeaders();
    headers.add("range", `bytes=${first}-${last}`);
    if (first >= whole.length && first <= last) continue;
    const reply = conditionalReply(downloadReply(body, "x/y", "a"), "GET", headers);
    const expected = reply.status === 206 ? whole.subarray(first, last + 1) : whole;
    const got = await readAll(reply.body as StreamBody);
    if (!got.equals(expected)) t.fail(`${reply.status} ${first}-${last} of ${whole.length}`);
    if (asked.some(({ nth }) => pieces[nth]?.length === 0)) t.fail("an empty piece was asked for");
    t.same(
      asked.map(({ isContinued }) => isContinued),
      asked.map((_, at) => at > 0),
    );
    if (reply.status !== 206) continue;
    let end = whole.length - pieces.reduce((sum, { length }) => sum + length, 0);
    const touched = pieces.flatMap(({ length }, nth) => {
      const start = end;
      end += length;
      return length > 0 && start <= last && end > first ? [nth] : [];
    });
    const made = new Set(asked.map(({ nth }) => nth));
    t.same(
      touched.filter((nth) => !made.has(nth)),
      [],
      `${first}-${last}: all that it touches`,
    );
    const ahead = [...made].filter((nth) => !touched.includes(nth));
    t.ok(ahead.length <= 1, `${first}-${last}: one piece ahead at most`);
    for (const nth of ahead) t.equal(nth, (touched.at(-1) as number) + 1);
  }
});

t.test("whoever goes on to a second piece finds the next begun, and leaves nothing behind", async (t) => {
  const asked: number[] = [];
  const signals: (AbortSignal | undefined)[] = [];
  const body = generatedStream({
    head: new Uint8Array(0),
    ends: Float64Array.of(10, 20, 30, 40),
    piece: async (nth, { signal }) => {
      asked.push(nth);
      signals.push(signal);
      return new Uint8Array(10);
    },
  });
  await body.read(0, 10);
  t.same(asked, [0], "one piece may be all");
  await body.read(10, 5);
  t.same(asked, [0, 1, 2]);
  await body.read(15, 5);
  t.same(asked, [0, 1, 2, 1], "the same piece begins nothing again");
  t.notOk(signals[2]?.aborted);
  body.release();
  t.ok(signals[2]?.aborted, "nobody waits for it any more");
  await body.read(30, 10);
  t.same(asked.slice(4), [3], "after the last there is none");
});

t.test("the head goes out with the first piece: what fails is known before anything is sent", async (t) => {
  const head = Buffer.from("head");
  const body = generatedStream({
    head,
    ends: Float64Array.of(10),
    piece: () => Promise.reject(new Error("no thread")),
  });
  await t.rejects(body.read(0, 100), /no thread/);
  t.equal(Buffer.from(await body.read(1, 2)).toString(), "ea", "but for a range within it");
  const empty = generatedStream({ head, ends: new Float64Array(0), piece: () => Promise.reject(new Error("none")) });
  t.equal(empty.totalBytes, 4);
  t.equal((await empty.read(0, 4)).length, 4);
});

t.test("what a client holds is no part of a piece that others keep, and lies where it wants it", async (t) => {
  const piece = new Uint8Array(100).fill(7);
  const options = { head: Buffer.from("head"), ends: Float64Array.of(104) };
  const body = generatedStream({ ...options, piece: async () => piece });
  t.not((await body.read(10, 20)).buffer, piece.buffer);
  const into = new Uint8Array(64);
  const part = await body.read(2, 50, undefined, into);
  t.equal(part.buffer, into.buffer);
  t.equal(part.length, 50);
  t.equal(Buffer.from(part).toString("latin1"), `ad${"\u0007".repeat(48)}`);
});
