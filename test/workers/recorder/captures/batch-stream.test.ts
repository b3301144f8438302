import t from "tap";
import { createRandom } from "../../../../core/random.js";
import { BufferPool } from "../../../../workers/buffer-pool.js";
import { BatchStream } from "../../../../workers/recorder/captures/batch-stream.js";

const KIB = 1024;

t.test("memory that was given back serves the next batch of its capacity, and large gives way to small", async (t) => {
  const taken: ArrayBuffer[] = [];
  const stream = new BatchStream({ send: (_, memory) => taken.push(memory), onBehind() {} });
  const batch = { segmentBase: 1, offset: 0, firstSequence: 1, lastSequence: 1, lastTimeUs: 1 };
  const send = (lengthBytes: number): ArrayBuffer => {
    stream.send({ ...batch, bytes: new Uint8Array(lengthBytes) });
    return taken.at(-1) as ArrayBuffer;
  };
  const first = send(40 * KIB);
  t.equal(first.byteLength, 64 * KIB);
  stream.taken(first);
  t.not(send(10 * KIB), first, "not for a much smaller one");
  t.equal(send(60 * KIB), first);
  t.not(send(60 * KIB), first, "it is taken");

  for (const large of Array.from({ length: 20 }, () => send(1_000_000))) stream.taken(large);
  const buffers = new Set<ArrayBuffer>();
  for (let nth = 0; nth < 1_000; nth++) {
    const memory = send(300 + 60 * nth);
    buffers.add(memory);
    stream.taken(memory);
  }
  t.ok(buffers.size < 20, `${buffers.size} buffers for 1,000 batches`);
});

t.test("a pool keeps no more than its bound, the newest, and nothing that it did not make", async (t) => {
  const pool = new BufferPool(4 * KIB, () => KIB);
  const many = Array.from({ length: 6 }, () => pool.take(10));
  for (const one of many) pool.release(one);
  t.equal(pool.keptBytes, 4 * KIB);
  pool.release(new Uint8Array(0));
  pool.release(new Uint8Array(2 * KIB));
  t.equal(pool.keptBytes, 4 * KIB);
  t.equal(pool.take(20).buffer, many[5]?.buffer);
  t.equal(pool.keptBytes, 3 * KIB);
});

t.test("a pool without memory gives up what it keeps, and then says so", async (t) => {
  const pool = new BufferPool(KIB, (lengthBytes) => (lengthBytes > KIB ? Number.MAX_SAFE_INTEGER : KIB));
  pool.release(pool.take(1));
  t.throws(() => pool.take(2 * KIB), RangeError);
  t.equal(pool.keptBytes, 0);
});

t.test("what is ahead of the front is counted by the memory that it holds", async (t) => {
  const sent: ArrayBuffer[] = [];
  const told: boolean[] = [];
  const stream = new BatchStream({
    send: (_, memory) => sent.push(memory),
    onBehind: (isBehind) => told.push(isBehind),
  });
  const batch = { segmentBase: 1, offset: 0, firstSequence: 1, lastSequence: 1, lastTimeUs: 1 };
  while (!stream.isBehind) stream.send({ ...batch, bytes: new Uint8Array(300) });
  t.equal(
    stream.aheadBytes,
    sent.reduce((sum, { byteLength }) => sum + byteLength, 0),
  );
  t.ok(stream.aheadBytes < 33 * 1024 * KIB, `${stream.aheadBytes} bytes`);
  for (const memory of sent) stream.taken(memory);
  t.same(told, [true, false]);
  t.equal(stream.aheadBytes, 0);
});

t.test("a hint is sent in its own memory, which carries no other batch later", async (t) => {
  const sent: ArrayBuffer[] = [];
  const stream = new BatchStream({ send: (_, memory) => sent.push(memory), onBehind() {} });
  const batch = { segmentBase: 1, offset: 0, firstSequence: 1, lastSequence: 1, lastTimeUs: 1 };
  const hint = new Uint8Array(5 * KIB);
  stream.send({ ...batch, bytes: hint, isHint: true });
  t.equal(sent[0], hint.buffer);
  t.equal(stream.aheadBytes, 5 * KIB);
  stream.taken(hint.buffer);
  t.equal(stream.aheadBytes, 0);
  stream.send({ ...batch, bytes: new Uint8Array(6 * KIB) });
  t.equal(sent[1]?.byteLength, 8 * KIB);
});

const seed = Number(process.env.TEST_SEED ?? 20_261_124);
t.test(
  `batches on their way share no memory, and each is whole, whatever came back before, seed ${seed}`,
  async (t) => {
    const random = createRandom(seed);
    const sent: { bytes: Uint8Array; fill: number; memory: ArrayBuffer }[] = [];
    const stream = new BatchStream({
      send: ({ bytes }, memory) => sent.push({ bytes, memory, fill: bytes[0] as number }),
      onBehind() {},
    });
    const buffers = new Set<ArrayBuffer>();
    for (let i = 0; i < 3_000; i++) {
      if (sent.length > 0 && random.integer(0, 1) === 1) {
        const { bytes, memory, fill } = sent.splice(random.integer(0, sent.length - 1), 1)[0] as (typeof sent)[number];
        if (!bytes.every((byte) => byte === fill)) t.fail("a batch changed on its way");
        stream.taken(memory);
      }
      const bytes = new Uint8Array(random.integer(1, 1 << random.integer(4, 18))).fill(i & 255);
      stream.send({ bytes, segmentBase: 1, offset: 0, firstSequence: i, lastSequence: i, lastTimeUs: i });
      const last = sent.at(-1) as (typeof sent)[number];
      t.equal(last.bytes.length, bytes.length);
      t.notOk(sent.slice(0, -1).some(({ memory }) => memory === last.memory));
      buffers.add(last.memory);
    }
    t.ok(buffers.size < 2_000, `${buffers.size} buffers for 3,000 batches`);
  },
);
