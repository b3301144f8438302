import t from "tap";
import { generateUuidV7 } from "../../core/identifiers.js";
import { createRandom } from "../../core/random.js";
import type { Reply } from "../../http/reply.js";
import { RunDocuments } from "../../http/run-documents.js";
import { PROGRAM_ID } from "../helpers/link-messages.js";
import { RecordedCell } from "../helpers/recorded-cell.js";

const BASE_URL = "http://cell:8000";
const CREATED_US = 1_780_000_000_000_000;
const seed = Number(process.env.TEST_SEED ?? 20_261_122);

const createRun = (cell: RecordedCell, timeUs: number, after: string | null): string => {
  const runId = generateUuidV7(timeUs / 1000, new Uint8Array(10), after);
  cell.apply(timeUs, {
    kind: "run_created",
    runId,
    programId: PROGRAM_ID,
    programName: "Weld seam",
    robotId: null,
    serialNumber: null,
    revision: 1,
    metadata: null,
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
    const [first, second] = await Promise.all([documents.get(id, BASE_URL), documents.get(id, BASE_URL)]);
    t.equal(text(first).status, "pending");
    t.equal(first, second, "asked for while it was made");
    t.equal(documents.get(id, BASE_URL), first, "at once when it was made");
    t.not(await documents.get(id, "http://other"), first, "another base address has another document");

    cell.apply(CREATED_US + 1, { kind: "run_started", runId: id });
    const started = await documents.get(id, BASE_URL);
    t.equal(text(started).status, "running");
    cell.end(CREATED_US + 2, id, { status: "cancelled", errorMessage: null, notes: [] });
    const [ended, same] = await Promise.all([documents.get(id, BASE_URL), documents.get(id, BASE_URL)]);
    t.equal(text(ended).status, "cancelled");
    t.equal(ended, same);
    t.equal(documents.get(generateUuidV7(CREATED_US / 1000, new Uint8Array(10), id), BASE_URL), undefined);
  },
);

t.test(`documents that are kept are those that would be made anew, for any address (seed ${seed})`, async (t) => {
  const random = createRandom(seed);
  const cell = new RecordedCell();
  const documents = new RunDocuments(cell.view, 1024 * 1024);
  // More than are kept of one run.
  const addresses = Array.from({ length: 6 }, (_, nth) => `http://cell:${nth}`);
  const ids: string[] = [];
  let timeUs = CREATED_US;
  const change = (): void => {
    timeUs++;
    const id = ids.length === 0 || random.chance(0.3) ? undefined : random.pick(ids);
    const status = id === undefined ? undefined : cell.state(id)?.status;
    if (id === undefined) ids.push(createRun(cell, timeUs, ids.at(-1) ?? null));
    else if (status === "pending") cell.apply(timeUs, { kind: "run_started", runId: id });
    else if (status === "running") {
      cell.end(timeUs, id, { status: "cancelled", errorMessage: null, notes: [] });
    }
  };
  change();
  let kept = 0;
  for (let round = 0; round < 2_000; round++) {
    if (random.chance(0.1)) change();
    const [id, address] = [random.pick(ids.slice(-3)), random.pick(addresses)];
    const found = documents.get(id, address);
    if (!(found instanceof Promise)) kept++;
    const fresh = await new RunDocuments(cell.view, 1).get(id, address);
    const [shown, expected] = [await found, fresh].map((reply) => Buffer.from(reply?.body as Uint8Array).toString());
    if (shown !== expected) t.fail(`${id} at ${address}: ${shown}, not ${expected}`);
  }
  t.ok(kept > 300, `${kept} of 2000 were at hand`);
});

t.test("of one run the documents of four addresses are kept; of a fifth one the oldest gives way", async (t) => {
  const cell = new RecordedCell();
  const documents = new RunDocuments(cell.view, 1024 * 1024);
  const id = createRun(cell, CREATED_US, null);
  const of = async (nth: number) => documents.get(id, `http://cell:${nth}`);
  const first = await of(0);
  for (const nth of [1, 2, 3]) await of(nth);
  t.equal(documents.get(id, "http://cell:0"), first);
  await of(4);
  t.not(await of(0), first);
});
