import { deserialize } from "node:v8";
import { LRUCache } from "lru-cache";
import type { RunState } from "../../core/run/run-state.js";
import type { NamedDelivery } from "../../core/webhook/webhook-response.js";
import type { EmittingRun } from "../../storage/records/delivery-records.js";
import type { RunHead, View } from "../../storage/view/view.js";
import { startThreads, type Threads } from "../../workers/artefacts/pool/piscina-threads.js";
import type { DocumentAnswer, DocumentTask } from "../../workers/documents/document-thread.js";
import { type RunDocumentKind, runDocument } from "../../workers/documents/run-documents.js";
import { keptBytes } from "../replies/compressed-reply.js";
import { tagOfHash } from "../replies/conditional-reply.js";
import { jsonBytesReply, jsonReply, type Reply } from "../replies/reply.js";
import type { HandlerRequest } from "../requests/route.js";
import { type HashedBytes, jsonInSlices } from "./json-in-slices.js";
import type { SharedWork, Slices } from "./shared-work.js";

/** Up to this many stored bytes of a run, the front's thread makes its documents itself, in some three milliseconds. */
const SMALL_BYTES = 128 * 1024;

/** A thread that takes longer for one document is stuck: it is ended and replaced. */
const TASK_MS = 25_000;

/** Memory of a run's state per byte of its v8.serialize form. */
const STATE_BYTES_PER_BYTE = 4;

const THREAD = new URL("../../workers/documents/document-thread.js", import.meta.url);

/** A client that waits for an answer. */
type Waiting = Pick<HandlerRequest, "gone">;

export interface LargeDocumentsOptions {
  view: View;
  work: SharedWork;
  /** Limit of the cached documents, compressed forms included, in bytes. */
  keptBytes: number;
  /** Limit of the cached run states that serve files, in bytes. */
  keptRunBytes: number;
  /** Called for an error of the thread while it has no task. */
  onStrayError(error: Error): void;
}

/**
 * Answers about runs with large documents, cached until the run changes or the limit is reached. Documents of ended runs are made by another
 * thread; those of active runs, whose state only this thread has, in slices between other work.
 */
export class LargeDocuments {
  readonly #view: View;
  readonly #work: SharedWork;
  /** One thread, because the work is done one after the other. */
  readonly #threads: Threads;
  readonly #kept: LRUCache<string, Reply>;
  readonly #runs: LRUCache<string, RunState>;

  constructor({ view, work, keptBytes: maximumBytes, keptRunBytes, onStrayError }: LargeDocumentsOptions) {
    this.#view = view;
    this.#work = work;
    this.#threads = startThreads(THREAD, onStrayError);
    this.#kept = new LRUCache({ maxSize: maximumBytes, sizeCalculation: keptBytes });
    this.#runs = new LRUCache({ maxSize: keptRunBytes });
  }

  /** Whether the documents of this run are large. */
  has(runId: string): boolean {
    return this.#view.documentBytes(runId) > SMALL_BYTES;
  }

  /** Like `get`, but for a run of any size. */
  async json(kind: RunDocumentKind, runId: string, baseUrl: string, client: Waiting): Promise<Reply | undefined> {
    if (this.has(runId)) return this.get(kind, runId, baseUrl, client);
    const run = await this.#view.run(runId);
    return run && jsonReply(runDocument(kind, run, baseUrl, []));
  }

  /**
   * The JSON; undefined for an unknown run. At once if it is kept.
   * @param client that waits
   * @throws ServiceError `unavailable`
   */
  get(
    kind: RunDocumentKind,
    runId: string,
    baseUrl: string,
    client: Waiting,
  ): Reply | undefined | Promise<Reply | undefined> {
    const view = this.#view;
    const head = view.runHead(runId);
    if (head === undefined) return undefined;
    // These documents contain names of webhooks and outcomes of deliveries.
    const deliveries =
      kind === "detail" || kind === "active" ? [view.deliveries.changesOf(runId), view.webhooks.renames] : [];
    const key = [kind, runId, head.updatedAtUs, ...deliveries, baseUrl].join(" ");
    const kept = this.#kept.get(key);
    if (kept !== undefined) return kept;
    return this.#work.get(key, view.documentBytes(runId), client.gone(), async (slices) => {
      const { bytes, sha1 } = await this.#make(kind, runId, baseUrl, slices);
      const reply = jsonBytesReply(bytes, true);
      reply.etag = tagOfHash(sha1);
      this.#kept.set(key, reply);
      return reply;
    });
  }

  /**
   * The state of an active run; of an ended run the part that serves its files and frames (`withoutFindings`). Undefined for an unknown run.
   * @throws ServiceError `unavailable`
   */
  async run(runId: string, client: Waiting): Promise<RunState | undefined> {
    const head = this.#view.runHead(runId);
    const bytes = this.#view.documentBytes(runId);
    if (head === undefined || bytes <= SMALL_BYTES || !this.#view.hasEnded(runId)) return this.#view.run(runId);
    const key = `run ${runId} ${head.updatedAtUs}`;
    const kept = this.#runs.get(key);
    if (kept !== undefined) return kept;
    return this.#work.get(key, bytes, client.gone(), async (slices) => {
      const answer = await this.#inThread({ name: "run", body: await this.#body(runId, slices), head });
      const run = deserialize(answer.run) as RunState;
      this.#runs.set(key, run, { size: answer.run.length * STATE_BYTES_PER_BYTE });
      return run;
    });
  }

  /** Ends the thread. */
  close(): Promise<void> {
    return this.#threads.destroy();
  }

  async #make(kind: RunDocumentKind, runId: string, baseUrl: string, slices: Slices): Promise<HashedBytes> {
    const view = this.#view;
    const hasDeliveries = kind === "detail" || kind === "active";
    if (!view.hasEnded(runId)) {
      const run = (await view.run(runId)) as RunState;
      const isTold = hasDeliveries && view.deliveries.changesOf(runId) > 0;
      const deliveries = isTold ? await this.#deliveries(run) : [];
      return jsonInSlices(runDocument(kind, run, baseUrl, deliveries), slices);
    }
    const head = view.runHead(runId) as RunHead;
    let body = await this.#body(runId, slices);
    let deliveries: NamedDelivery[] = [];
    if (hasDeliveries) {
      const begun = await this.#inThread({ name: "events", body });
      body = begun.body;
      deliveries = await this.#deliveries({ id: runId, emitted: begun.events });
      slices.throwIfCancelled();
    }
    const { json, sha1 } = await this.#inThread({ name: "document", body, head, kind, baseUrl, deliveries });
    return { bytes: json, sha1 };
  }

  async #body(runId: string, slices: Slices): Promise<Uint8Array> {
    slices.throwIfCancelled();
    const body = await this.#view.storedBody(runId);
    slices.throwIfCancelled();
    if (body === undefined) throw new Error(`run ${runId} has no record of its own`);
    return body;
  }

  async #deliveries(run: EmittingRun): Promise<NamedDelivery[]> {
    const deliveries = await this.#view.deliveriesOfRun(run);
    return deliveries.map((delivery) => ({ delivery, webhookName: this.#view.webhooks.name(delivery.webhookId) }));
  }

  async #inThread<T extends DocumentTask>(task: T): Promise<Extract<DocumentAnswer, { name: T["name"] }>> {
    const signal = AbortSignal.timeout(TASK_MS);
    const transfer = [task.body.buffer as ArrayBuffer];
    const answer = await this.#threads.run(task, { signal, transfer });
    return answer as Extract<DocumentAnswer, { name: T["name"] }>;
  }
}
