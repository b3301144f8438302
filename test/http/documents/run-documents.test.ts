import t from "tap";
import { generateUuidV7 } from "../../../core/identifiers.js";
import { createRandom } from "../../../core/random.js";
import type { Delivery } from "../../../core/webhook/delivery.js";
import type { EmittedEvent } from "../../../core/webhook/emitted-event.js";
import type { WebhookChange } from "../../../core/webhook/webhook-change.js";
import { RunDocuments } from "../../../http/documents/run-documents.js";
import { compressedReply } from "../../../http/replies/compressed-reply.js";
import type { Reply } from "../../../http/replies/reply.js";
import { RecordedCell } from "../../helpers/captures/recorded-cell.js";
import { PATIENT } from "../../helpers/http/patient-client.js";
import { PROGRAM_ID } from "../../helpers/link/link-messages.js";
import { heldBytes } from "../../helpers/process/held-memory.js";
import { EVENT, failedDelivery, SECRETS, WEBHOOK } from "../../helpers/webhooks/webhook-fixtures.js";

const BASE_URL = "http://cell:8000";
const CREATED_US = 1_780_000_000_000_000;
const seed = Number(process.env.TEST_SEED ?? 20_261_122);

const createRun = (
  cell: RecordedCell,
  timeUs: number,
  after: string | null,
  metadata: Record<string, string> | null = null,
): string => {
  const runId = generateUuidV7(timeUs / 1000, new Uint8Array(10), after);
  cell.apply(timeUs, {
    kind: "run_created",
    runId,
    programId: PROGRAM_ID,
    programName: "Weld seam",
    robotId: null,
    serialNumber: null,
    revision: 1,
    metadata,
    traceId: null,
    steps: [],
  });
  return runId;
};

t.test(
  "a run's document is made once for all who ask between two changes, also before the run has ended",
  async (t) => {
    const cell = new RecordedCell();
    const documents = new RunDocuments(cell.view, 1024 * 1024);
    const id = createRun(cell, CREATED_US, null);
    const text = (reply: Reply | undefined) => JSON.parse(Buffer.from(reply?.body as Uint8Array).toString());
    const [first, second] = await Promise.all([
      documents.get(id, BASE_URL, PATIENT),
      documents.get(id, BASE_URL, PATIENT),
    ]);
    t.equal(text(first).status, "pending");
    t.equal(first, second, "asked for while it was made");
    t.equal(documents.get(id, BASE_URL, PATIENT), first, "at once when it was made");
    t.not(await documents.get(id, "http://other", PATIENT), first, "another base address has another document");

    cell.apply(CREATED_US + 1, { kind: "run_started", runId: id });
    const started = await documents.get(id, BASE_URL, PATIENT);
    t.equal(text(started).status, "running");
    cell.end(CREATED_US + 2, id, { status: "cancelled", errorMessage: null, notes: [] });
    const [ended, same] = await Promise.all([
      documents.get(id, BASE_URL, PATIENT),
      documents.get(id, BASE_URL, PATIENT),
    ]);
    t.equal(text(ended).status, "cancelled");
    t.equal(ended, same);
    t.equal(documents.get(generateUuidV7(CREATED_US / 1000, new Uint8Array(10), id), BASE_URL, PATIENT), undefined);
  },
);

