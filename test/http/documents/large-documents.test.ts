import t from "tap";
import { generateUuidV7 } from "../../../core/identifiers.js";
import type { RunChange } from "../../../core/link/change.js";
import { createRandom } from "../../../core/random.js";
import { jsonInSlices } from "../../../http/documents/json-in-slices.js";
import { LargeDocuments } from "../../../http/documents/large-documents.js";
import type { Slices } from "../../../http/documents/shared-work.js";
import type { Reply } from "../../../http/replies/reply.js";
import { RUN_DOCUMENT_KINDS, runDocument, withoutFindings } from "../../../workers/documents/run-documents.js";
import { RecordedCell } from "../../helpers/captures/recorded-cell.js";
import { FRONTS_HERE } from "../../helpers/http/fronts-here.js";
import { newWork, PATIENT } from "../../helpers/http/patient-client.js";
import { rawRequest } from "../../helpers/http/raw-http.js";
import { PROGRAM_ID } from "../../helpers/link/link-messages.js";
import { randomText, randomValue } from "../../helpers/random-values.js";
import { deliveriesOf } from "../../helpers/webhooks/delivery-records.js";
import { EVENT, SECRETS, WEBHOOK } from "../../helpers/webhooks/webhook-fixtures.js";

/** Refused, or dropped. */
const UNAVAILABLE = /too many large answers|nobody waits/;

const BASE_URL = "http://cell:8000";
const CREATED_US = 1_780_000_000_000_000;
const MIB = 1024 * 1024;
const seed = Number(process.env.TEST_SEED ?? 20_261_126);
const random = createRandom(seed);

let timeUs = CREATED_US;
let lastId: string | null = null;

/** A run with findings of so many bytes. */
function createRun(cell: RecordedCell, findingsBytes: number): string {
  const runId = generateUuidV7(++timeUs / 1000, new Uint8Array(10), lastId);
  lastId = runId;
  const fields = { programId: PROGRAM_ID, programName: "Weld seam", robotId: null, serialNumber: "A", revision: 1 };
  const step = { type: "cl_sweep" as const, name: randomText(random), params: { a: 1 } };
  cell.apply(timeUs, { kind: "run_created", runId, ...fields, metadata: { a: 1 }, traceId: null, steps: [step] });
  const event = {
    ...EVENT,
    id: `${runId.slice(0, 24)}0e0e${runId.slice(28)}`,
    name: "ProgramStarted" as const,
    timeUs,
  };
  const deliveries = [
    { id: `${runId.slice(0, 24)}d0d0${runId.slice(28)}`, webhookId: WEBHOOK.id, onFailureMode: "WARN" as const },
  ];
  cell.apply(++timeUs, { kind: "run_started", runId, event: { ...event, deliveries } });
  for (let bytes = 0; bytes < findingsBytes; bytes += 25_000) cell.apply(++timeUs, ...findings(runId));
  return runId;
}

/** Findings of some 25,000 bytes. */
function findings(runId: string): RunChange[] {
  const text = () => randomText(random) + "x".repeat(random.integer(0, 1_000));
  return Array.from({ length: 12 }, (): RunChange[] => [
    { kind: "defect_added", runId, defect: { type: "scratch", description: text(), metadata: { a: [text()] } } },
    { kind: "check_added", runId, check: { name: text(), status: "passed", value: random.next() } },
    { kind: "event_added", runId, entry: { timestampUs: null, eventType: "note", data: { text: text() } } },
  ]).flat();
}

function end(cell: RecordedCell, runId: string): void {
  cell.end(++timeUs, runId, { status: "cancelled", errorMessage: null, notes: [] });
}

function largeDocuments(cell: RecordedCell, limitBytes?: number, keptBytes = 64 * MIB) {
  const { work } = newWork(limitBytes);
  const onStrayError = (error: Error): void => {
    throw error;
  };
  return {
    work,
    large: new LargeDocuments({ view: cell.view, work, keptBytes, keptRunBytes: keptBytes, onStrayError }),
  };
}

