import { runResponse } from "../../../core/run/run-response.js";
import { inspectStore } from "../../../storage/repair/inspect-store.js";
import { runOf } from "../../../storage/repair/record-verifier.js";
import { readStore } from "../../../storage/repair/store-reading.js";
import { readRun } from "../../../storage/view/read-run.js";
import type { WebhookAnswers } from "./release-webhooks.js";

/** One folder for each release: the store that it wrote, and what it answered then. */
export const RELEASES_FOLDER = "test/golden/releases";

/** `answers.json` of a release. */
export interface ReleaseAnswers {
  /** By their ids. */
  runs: Record<string, unknown>;
  webhooks: WebhookAnswers;
}

/** What the interface says of each run of a store, by id. */
export async function answersOf(path: string): Promise<Record<string, unknown>> {
  const ids = new Set<string>();
  const reading = await readStore(path);
  await inspectStore({
    ...reading,
    selects: (record) => {
      const id = runOf(record);
      if (id !== null) ids.add(id);
      return false;
    },
    describe: () => null,
    onItem: () => {},
  });
  const answers: Record<string, unknown> = {};
  for (const runId of [...ids].sort()) {
    const stored = await readRun({ ...reading, runId });
    if (stored === undefined || stored.loss !== null) throw new Error(`run ${runId} is not whole`);
    answers[runId] = JSON.parse(JSON.stringify(runResponse(stored.run, "", stored.deliveries)));
  }
  return answers;
}
