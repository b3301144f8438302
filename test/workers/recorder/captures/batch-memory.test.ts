import t from "tap";
import { createRandom } from "../../../../core/random.js";
import { BatchMemory } from "../../../../workers/recorder/captures/batch-memory.js";
import { BatchStream } from "../../../../workers/recorder/captures/batch-stream.js";

const KIB = 1024;

t.test("memory that was given back serves the next batch that is not much smaller", async (t) => {
  const memory = new BatchMemory();
  const first = memory.copyOf(new Uint8Array(40 * KIB).fill(7));
  t.equal(first.buffer.byteLength, 64 * KIB);
  t.ok(first.every((byte) => byte === 7));
  memory.giveBack(first.buffer);
  t.equal(memory.keptBytes, 64 * KIB);
  const second = memory.copyOf(new Uint8Array(10 * KIB).fill(1));
  t.equal(second.buffer, first.buffer);
  t.equal(second.length, 10 * KIB);
  t.equal(memory.keptBytes, 0);
  t.not(memory.copyOf(new Uint8Array(10 * KIB)).buffer, first.buffer, "it is taken");

  const large = memory.copyOf(new Uint8Array(1024 * KIB)).buffer;
  memory.giveBack(large);
  t.not(memory.copyOf(new Uint8Array(100)).buffer, large, "not for a small one");
  t.equal(memory.copyOf(new Uint8Array(200 * KIB)).buffer, large, "within four times its capacity");
});

t.test("of memory that fits the smallest is taken, and no more is kept than the bound", async (t) => {
  const memory = new BatchMemory();
  const buffers = [128, 16, 64, 32].map((kib) => memory.copyOf(new Uint8Array(kib * KIB)).buffer);
  for (const buffer of buffers) memory.giveBack(buffer);
  t.equal(memory.copyOf(new Uint8Array(20 * KIB)).buffer, buffers[3]);
  const many = Array.from({ length: 20 }, () => memory.copyOf(new Uint8Array(1024 * KIB)).buffer);
  for (const buffer of many) memory.giveBack(buffer);
  t.ok(memory.keptBytes <= 8 * 1024 * KIB, `${memory.keptBytes} bytes`);
  t.ok(memory.keptBytes > 7 * 1024 * KIB, `${memory.keptBytes} bytes`);
  memory.giveBack(new ArrayBuffer(0));
  t.equal(memory.copyOf(new Uint8Array(1)).length, 1, "what holds nothing is not kept");
});

t.test(
  "large memory that nobody needs gives way to small: large batches of an opening, then small ones for good",
  async (t) => {
    const memory = new BatchMemory();
    const large = Array.from({ length: 20 }, () => memory.copyOf(new Uint8Array(1_000_000)).buffer);
    for (const buffer of large) memory.giveBack(buffer);
    const buffers = new Set<ArrayBuffer>();
    for (let nth = 0; nth < 1_000; nth++) {
      const { buffer } = memory.copyOf(new Uint8Array(300 + 60 * nth));
      buffers.add(buffer);
      memory.giveBack(buffer);
    }
    t.ok(buffers.size < 20, `${buffers.size} buffers for 1,000 batches`);
    memory.giveBack(new ArrayBuffer(1024 * KIB));
    t.ok(memory.keptBytes <= 8 * 1024 * KIB, `${memory.keptBytes} bytes`);
  },
);

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
