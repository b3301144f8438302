import t from "tap";
import { MadePieces, type Piece } from "../../../http/downloads/made-pieces.js";

/** Something that is made when the test says so. */
function pending() {
  const seen = { calls: 0, unwanted: false };
  let resolve: (piece: Piece) => void = () => {};
  let reject: (error: Error) => void = () => {};
  const make = (signal: AbortSignal) => {
    seen.calls++;
    signal.addEventListener("abort", () => {
      seen.unwanted = true;
    });
    return new Promise<Piece>((...both) => {
      [resolve, reject] = both;
    });
  };
  return { make, seen, done: (bytes: Uint8Array) => resolve({ bytes }), failed: (error: Error) => reject(error) };
}

const same = (bytes: Uint8Array): Uint8Array => bytes;
const never = () => Promise.reject(new Error("made again"));
const KEPT_BYTES = 10_000;

t.test("a piece that several clients want is made once, and kept for the next", async (t) => {
  const pieces = new MadePieces(KEPT_BYTES);
  const { make, seen, done } = pending();
  const gone = new AbortController();
  const waiting = [
    pieces.get("a", make, same),
    pieces.get("a", never, same, gone.signal),
    pieces.get("a", never, same),
  ];
  gone.abort();
  await t.rejects(waiting[1] as Promise<unknown>, { name: "AbortError" });
  t.notOk(seen.unwanted, "others still wait");
  const bytes = new Uint8Array(100);
  done(bytes);
  t.equal(await waiting[0], bytes);
  t.equal(await waiting[2], bytes);
  t.equal(await pieces.get("a", never, same), bytes);
  t.equal(seen.calls, 1);
});

t.test("a piece that nobody waits for any more is not made; who comes then starts anew", async (t) => {
  const pieces = new MadePieces(KEPT_BYTES);
  const first = pending();
  const gone = [new AbortController(), new AbortController()];
  const waiting = gone.map(({ signal }) =>
    t.rejects(pieces.get("a", first.make, same, signal), { name: "AbortError" }),
  );
  gone[0]?.abort();
  t.notOk(first.seen.unwanted);
  gone[1]?.abort();
  await Promise.all(waiting);
  t.ok(first.seen.unwanted);
  t.equal(first.seen.calls, 1);
  const second = pending();
  const again = pieces.get("a", second.make, same);
  first.failed(new Error("nobody waits"));
  second.done(new Uint8Array(1));
  t.equal((await again).length, 1);
  await t.rejects(pieces.get("b", second.make, same, AbortSignal.abort()), { name: "AbortError" });
});

t.test("a failure is that of all who wait, and of none who come after", async (t) => {
  const pieces = new MadePieces(KEPT_BYTES);
  const { make, failed } = pending();
  const waiting = [pieces.get("a", make, same), pieces.get("a", never, same)];
  failed(new Error("no thread"));
  for (const one of waiting) await t.rejects(one, /no thread/);
  t.equal((await pieces.get("a", async () => ({ bytes: new Uint8Array(3) }), same)).length, 3);
});

t.test("what is kept has a bound", async (t) => {
  const pieces = new MadePieces(KEPT_BYTES);
  const piece = async () => ({ bytes: new Uint8Array(2500) });
  for (const key of ["a", "b", "c"]) await pieces.get(key, piece, same);
  t.ok(pieces.keptBytes <= KEPT_BYTES && pieces.keptBytes > 6000, `${pieces.keptBytes}`);
  await pieces.get("a", never, same);
  await pieces.get("d", piece, same);
  await pieces.get("a", never, same);
  await t.rejects(pieces.get("b", never, same), /made again/, "what was read longest ago goes first");
  await pieces.get("e", async () => ({ bytes: new Uint8Array(KEPT_BYTES) }), same);
  await pieces.get("a", never, same);
  await t.rejects(pieces.get("e", never, same), /made again/, "what is larger than all of it is not kept");
});

/** A piece that notes when its memory is given back. */
function holding(lengthBytes: number) {
  const seen = { released: 0 };
  const piece: Piece = { bytes: new Uint8Array(10), heldBytes: lengthBytes, release: () => seen.released++ };
  return { piece, seen };
}

t.test("a piece is given back when it is neither kept nor read, once", async (t) => {
  const pieces = new MadePieces(KEPT_BYTES);
  const [first, second, large] = [holding(6000), holding(6000), holding(2 * KEPT_BYTES)];
  await pieces.get("a", async () => first.piece, same);
  t.equal(first.seen.released, 0, "it is kept");
  t.ok(pieces.keptBytes > 6000, "by what it holds");
  await pieces.get("b", async () => second.piece, same);
  t.equal(first.seen.released, 1, "another came in its place");
  const seenReleased: number[] = [];
  const use = () => seenReleased.push(large.seen.released);
  const wanted = new Promise<Piece>((resolve) => setImmediate(() => resolve(large.piece)));
  await Promise.all([pieces.get("c", () => wanted, use), pieces.get("c", never, use)]);
  t.same(seenReleased, [0, 0], "all who wait have read it before");
  t.equal(large.seen.released, 1, "what is too large to be kept too");
  t.equal(second.seen.released, 0);
});

t.test("a piece that comes when everybody has gone is given back where it cannot be kept, and else kept", async (t) => {
  const pieces = new MadePieces(KEPT_BYTES);
  for (const lengthBytes of [2 * KEPT_BYTES, 100]) {
    const { piece, seen } = holding(lengthBytes);
    const gone = new AbortController();
    let resolve: (piece: Piece) => void = () => {};
    const making = new Promise<Piece>((done) => {
      resolve = done;
    });
    const waiting = t.rejects(
      pieces.get("a", () => making, same, gone.signal),
      { name: "AbortError" },
    );
    gone.abort();
    await waiting;
    resolve(piece);
    await making;
    await new Promise((settled) => setImmediate(settled));
    t.equal(seen.released, lengthBytes > KEPT_BYTES ? 1 : 0);
  }
  t.equal((await pieces.get("a", never, same)).length, 10);
});

t.test("a reader that fails gives back what is not kept", async (t) => {
  const { piece, seen } = holding(2 * KEPT_BYTES);
  const fail = () => {
    throw new Error("too short");
  };
  await t.rejects(
    new MadePieces(KEPT_BYTES).get("a", async () => piece, fail),
    /too short/,
  );
  t.equal(seen.released, 1);
});
