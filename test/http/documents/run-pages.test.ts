import t from "tap";
import { generateUuidV7 } from "../../../core/identifiers.js";
import { createRandom } from "../../../core/random.js";
import type { ServiceError } from "../../../core/service-errors.js";
import { RunPages } from "../../../http/documents/run-pages.js";
import { ThreadSlices } from "../../../http/documents/thread-slices.js";
import type { Reply } from "../../../http/replies/reply.js";
import type { HandlerRequest } from "../../../http/requests/route.js";
import type { RunListQuery, View } from "../../../storage/view/view.js";
import { RecordedCell } from "../../helpers/captures/recorded-cell.js";
import { PATIENT } from "../../helpers/http/patient-client.js";
import { PROGRAM_ID } from "../../helpers/link/link-messages.js";
import { until } from "../../helpers/until.js";

const BASE_URL = "http://cell:8000";
const CREATED_US = 1_780_000_000_000_000;
const CACHE_BYTES = 1024 * 1024;
const seed = Number(process.env.TEST_SEED ?? 20_261_122);

function newPages(view: View, cacheBytes: number): RunPages {
  return new RunPages(view, cacheBytes, new ThreadSlices());
}

const text = ({ body }: Reply) => Buffer.from(body as Uint8Array).toString();

t.test(`pages that are kept are those that would be made anew, whatever changed (seed ${seed})`, async (t) => {
  const random = createRandom(seed);
  const cell = new RecordedCell();
  const pages = newPages(cell.view, CACHE_BYTES);
  const ids: string[] = [];
  let timeUs = CREATED_US;
  const change = (): void => {
    timeUs++;
    const id = ids.at(-1);
    const run = id === undefined ? undefined : cell.state(id);
    if (id === undefined || run === undefined || run.status === "cancelled") {
      const runId = generateUuidV7(timeUs / 1000, new Uint8Array(10), id ?? null);
      ids.push(runId);
      cell.apply(timeUs, {
        kind: "run_created",
        runId,
        programId: PROGRAM_ID,
        programName: "Weld seam",
        robotId: null,
        serialNumber: random.pick(["A", "B"]),
        revision: 1,
        metadata: null,
        traceId: null,
        steps: [],
      });
    } else if (run.status === "pending") cell.apply(timeUs, { kind: "run_started", runId: id });
    else cell.end(timeUs, id, { status: "cancelled", errorMessage: null, notes: [] });
  };
  const queries = Array.from(
    { length: 20 },
    (): RunListQuery => ({
      programId: random.pick([undefined, PROGRAM_ID, "x"]),
      status: random.pick([undefined, "running", "cancelled"]),
      serialNumber: random.pick([undefined, "A"]),
      updatedSinceUs: random.pick([undefined, CREATED_US, CREATED_US + 20]),
      offset: random.integer(0, 2),
      limit: random.integer(1, 3),
    }),
  );
  let kept = 0;
  for (let round = 0; round < 1_000; round++) {
    if (random.chance(0.05)) change();
    const query = random.pick(queries);
    const baseUrl = random.pick([BASE_URL, "http://other"]);
    const found = pages.get(query, baseUrl, PATIENT);
    if (!(found instanceof Promise)) kept++;
    const fresh = await newPages(cell.view, 1).get(query, baseUrl, PATIENT);
    if (text(await found) !== text(fresh)) t.fail(`${JSON.stringify(query)}: ${text(await found)}, not ${text(fresh)}`);
  }
  t.ok(kept > 50, `${kept} of 1000 were at hand`);
});

/** A view whose lists the test answers. */
function answeredView() {
  const asked: { query: RunListQuery; answer: (entry: string, isWhole?: boolean) => void }[] = [];
  const view = {
    fold: { runsVersion: 0 },
    pageBytes: 100,
    runPage: (query: RunListQuery) => ({
      total: 1,
      unreadBytes: view.pageBytes,
      knownBytes: 0,
      read: () =>
        new Promise((resolve) => {
          const answer = (entry: string, isWhole = true) =>
            resolve({ runs: [Buffer.from(JSON.stringify(entry))], isWhole });
          asked.push({ query, answer });
        }),
    }),
  };
  return { asked, view, pages: newPages(view as unknown as View, CACHE_BYTES) };
}

