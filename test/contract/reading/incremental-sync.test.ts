import t, { type Test } from "tap";
import { createRandom } from "../../../core/random.js";
import { formatTimeUs } from "../../../core/timestamps.js";
import { RecordedCell } from "../../helpers/captures/recorded-cell.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { RunSync } from "../../helpers/live/run-sync.js";
import { quietAssert } from "../../helpers/quiet-assert.js";
import { sized } from "../../helpers/test-size.js";

const seed = Number(process.env.TEST_SEED ?? 20_261_120);
const PROGRAM_ID = "019b76da-a800-7000-8000-000000000001";
const CHANGES = sized(400, 10_000);

/**
 * A client syncs while runs change, and takes its next mark from these pages of each sync.
 * @returns how many runs it did not have in their last state when it had to
 */
async function runsMissed(t: Test, marksFrom: "first page" | "every page"): Promise<number> {
  const random = createRandom(seed);
  const upTo = (count: number) => Math.floor(random.next() * count);
  const cell = new RecordedCell();
  const client = new ContractClient(quietAssert(t), await cell.listenFor(t));

  let timeUs = Date.UTC(2026, 0, 31, 12) * 1000;
  const active: string[] = [];
  /** What a client should have in the end: the time of each run's last change, and its state. */
  const model = new Map<string, { updatedAt: string; status: string }>();
  const runStatus = (id: string, status: string) => model.set(id, { updatedAt: formatTimeUs(timeUs), status });

  /** One change of a random run. */
  const change = () => {
    timeUs += 1 + upTo(3);
    const id = active[upTo(active.length)];
    const kind = upTo(10);
    if (id === undefined || kind < 3) {
      const created = `019c13ec-${String(model.size).padStart(4, "0")}-7000-8000-000000000000`;
      active.push(created);
      const names = { programName: "p", robotId: null, serialNumber: null, revision: 1, metadata: null, traceId: null };
      cell.apply(timeUs, { kind: "run_created", runId: created, programId: PROGRAM_ID, ...names, steps: [] });
      runStatus(created, "pending");
    } else if (cell.state(id).status === "pending" && kind < 5) {
      cell.apply(timeUs, { kind: "run_started", runId: id });
      runStatus(id, "running");
    } else if (kind < 8) {
      cell.apply(timeUs, { kind: "event_added", runId: id, entry: { eventType: "e", data: {}, timestampUs: null } });
      runStatus(id, cell.state(id).status);
    } else {
      active.splice(active.indexOf(id), 1);
      cell.end(timeUs, id, { status: "failed", errorMessage: "x", notes: [] });
      runStatus(id, "failed");
    }
  };

  const copy = new RunSync(marksFrom);
  /** Changes happen between its requests. */
  const sync = (changes: () => void) => copy.sync(client, 3 + upTo(9), changes);

  for (let i = 0; i < 30; i++) change();
  let done = 0;
  let missedRuns = 0;
  while (done < CHANGES) {
    const atStart = new Map(model);
    await sync(() => {
      for (let count = upTo(4); count > 0 && done < CHANGES; count--, done++) change();
    });
    const missed = [...atStart].filter(([id, { updatedAt }]) => (copy.seen.get(id)?.updated_at ?? "") < updatedAt);
    missedRuns += missed.length;
  }
  while ((await sync(() => {})) > 0);
  const wrong = [...model].filter(([id, { updatedAt, status }]) => {
    const row = copy.seen.get(id);
    return row?.updated_at !== updatedAt || row.status !== status;
  });
  t.comment(
    `mark of ${marksFrom}: ${model.size} runs, ${done} changes while ${copy.pages} pages were read, ${missedRuns} missed`,
  );
  return missedRuns + wrong.length;
}

t.test(`a sync by updated_since while runs change misses nothing (seed ${seed})`, async (t) => {
  t.equal(await runsMissed(t, "first page"), 0);
});

t.test(
  "by the latest updated_at of all its pages instead, it would miss some: the rule is needed, and its breach is seen",
  async (t) => {
    t.ok((await runsMissed(t, "every page")) > 0);
  },
);
