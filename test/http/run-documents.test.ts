import t from "tap";
import { generateUuidV7 } from "../../core/identifiers.js";
import type { Reply } from "../../http/reply.js";
import { RunDocuments } from "../../http/run-documents.js";
import { PROGRAM_ID } from "../helpers/link-messages.js";
import { RecordedCell } from "../helpers/recorded-cell.js";

const BASE_URL = "http://cell:8000";
const CREATED_US = 1_780_000_000_000_000;

t.test(
  "a run's document is made once for all who ask between two changes, also before the run has ended",
  async (t) => {
    const cell = new RecordedCell();
    const documents = new RunDocuments(cell.view, 1024 * 1024);
    const id = generateUuidV7(CREATED_US / 1000, new Uint8Array(10), null);
    cell.apply(CREATED_US, {
      kind: "run_created",
      runId: id,
      programId: PROGRAM_ID,
      programName: "Weld seam",
      robotId: null,
      serialNumber: null,
      revision: 1,
      metadata: null,
      traceId: null,
      steps: [],
    });
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
