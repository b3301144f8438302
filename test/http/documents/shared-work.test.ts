import t from "tap";
import { SharedWork, type Slices } from "../../../http/documents/shared-work.js";
import { ThreadSlices } from "../../../http/documents/thread-slices.js";
import { until } from "../../helpers/http/handler-server.js";

/** Refused, or dropped. */
const UNAVAILABLE = /too many large answers|nobody waits/;

/** Work that ends when the test says so. */
function handMade() {
  const begun: { key: string; slices: Slices; end(result: string): void; fail(error: Error): void }[] = [];
  const make = (key: string) => (slices: Slices) =>
    new Promise<string>((end, fail) => {
      begun.push({ key, slices, end, fail });
    });
  return { begun, make };
}

const client = () => new AbortController();

t.test("work is done once for all who ask meanwhile, one after the other", async (t) => {
  const work = new SharedWork(new ThreadSlices());
  const { begun, make } = handMade();
  const get = (key: string) => work.get(key, 10, client().signal, make(key));
  const [a, second, b] = [get("a"), get("a"), get("b")];
  t.same(
    begun.map(({ key }) => key),
    ["a"],
  );
  t.equal(work.bytes, 20);
  begun[0]?.end("of a");
  t.same([await a, await second], ["of a", "of a"]);
  begun[1]?.fail(new Error("of b"));
  await t.rejects(b, /of b/);
  t.equal(work.bytes, 0);
  const again = get("a");
  begun[2]?.end("anew");
  t.equal(await again, "anew", "nothing is kept here");
});

t.test("beyond the bound it is refused, but what is being made already has no further cost", async (t) => {
  const work = new SharedWork(new ThreadSlices(), 100);
  const { begun, make } = handMade();
  const get = (key: string, bytes: number) => work.get(key, bytes, client().signal, make(key));
  const huge = get("huge", 5_000);
  await t.rejects(get("a", 1), /too many large answers/);
  const same = get("huge", 5_000);
  begun[0]?.end("alone");
  t.same([await huge, await same], ["alone", "alone"]);
  const others = [get("a", 60), get("b", 40)];
  await t.rejects(get("c", 1), UNAVAILABLE);
  begun[1]?.end("");
  await others[0];
  begun[2]?.end("");
  await others[1];
  t.equal(work.bytes, 0);
});

t.test("work for which nobody waits any more is not begun, or ends at its next turn", async (t) => {
  const work = new SharedWork(new ThreadSlices());
  const { begun, make } = handMade();
  const clients = [client(), client(), client()] as const;
  const [first, waiting, other] = clients.map(({ signal }, at) =>
    work.get(at < 2 ? `${at}` : "1", 10, signal, make(`${at}`)),
  );
  clients[1].abort();
  await t.rejects(waiting as Promise<string>, UNAVAILABLE);
  t.equal(work.bytes, 20, "another client waits for the same");
  clients[2].abort();
  await t.rejects(other as Promise<string>, UNAVAILABLE);
  t.equal(work.bytes, 10, "nobody does");
  begun[0]?.slices.throwIfCancelled();
  clients[0].abort();
  await t.rejects(first as Promise<string>, UNAVAILABLE);
  t.throws(() => begun[0]?.slices.throwIfCancelled(), UNAVAILABLE);
  const anew = work.get("0", 10, client().signal, make("anew"));
  t.equal(begun.length, 1, "it waits for what is under way");
  begun[0]?.fail(new Error("it has ended"));
  await until(() => begun.length === 2);
  begun[1]?.end("made");
  t.equal(await anew, "made");
  const gone = client();
  gone.abort();
  await t.rejects(work.get("a", 10, gone.signal, make("a")), UNAVAILABLE);
  t.equal(work.bytes, 0);
});

t.test("however much work there is, the thread has its slices in between", async (t) => {
  const slices = new ThreadSlices();
  let running = 20;
  const pieces = async (): Promise<void> => {
    for (let piece = 0; piece < 20; piece++) {
      const endMs = performance.now() + 0.5;
      while (performance.now() < endMs);
      await slices.giveWay();
    }
    running--;
  };
  for (let nth = 0; nth < 20; nth++) void pieces();
  let rounds = 0;
  while (running > 0) {
    await new Promise((resolve) => setImmediate(resolve));
    rounds++;
  }
  // 200 ms of work, a slice of 1 ms and what one piece is over it in each turn, beside the first pieces.
  t.ok(rounds > 80, `${rounds} slices`);
});
