import t from "tap";
import { LIMITS } from "../../../core/limits.js";
import { DeliveryDocuments } from "../../../http/documents/delivery-documents.js";
import { ThreadSlices } from "../../../http/documents/thread-slices.js";
import type { View } from "../../../storage/view/view.js";
import { PATIENT } from "../../helpers/http/patient-client.js";
import { until } from "../../helpers/until.js";

const LARGE_BYTES = 16 * 1024 * 1024;

/** A view with one delivery of one run, whose reads the test ends. */
function readView(runBytes: number) {
  const reads: (() => void)[] = [];
  const begun: string[] = [];
  const row = { id: "d", runId: "r", location: { length: 100 } };
  const read = (what: string, result: unknown) => {
    begun.push(what);
    return new Promise((resolve) => reads.push(() => resolve(result)));
  };
  const view = {
    deliveries: {
      version: 0,
      row: () => row,
      search: (_: string, __: unknown, limit: number) => ({
        next: () => ({ done: true, value: new Array(limit).fill(row) }),
      }),
    },
    documentBytes: () => runBytes,
    delivery: (id: string) =>
      read(id, {
        delivery: { id, nextRetryAtUs: null, deliveredAtUs: null, createdAtUs: 0, updatedAtUs: 0 },
        payload: "{}",
        history: [],
      }),
    listDeliveries: () => read("w", [Buffer.from('"w"'), Buffer.from("2")]),
  };
  const next = async () => {
    await until("a read has begun", () => reads.length > 0);
    reads.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { view, begun, next, documents: new DeliveryDocuments(view as unknown as View, new ThreadSlices()) };
}

t.test("answers that need a large record are made one after the other, each once for all who ask", async (t) => {
  const { view, begun, next, documents } = readView(LARGE_BYTES);
  const [a, b] = [documents.detail("a", PATIENT), documents.detail("a", PATIENT)];
  const c = documents.page("w", {}, 50, PATIENT);
  const gone = new AbortController();
  const left = documents.detail("left", { gone: () => gone.signal });
  gone.abort();
  await t.rejects(left, /nobody waits/);
  t.same(begun, ["a", "w"], "pages do not wait for single ones");
  await next();
  t.equal(await a, await b);
  await next();
  t.equal(Buffer.from((await c).body as Uint8Array).toString(), '["w",2]');
  t.same(begun, ["a", "w"], "nothing is read for a client that is gone");

  const before = documents.detail("a", PATIENT);
  view.deliveries.version++;
  const after = documents.detail("a", PATIENT);
  await next();
  await next();
  t.not(await before, await after, "made anew after a change");
});

t.test("answers beyond the bound are refused; a page counts as what it may have at most", async (t) => {
  const { next, documents } = readView(LARGE_BYTES);
  const pages = 256 / (LIMITS.deliveriesPageBytes / 1024 / 1024);
  const asked = Array.from({ length: pages }, (_, at) => documents.page(`w${at}`, {}, 200, PATIENT));
  await t.rejects(documents.page("one more", {}, 200, PATIENT), /too many large answers/);
  for (const page of asked) {
    await next();
    t.equal((await page).status, 200);
  }
});

t.test("the answer after a retry does not wait, and is not refused, when there is too much other work", async (t) => {
  const { begun, next, documents } = readView(LARGE_BYTES);
  const asked = Array.from({ length: 15 }, (_, at) => documents.detail(`d${at}`, PATIENT));
  await t.rejects(documents.detail("one more", PATIENT), /too many large answers/);
  const written = documents.read("written");
  t.same(begun, ["d0", "written"]);
  for (let nth = 0; nth < 16; nth++) await next();
  t.equal((await written).status, 200);
  await Promise.all(asked);
});

t.test("small answers do not wait for large ones", async (t) => {
  const { begun, next, documents } = readView(2_000);
  const asked = [documents.detail("a", PATIENT), documents.page("w", {}, 50, PATIENT)];
  t.same(begun, ["a", "w"]);
  await next();
  await next();
  await Promise.all(asked);
});
