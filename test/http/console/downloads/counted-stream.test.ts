import t from "tap";
import { countedStream } from "../../../../http/console/downloads/counted-stream.js";

/** A stream of chunks of ten bytes, which says how many of them have been taken. */
function chunks(count: number) {
  const taken = { chunks: 0, isCancelled: false };
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      pull(controller) {
        if (taken.chunks === count) return controller.close();
        controller.enqueue(new Uint8Array(10).fill(taken.chunks++));
      },
      cancel() {
        taken.isCancelled = true;
      },
    },
    { highWaterMark: 0 },
  );
  return { body, taken };
}

t.test("the bytes come through, and are counted", async (t) => {
  const seen: number[] = [];
  const stream = countedStream(chunks(3).body, (readBytes) => seen.push(readBytes));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  t.same(
    [...bytes],
    [0, 1, 2].flatMap((value) => Array(10).fill(value)),
  );
  t.same(seen, [10, 20, 30]);
});

t.test("with more bytes than are allowed, no more are taken", async (t) => {
  const error = new Error("too large");
  const exact = countedStream(chunks(5).body, () => {}, { bytes: 50, error });
  t.equal((await new Response(exact).arrayBuffer()).byteLength, 50);
  const { body, taken } = chunks(1_000_000);
  const stream = countedStream(body, () => {}, { bytes: 49, error });
  await t.rejects(new Response(stream).blob(), { message: "too large" });
  t.ok(taken.isCancelled);
  t.ok(taken.chunks < 10, `${taken.chunks} chunks`);
});
