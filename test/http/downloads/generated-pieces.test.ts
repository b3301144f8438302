import t from "tap";
import { GeneratedPieces } from "../../../http/downloads/generated-pieces.js";

/** Something that is made when the test says so. */
function pending() {
  const seen = { calls: 0, unwanted: false };
  let resolve: (piece: Uint8Array) => void = () => {};
  let reject: (error: Error) => void = () => {};
  const make = (signal: AbortSignal) => {
    seen.calls++;
    signal.addEventListener("abort", () => {
      seen.unwanted = true;
    });
    return new Promise<Uint8Array>((...both) => {
      [resolve, reject] = both;
    });
  };
  return { make, seen, done: (bytes: Uint8Array) => resolve(bytes), failed: (error: Error) => reject(error) };
}

const never = () => Promise.reject(new Error("made again"));
const KEPT_BYTES = 10_000;

t.test("a piece that several clients want is made once, and kept for the next", async (t) => {
  const pieces = new GeneratedPieces(KEPT_BYTES);
  const { make, seen, done } = pending();
  const gone = new AbortController();
  const waiting = [pieces.get("a", make), pieces.get("a", never, gone.signal), pieces.get("a", never)];
  gone.abort();
  await t.rejects(waiting[1] as Promise<unknown>, { name: "AbortError" });
  t.notOk(seen.unwanted, "others still wait");
  const bytes = new Uint8Array(100);
  done(bytes);
  t.equal(await waiting[0], bytes);
  t.equal(await waiting[2], bytes);
  t.equal(await pieces.get("a", never), bytes);
  t.equal(seen.calls, 1);
});

t.test("a piece that nobody waits for any more is not made; who comes then starts anew", async (t) => {
  const pieces = new GeneratedPieces(KEPT_BYTES);
  const first = pending();
  const gone = [new AbortController(), new AbortController()];
  const waiting = gone.map(({ signal }) => t.rejects(pieces.get("a", first.make, signal), { name: "AbortError" }));
  gone[0]?.abort();
  t.notOk(first.seen.unwanted);
  gone[1]?.abort();
  await Promise.all(waiting);
  t.ok(first.seen.unwanted);
  t.equal(first.seen.calls, 1);
  const second = pending();
  const again = pieces.get("a", second.make);
  first.failed(new Error("nobody waits"));
  second.done(new Uint8Array(1));
  t.equal((await again).length, 1);
  await t.rejects(pieces.get("b", second.make, AbortSignal.abort()), { name: "AbortError" });
});

t.test("a failure is that of all who wait, and of none who come after", async (t) => {
  const pieces = new GeneratedPieces(KEPT_BYTES);
  const { make, failed } = pending();
  const waiting = [pieces.get("a", make), pieces.get("a", never)];
  failed(new Error("no thread"));
  for (const one of waiting) await t.rejects(one, /no thread/);
  t.equal((await pieces.get("a", async () => new Uint8Array(3))).length, 3);
});

t.test("what is kept has a bound", async (t) => {
  const pieces = new GeneratedPieces(KEPT_BYTES);
  const piece = async () => new Uint8Array(2500);
  for (const key of ["a", "b", "c"]) await pieces.get(key, piece);
  t.ok(pieces.keptBytes <= KEPT_BYTES && pieces.keptBytes > 6000, `${pieces.keptBytes}`);
  await pieces.get("a", never);
  await pieces.get("d", piece);
  await pieces.get("a", never);
  await t.rejects(pieces.get("b", never), /made again/, "what was read longest ago goes first");
  await pieces.get("e", async () => new Uint8Array(KEPT_BYTES));
  await pieces.get("a", never);
  await t.rejects(pieces.get("e", never), /made again/, "what is larger than all of it is not kept");
});

t.test("a piece that comes when everybody has gone is kept", async (t) => {
  const pieces = new GeneratedPieces(KEPT_BYTES);
  const { make, done } = pending();
  const gone = new AbortController();
  const waiting = t.rejects(pieces.get("a", make, gone.signal), { name: "AbortError" });
  gone.abort();
  await waiting;
  done(new Uint8Array(10));
  await new Promise((settled) => setImmediate(settled));
  t.equal((await pieces.get("a", never)).length, 10);
});
