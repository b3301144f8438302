import { gunzipSync } from "node:zlib";
import t from "tap";
import { createRandom } from "../../../core/random.js";
import { compressedReply, keptBytes } from "../../../http/replies/compressed-reply.js";
import { jsonBytesReply, type Reply } from "../../../http/replies/reply.js";

const json = (length: number) => Buffer.from(JSON.stringify("abcdefgh".repeat(length / 8)));
const bytesOf = ({ body }: Reply) => body as Uint8Array;

t.test("a kept reply is compressed once, also for those who ask meanwhile", async (t) => {
  const reply = jsonBytesReply(json(40_000), true);
  const [first, second] = await Promise.all([compressedReply(reply), compressedReply(reply)]);
  t.equal(first, second, "asked for while it was made");
  t.equal(compressedReply(reply), first, "at once when it was made");
  t.same(gunzipSync(bytesOf(first as Reply)), bytesOf(reply));
  const other = jsonBytesReply(json(40_000));
  t.not(await compressedReply(other), await compressedReply(other), "of what is not kept nothing is");
});

t.test("a kept form is in memory of its own, and within what is counted for it", async (t) => {
  for (const length of [2_048, 8_000, 100_000, 1_000_000]) {
    const reply = jsonBytesReply(json(length), true);
    const body = bytesOf(await compressedReply(reply));
    t.equal(body.buffer.byteLength, body.byteLength, `of ${length} bytes`);
    t.ok(bytesOf(reply).byteLength + body.byteLength < keptBytes(reply));
  }
  const small = jsonBytesReply(Buffer.from('"a"'), true);
  t.equal(keptBytes(small), 3, "what is too small to be compressed counts as it is");
});

t.test("a form that is larger than what is counted for it is given, and not kept", async (t) => {
  const random = createRandom(1);
  const text = Array.from({ length: 100_000 }, () => String.fromCharCode(random.integer(35, 91))).join("");
  const reply = jsonBytesReply(Buffer.from(JSON.stringify(text)), true);
  const form = await compressedReply(reply);
  t.same(gunzipSync(bytesOf(form)), bytesOf(reply));
  t.equal(reply.compressed, undefined);
  t.notOk(form.isKept);
});

t.test("a failure is told to all who wait, and the next one who asks is served", async (t) => {
  const reply = jsonBytesReply(json(40_000), true);
  const { body } = reply;
  reply.body = { byteLength: 40_002 } as Uint8Array;
  const both = await Promise.allSettled([compressedReply(reply), compressedReply(reply)]);
  t.same(
    both.map(({ status }) => status),
    ["rejected", "rejected"],
  );
  reply.body = body;
  t.same(gunzipSync(bytesOf(await compressedReply(reply))), body);
});
