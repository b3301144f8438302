import t from "tap";
import type { Change } from "../../../core/link/change.js";
import { createRandom } from "../../../core/random.js";
import type { RunState } from "../../../core/run/run-state.js";
import { openDataDirectory } from "../../../storage/disk/data-directory.js";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import { Log } from "../../../storage/log/log.js";
import { decodeChanges, encodeChanges } from "../../../storage/records/change-record.js";
import { isKnownRecordType, RECORD_TYPE } from "../../../storage/records/record-index.js";
import { encodeWebhookChange } from "../../../storage/records/webhook-record.js";
import { CellHistory, type HistoryRecord } from "../../helpers/link/cell-history.js";
import { listOf } from "../../helpers/list-of.js";
import { runCommand } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { failedDelivery, WEBHOOK } from "../../helpers/webhooks/webhook-fixtures.js";

/** A store whose log holds these records, as the service would have written it. */
async function storeOf(path: string, records: readonly HistoryRecord[]): Promise<void> {
  const directory = await openDataDirectory({ path, creates: true });
  const log = await Log.open({
    fileSystem: nodeFileSystem,
    directory: directory.metaPath,
    quarantineDirectory: directory.quarantinePath,
    durability: "full",
    understandsType: isKnownRecordType,
    openingState: () => ({ index: new Uint8Array(0), body: new Uint8Array(0) }),
    onRecords: () => {},
  });
  for (const record of records) log.append({ ...record, flags: 1 });
  await log.close();
  await directory.release();
}

/** A run's beginning, a change of it and its end, without captures. */
function threeRecords(): { created: HistoryRecord; started: HistoryRecord; ended: HistoryRecord; run: RunState } {
  const history = new CellHistory(createRandom(5));
  for (;;) {
    const created = history.next();
    if (created.type !== RECORD_TYPE.runCreated) continue;
    const [change] = decodeChanges(created.type, created.body) as [Change & { runId: string }];
    const pending = history.runs.get(change.runId) as RunState;
    const timeUs = created.timeUs + 1;
    const run: RunState = { ...pending, status: "cancelled", completedAtUs: timeUs + 1, updatedAtUs: timeUs + 1 };
    const { id: runId } = run;
    const started = encodeChanges(null, [{ kind: "run_started", runId }], { ...pending, status: "running" });
    const ended = encodeChanges(null, [{ kind: "run_ended", runId, run }], undefined);
    return { created, started: { ...started, timeUs }, ended: { ...ended, timeUs: timeUs + 1 }, run };
  }
}

t.test("check finds records that say something else than one another, and exits 1", async (t) => {
  const { created, started, ended, run } = threeRecords();
  const failed = encodeChanges(null, [{ kind: "run_ended", runId: run.id, run: { ...run, status: "failed" } }], run);
  const webhook = { ...encodeWebhookChange({ kind: "webhook_put", webhook: WEBHOOK, secret: null }), timeUs: 1 };
  const deliveryTo = (runId: string | null): HistoryRecord => {
    const delivery = failedDelivery(runId);
    return { ...encodeWebhookChange({ kind: "delivery_put", delivery, history: [], payload: "{}" }), timeUs: 1 };
  };
  const stores: [string, HistoryRecord[], RegExp | null][] = [
    ["nothing is wrong", [created, started, ended, webhook, deliveryTo(null)], null],
    ["the beginning is gone", [started, ended], null],
    ["a list says another status", [created, { ...ended, index: failed.index }], /differ in status$/],
    ["a change of a run that never began", [started], /^a change belongs to run .*, but no record before it begins/],
    ["a change behind the end", [created, ended, started], /^a change of run .* stands behind the run's end$/],
    [
      "a delivery of an event that never was",
      [webhook, created, deliveryTo(run.id)],
      /^delivery .* no record has that event$/,
    ],
    [
      "a delivery to a webhook that never was",
      [deliveryTo(null)],
      /^a delivery goes to webhook .* no record has that webhook$/,
    ],
  ];
  for (const [what, records, message] of stores) {
    const path = temporaryDirectory(t);
    await storeOf(path, records as HistoryRecord[]);
    const { code, stdout } = await runCommand(["check", "--data", path, "--json"]);
    const { ok, findings } = JSON.parse(stdout);
    const file = "meta/0000000000000001.seg";
    if (message === null) t.match({ code, ok, findings }, { code: 0, ok: true, findings: { length: 0 } }, what);
    else t.match(findings, listOf({ code: "record_inconsistent", file, message }), what);
    t.equal(code, message === null ? 0 : 1, what);
    t.equal(ok, message === null, what);
  }
});