const text = (reply: Reply | undefined) => Buffer.from(reply?.body as Uint8Array).toString();
const NO_SLICES: Slices = { giveWay: () => undefined, throwIfCancelled() {} };

t.test(`JSON in slices is what JSON.stringify writes (seed ${seed})`, async (t) => {
  for (let round = 0; round < 300; round++) {
    const value = randomValue(random, 5) ?? null;
    const { bytes } = await jsonInSlices(value, NO_SLICES);
    if (Buffer.from(bytes).toString() !== JSON.stringify(value)) t.fail(JSON.stringify(value));
  }
  const value = { a: undefined, b: [undefined, 1, []], c: {}, d: { e: { f: { g: { h: [{}] } } } } };
  t.equal(Buffer.from((await jsonInSlices(value, NO_SLICES)).bytes).toString(), JSON.stringify(value));
});

t.test(`every large document is what the run's state says, before its end and after (seed ${seed})`, async (t) => {
  const cell = new RecordedCell();
  cell.applyWebhook(timeUs, { kind: "webhook_put", webhook: WEBHOOK, secrets: SECRETS });
  const { large } = largeDocuments(cell);
  t.teardown(() => large.close());
  const id = createRun(cell, 400_000);
  t.ok(large.has(id));
  t.notOk(large.has(createRun(cell, 20_000)), "most runs are small");
  for (const isEnded of [false, true]) {
    if (isEnded) end(cell, id);
    const state = cell.state(id);
    const named = (await cell.view.deliveriesOfRun(state)).map((delivery) => ({ delivery, webhookName: WEBHOOK.name }));
    t.equal(named.length, 1);
    for (const kind of RUN_DOCUMENT_KINDS) {
      const reply = await large.get(kind, id, BASE_URL, PATIENT);
      const hasDeliveries = kind === "detail" || kind === "active";
      const expected = JSON.stringify(runDocument(kind, state, BASE_URL, hasDeliveries ? named : []));
      t.ok(text(reply) === expected, `${kind}, ${isEnded ? "ended" : "running"}`);
      t.equal(large.get(kind, id, BASE_URL, PATIENT), reply, "at hand from then on");
    }
    t.strictSame(await large.run(id, PATIENT), isEnded ? withoutFindings(state) : state);
  }
  const unknown = generateUuidV7(CREATED_US / 1000 - 1, new Uint8Array(10), null);
  t.equal(large.get("detail", unknown, BASE_URL, PATIENT), undefined);
  t.equal(await large.run(unknown, PATIENT), undefined);
});

t.test("what changes while a document of a running run is made is in it whole or not at all", async (t) => {
  const cell = new RecordedCell();
  const { large } = largeDocuments(cell);
  const id = createRun(cell, 2_000_000);
  const before = JSON.stringify(runDocument("quality-report", cell.state(id), BASE_URL, []));
  const made = large.get("quality-report", id, BASE_URL, PATIENT) as Promise<Reply>;
  for (let turn = 0; turn < 3; turn++) {
    await new Promise((resolve) => setImmediate(resolve));
    cell.apply(++timeUs, ...findings(id));
  }
  t.ok(text(await made) === before, "as it was asked for");
  const after = JSON.stringify(runDocument("quality-report", cell.state(id), BASE_URL, []));
  t.ok(text(await large.get("quality-report", id, BASE_URL, PATIENT)) === after, "and as it is");
});