t.test("a page is made once for all who ask while nothing changes, and never shown after a change", async (t) => {
  const { asked, view, pages } = answeredView();
  const query = { offset: 0, limit: 1 };
  const together = [pages.get(query, BASE_URL, PATIENT), pages.get(query, BASE_URL, PATIENT)];
  t.equal(asked.length, 1);
  view.fold.runsVersion++;
  const later = pages.get(query, BASE_URL, PATIENT);
  t.equal(asked.length, 2, "who asks after the change gets no page of before it, not even one under way");
  asked[1]?.answer("new");
  t.match(text(await later), "new");
  asked[0]?.answer("old");
  t.equal(await together[0], await together[1]);
  t.match(text((await together[0]) as never), "old");
  const kept = pages.get(query, BASE_URL, PATIENT);
  t.match(kept, { isKept: true });
  t.match(text(kept as never), "new", "a page that was late is not kept");
});

t.test("a page with an entry that could not be read is made anew", async (t) => {
  const { asked, pages } = answeredView();
  const query = { offset: 0, limit: 1 };
  const damaged = pages.get(query, BASE_URL, PATIENT);
  asked[0]?.answer("damaged", false);
  t.match(text(await damaged), "damaged");
  const second = pages.get(query, BASE_URL, PATIENT);
  asked[1]?.answer("whole");
  t.match(text(await second), "whole");
});

t.test("pages of many clients are made one after the other, bounded, and not for a client that is gone", async (t) => {
  const { asked, view, pages } = answeredView();
  const answers: string[] = [];
  const ask = (offset: number, client: Pick<HandlerRequest, "gone"> = PATIENT) =>
    Promise.resolve(pages.get({ offset, limit: 1_000 }, BASE_URL, client)).then(
      (reply) => answers.push(text(reply)),
      ({ data }: ServiceError) => answers.push(data.code),
    );
  view.pageBytes = 1024 * 1024;
  const gone = new AbortController();
  const all = Array.from({ length: 300 }, (_, at) => ask(at, at === 1 ? { gone: () => gone.signal } : PATIENT));
  view.pageBytes = 100 * 1024 * 1024;
  const vast = ask(1_000);
  view.pageBytes = 100;
  const small = ask(2_000);
  const offsets = () => asked.map(({ query }) => query.offset);
  t.same(offsets(), [0, 1_000, 2_000], "one of each size");
  asked[1]?.answer("vast");
  asked[2]?.answer("small");
  await Promise.all([vast, small]);
  t.same(answers.filter((answer) => answer === "unavailable").length, 300 - 256, "256 MiB wait");
  gone.abort();
  asked[0]?.answer("first");
  await all[0];
  await until("four are asked for", () => asked.length >= 4);
  t.same(offsets().slice(3), [2], "the next that somebody waits for");
});

t.test("no two queries share a page", async (t) => {
  const { asked, pages } = answeredView();
  const page = { offset: 0, limit: 1 };
  const queries: [RunListQuery, string][] = [
    [page, "h"],
    [{ ...page, offset: 1 }, "h"],
    [{ ...page, limit: 10 }, "h"],
    [{ ...page, updatedSinceUs: 1 }, "h"],
    [page, "hh"],
    [{ ...page, programId: "ab" }, "h"],
    [{ ...page, status: "ab" }, "h"],
    [{ ...page, serialNumber: "ab" }, "h"],
    [{ ...page, programId: "a", status: "b" }, "h"],
    [{ ...page, programId: "a", serialNumber: "b" }, "h"],
    [{ ...page, status: "a", serialNumber: "b" }, "h"],
    [{ ...page, serialNumber: "abh" }, ""],
    [{ ...page, serialNumber: "" }, "h"],
    [{ ...page, serialNumber: " 2 " }, "h"],
  ];
  for (const [query, baseUrl] of queries) {
    const made = pages.get(query, baseUrl, PATIENT);
    asked.at(-1)?.answer(String(asked.length));
    await made;
  }
  t.equal(asked.length, queries.length);
  for (const [at, [query, baseUrl]] of queries.entries())
    t.match(text(await pages.get(query, baseUrl, PATIENT)), `"${at + 1}"`);
  t.equal(asked.length, queries.length, "all of them were at hand");
});
