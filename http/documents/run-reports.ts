import { LRUCache } from "lru-cache";
import type { RunState } from "../../core/run/run-state.js";
import type { View } from "../../storage/view/view.js";
import { REPORT_POLICY } from "../../workers/artefacts/report/report-policy.js";
import type { GeneratedFiles } from "../downloads/generated-files.js";
import { keptBytes } from "../replies/compressed-reply.js";
import { tagOfHash } from "../replies/conditional-reply.js";
import { type Reply, wholeReply } from "../replies/reply.js";
import type { HandlerRequest } from "../requests/route.js";
import { jsonInSlices } from "./json-in-slices.js";
import type { LargeDocuments } from "./large-documents.js";
import { SharedWork, type Slices } from "./shared-work.js";
import type { ThreadSlices } from "./thread-slices.js";

/** Cache of pages, compressed forms included: a page of a usual run has half a megabyte. A larger one is not kept. */
const KEPT_BYTES = 16 * 1024 * 1024;

/** Fetches the captures that the page shows. Those that cannot be had are left out. */
export type FetchForReport = (run: RunState) => Promise<void> | undefined;

export interface RunReportsOptions {
  view: View;
  files: Pick<GeneratedFiles, "report">;
  slices: ThreadSlices;
  large: Pick<LargeDocuments, "run">;
  /** Undefined at a cell. */
  fetchForReport?: FetchForReport | undefined;
}

const NEVER = new AbortController().signal;

/** What a waiting page counts for beside the run's document: its pictures and plots. */
const PAGE_BYTES = 8 * 1024 * 1024;

/**
 * The report pages of runs. The artefact pool makes one at a time, once for all clients that wait for it. So this thread
 * only hands over the run, and many clients cost little more memory than one.
 */
export class RunReports {
  readonly #options: RunReportsOptions;
  readonly #view: View;
  readonly #work: SharedWork;
  readonly #kept: LRUCache<string, Reply>;

  constructor(options: RunReportsOptions) {
    this.#options = options;
    this.#view = options.view;
    this.#work = new SharedWork(options.slices);
    this.#kept = new LRUCache({ maxSize: KEPT_BYTES, sizeCalculation: keptBytes });
  }

  /**
   * The page; undefined for an unknown run. At once if it is kept.
   * @param client that waits
   * @throws ServiceError `unavailable`
   */
  get(runId: string, client: Pick<HandlerRequest, "gone">): Reply | undefined | Promise<Reply> {
    const head = this.#view.runHead(runId);
    if (head === undefined) return undefined;
    const key = `${head.id} ${head.updatedAtUs}`;
    const kept = this.#kept.get(key);
    if (kept !== undefined) return kept;
    const bytes = PAGE_BYTES + this.#view.documentBytes(runId);
    return this.#work.get(key, bytes, client.gone(), async (slices) => {
      slices.throwIfCancelled();
      await this.#fetch(runId);
      const { page, sha1, damages } = await this.#options.files.report(runId, await this.#source(runId, slices));
      const reply = wholeReply(page, "text/html; charset=utf-8", true);
      reply.headers = [["Content-Security-Policy", REPORT_POLICY]];
      reply.etag = tagOfHash(sha1);
      // A damaged capture may be restored.
      if (damages.length === 0) this.#kept.set(key, reply);
      return reply;
    });
  }

  async #fetch(runId: string): Promise<void> {
    const { large, fetchForReport } = this.#options;
    if (fetchForReport === undefined) return;
    // All who wait for the page want it, not only the client that came first.
    const run = await large.run(runId, { gone: () => NEVER });
    if (run !== undefined) await fetchForReport(run);
  }

  async #source(runId: string, slices: Slices): Promise<{ record: Uint8Array } | { json: Uint8Array }> {
    const record = await this.#view.storedBody(runId);
    if (record !== undefined) return { record };
    const run = (await this.#view.run(runId)) as RunState;
    // The run may have ended meanwhile; a new request then gets its record.
    return { json: (await jsonInSlices(copyOf(run), slices)).bytes };
  }
}

/** A run that has not ended changes in place. The page shows nothing of its parts that are left out here. */
function copyOf(run: RunState): RunState {
  const { emitted: _, ...others } = run;
  return {
    ...others,
    metadata: null,
    results: null,
    eventLog: [],
    jobs: [],
    frameIds: [],
    steps: run.steps.map((step) => ({ ...step, definition: { ...step.definition, params: {} }, result: null })),
    checks: [...run.checks],
    defects: [...run.defects],
    // The batches of an open frame grow, and the page does not show them.
    frames: run.frames.map((frame) => (frame.status === "complete" ? { ...frame } : { ...frame, batches: [] })),
    series: run.series.map((series) => (series.completedAtUs === null ? { ...series, appends: [] } : { ...series })),
    files: [...run.files],
  };
}