t.test(`documents that are kept are those that would be made anew, for any address (seed ${seed})`, async (t) => {
  const random = createRandom(seed);
  const cell = new RecordedCell();
  const documents = new RunDocuments(cell.view, 1024 * 1024);
  const addresses = Array.from({ length: 6 }, (_, nth) => `http://cell:${nth}`);
  const ids: string[] = [];
  let timeUs = CREATED_US;
  const change = (): void => {
    timeUs++;
    const id = ids.length === 0 || random.chance(0.3) ? undefined : random.pick(ids);
    const status = id === undefined ? undefined : cell.state(id)?.status;
    if (id === undefined) ids.push(createRun(cell, timeUs, ids.at(-1) ?? null));
    else if (status === "pending") cell.apply(timeUs, { kind: "run_started", runId: id, event: emitted(timeUs) });
    else if (status === "running" && random.chance(0.5)) {
      cell.end(timeUs, id, { status: "cancelled", errorMessage: null, notes: [] });
    } else if (random.chance(0.3)) {
      const webhook = { ...WEBHOOK, name: random.pick(["MES", "PLC", "ERP"]), updatedAtUs: timeUs };
      cell.applyWebhook(timeUs, { kind: "webhook_put", webhook, secrets: SECRETS });
    } else cell.applyWebhook(timeUs, deliveryPut(id, timeUs));
  };
  const emitted = (timeUs: number): EmittedEvent => {
    const id = generateUuidV7(timeUs / 1000, new Uint8Array(10).fill(timeUs & 0xff), null);
    const deliveries = [{ id: `${id.slice(0, -4)}d0d0`, webhookId: WEBHOOK.id, onFailureMode: "WARN" as const }];
    return { ...EVENT, id, name: "ProgramStarted", timeUs, deliveries };
  };
  /** The run's delivery after a further attempt. */
  const deliveryPut = (runId: string, timeUs: number): WebhookChange => {
    const [event] = cell.state(runId).emitted as [EmittedEvent];
    const attempted: Delivery = {
      ...failedDelivery(runId),
      ...{ id: event.deliveries[0]?.id as string, eventId: event.id, eventName: event.name },
      ...{ attempts: random.integer(1, 9), createdAtUs: event.timeUs, updatedAtUs: timeUs },
      firstFailure: { atUs: timeUs, statusCode: 503, error: "busy", webhookName: null },
    };
    return { kind: "delivery_put", delivery: attempted, history: [], payload: null };
  };
  cell.applyWebhook(timeUs, { kind: "webhook_put", webhook: WEBHOOK, secrets: SECRETS });
  change();
  let kept = 0;
  for (let round = 0; round < 2_000; round++) {
    if (random.chance(0.1)) change();
    const [id, address] = [random.pick(ids.slice(-3)), random.pick(addresses)];
    const found = documents.get(id, address, PATIENT);
    if (!(found instanceof Promise)) kept++;
    const fresh = await new RunDocuments(cell.view, 1).get(id, address, PATIENT);
    const [shown, expected] = [await found, fresh].map((reply) => Buffer.from(reply?.body as Uint8Array).toString());
    if (shown !== expected) t.fail(`${id} at ${address}: ${shown}, not ${expected}`);
  }
  t.ok(kept > 300, `${kept} of 2000 were at hand`);
});

t.test("documents with their compressed forms are no more than the bound", async (t) => {
  const cell = new RecordedCell();
  const random = createRandom(seed);
  const cacheBytes = 512 * 1024;
  const documents = new RunDocuments(cell.view, cacheBytes);
  const ids: string[] = [];
  for (let nth = 0; nth < 100; nth++) {
    // Random hex digits, which compress to half their size.
    const text = Array.from({ length: 8_000 }, () => random.integer(0, 15).toString(16)).join("");
    ids.push(createRun(cell, CREATED_US + nth, ids.at(-1) ?? null, { text }));
  }
  for (const id of ids) await compressedReply((await documents.get(id, BASE_URL, PATIENT)) as Reply);
  let [bytes, kept] = [0, 0];
  // Newest first: a document that is not at hand is made anew, and others give way to it.
  for (const id of ids.toReversed()) {
    const document = documents.get(id, BASE_URL, PATIENT);
    if (document === undefined || document instanceof Promise) break;
    const forms = [document, (await document.compressed) as Reply];
    for (const { body } of forms) bytes += (body as Uint8Array).buffer.byteLength;
    kept++;
  }
  t.ok(kept > 20 && bytes > cacheBytes / 2 && bytes <= cacheBytes, `${kept} documents in ${bytes} bytes`);
});

t.test("nothing of what a run was asked by is kept with its document", async (t) => {
  const cell = new RecordedCell();
  const documents = new RunDocuments(cell.view, 64 * 1024 * 1024);
  const ids: string[] = [];
  for (let nth = 0; nth < 500; nth++) ids.push(createRun(cell, CREATED_US + nth, ids.at(-1) ?? null));
  const before = heldBytes();
  // A part of a longer text, as servers cut it out of what came.
  for (const id of ids) await documents.get(`${id}${"x".repeat(20_000)}`.slice(0, id.length), BASE_URL, PATIENT);
  const grown = heldBytes() - before;
  t.ok(grown < 4_000_000, `${grown} bytes for 500 documents, asked for by 10 MB`);
});