t.test("documents of many runs are refused beyond the bound, and those whose clients leave are not made", async (t) => {
  const cell = new RecordedCell();
  const { large, work } = largeDocuments(cell, 700_000);
  t.teardown(() => large.close());
  const ids = Array.from({ length: 4 }, () => createRun(cell, 250_000));
  for (const id of ids) end(cell, id);
  const clients = ids.map(() => new AbortController());
  const asked = ids.map(
    async (id, at) => (await large.get("defects", id, BASE_URL, { gone: () => clients[at]!.signal }))?.status,
  );
  await t.rejects(asked[3] as Promise<unknown>, /too many large answers/);
  await t.rejects(asked[2] as Promise<unknown>, UNAVAILABLE);
  clients[1]?.abort();
  await t.rejects(asked[1] as Promise<unknown>, UNAVAILABLE);
  t.equal(await asked[0], 200);
  t.equal(work.bytes, 0);
  t.equal(cell.reads, 1, "one record was read");
});

t.test("a page of deliveries for which nobody waits any more is not read further", async (t) => {
  const cell = new RecordedCell();
  cell.applyWebhook(timeUs, { kind: "webhook_put", webhook: WEBHOOK, secrets: SECRETS });
  for (let nth = 0; nth < 9; nth++) end(cell, createRun(cell, 0));
  const toBytes = () => new Uint8Array(1);
  const rows = deliveriesOf(cell.view.deliveries, WEBHOOK.id, null, 9);
  t.equal((await cell.view.listDeliveries(rows, toBytes)).length, 9);
  cell.reads = 0;
  const throwIfCancelled = (): void => {
    if (cell.reads > 0) throw new Error("nobody waits");
  };
  await t.rejects(cell.view.listDeliveries(rows, toBytes, throwIfCancelled), /nobody waits/);
  t.equal(cell.reads, 4, "those that are read together");
});

const GET = (path: string, method: string) => `${method} ${path} HTTP/1.1\r\nHost: cell:8000\r\n\r\n`;

for (const { name, front, uwsPackage } of FRONTS_HERE) {
  t.test(`many clients ask for one large document, by GET and HEAD, and it is made once (${name})`, async (t) => {
    const cell = new RecordedCell();
    const port = await cell.listenFor(t, { front, ...(uwsPackage !== undefined && { uwsPackage }) });
    const id = createRun(cell, 3_000_000);
    end(cell, id);
    const state = cell.state(id);
    for (const kind of ["quality-report", "defects", "files"] as const) {
      const expected = JSON.stringify(runDocument(kind, state, BASE_URL, []));
      cell.reads = 0;
      const answers = await Promise.all(
        Array.from({ length: 60 }, async (_, at) => {
          const method = at % 3 === 0 ? "HEAD" : "GET";
          const answer = await rawRequest(port, GET(`/runs/${id}/${kind}`, method), method);
          return { method, answer };
        }),
      );
      for (const { method, answer } of answers) {
        if (answer?.status !== 200) t.fail(`${answer?.status} for ${method}`);
        if (answer?.headers["content-length"] !== String(Buffer.byteLength(expected))) t.fail(`length by ${method}`);
        if (method === "GET" && answer?.body.toString() !== expected) t.fail("another document");
      }
      t.equal(cell.reads, 1, kind);
    }
  });

  t.test(`a large page of runs is what the small pages of it are (${name})`, async (t) => {
    const cell = new RecordedCell();
    const port = await cell.listenFor(t, { front, ...(uwsPackage !== undefined && { uwsPackage }) });
    for (let nth = 0; nth < 20; nth++) end(cell, createRun(cell, 300_000));
    createRun(cell, 300_000);
    const list = async (query: string) => {
      const answer = await rawRequest(port, GET(`/runs?${query}`, "GET"));
      return { headers: answer?.headers, ...(answer?.json() as { runs: { id: string }[]; total: number }) };
    };
    const [large, same] = await Promise.all([list("limit=100"), list("limit=100")]);
    t.equal(large.total, 21);
    t.equal(large.runs.length, 21);
    t.strictSame(same.runs, large.runs);
    const small = [];
    for (let offset = 0; offset < 21; offset += 3) small.push(...(await list(`limit=3&offset=${offset}`)).runs);
    t.strictSame(large.runs, small);
    t.equal((await list("limit=100")).headers?.etag, large.headers?.etag);
  });
}
