import { LRUCache } from "lru-cache";
import { ownUtf8 } from "../../core/json/utf8.js";
import { runResponse } from "../../core/run/run-response.js";
import type { View } from "../../storage/view/view.js";
import { keptBytes } from "../replies/compressed-reply.js";
import { jsonBytesReply, type Reply } from "../replies/reply.js";
import type { HandlerRequest } from "../requests/route.js";
import type { LargeDocuments } from "./large-documents.js";

interface RunDocument {
  readonly baseUrl: string;
  readonly updatedAtUs: number;
  readonly deliveryChanges: number;
  /** Names of webhooks stand in it as they were at this count; null: none stands in it. */
  readonly webhookRenames: number | null;
  readonly reply: Reply;
  /** The view's when it was last found to hold. */
  checkedAtChange: number;
  readonly sizeInBytes: number;
}

/** What an entry costs beside its bytes: key, objects, header lines and list links, by measurement rounded up. */
const ENTRY_OVERHEAD_BYTES = 1_100;

/** Of one run, for base addresses that clients use by turns: the last ones. */
const BASE_ADDRESSES = 4;

/** Those of one run together: what no one asks for but the last client must not push out all the others. The newest may have more. */
const SHARE_OF_ONE_RUN = 1 / 4;

/**
 * The JSON of GET /runs/{run_id}, kept once per base address until the run changes or the bound is reached: a hot one costs a
 * look-up. Also that of a run that has not ended: a document may have 16 MiB, and many clients may ask for it between two changes.
 * Whoever asks while it is being made gets the same bytes.
 */
export class RunDocuments {
  readonly #view: View;
  readonly #bytesOfOneRun: number;
  /** By run, the newest first: an id and an address put together for every request would cost more than the look-up. */
  readonly #kept: LRUCache<string, readonly RunDocument[]>;
  readonly #building = new Map<string, Promise<Reply | undefined>>();
  readonly #large: LargeDocuments | undefined;

  /**
   * @param cacheBytes bound of what is kept
   * @param large makes and keeps those that take long; undefined: they are as all others
   */
  constructor(view: View, cacheBytes: number, large?: LargeDocuments) {
    this.#view = view;
    this.#large = large;
    this.#bytesOfOneRun = cacheBytes * SHARE_OF_ONE_RUN;
    this.#kept = new LRUCache({
      maxSize: cacheBytes,
      sizeCalculation: (documents) => documents.reduce((bytes, { sizeInBytes }) => bytes + sizeInBytes, 0),
    });
  }

  /**
   * At once when it is kept; undefined for an unknown run.
   * @param client that waits
   * @throws ServiceError `unavailable` when too many large ones are being made
   */
  get(
    id: string,
    baseUrl: string,
    client: Pick<HandlerRequest, "gone">,
  ): Reply | undefined | Promise<Reply | undefined> {
    const documents = this.#kept.get(id);
    const kept = documents === undefined ? undefined : ofAddress(documents, baseUrl);
    const { changes } = this.#view;
    // Most reads come between two changes of anything: nothing more is to be looked at.
    if (kept?.checkedAtChange === changes) return kept.reply;
    const head = this.#view.runHead(id);
    if (head === undefined) return undefined;
    const { updatedAtUs } = head;
    const deliveryChanges = this.#view.deliveryChanges(id);
    const { webhookRenames } = this.#view;
    if (kept?.updatedAtUs === updatedAtUs && kept.deliveryChanges === deliveryChanges) {
      if ((kept.webhookRenames ?? webhookRenames) === webhookRenames) {
        kept.checkedAtChange = changes;
        return kept.reply;
      }
    }
    if (this.#large?.has(id)) return this.#large.get("detail", id, baseUrl, client);
    const version = `${updatedAtUs} ${deliveryChanges} ${webhookRenames} ${id} ${baseUrl}`;
    let building = this.#building.get(version);
    if (building === undefined) {
      building = this.#build(id, baseUrl, deliveryChanges).finally(() => this.#building.delete(version));
      this.#building.set(version, building);
    }
    return building;
  }

  async #build(id: string, baseUrl: string, deliveryChanges: number): Promise<Reply | undefined> {
    const run = await this.#view.run(id);
    if (run === undefined) return undefined;
    // Without deliveries at once: a run that has not ended changes in place with the next batch.
    const deliveries = run.emitted === undefined ? [] : await this.#view.deliveriesOfRun(run);
    const named = deliveries.map((delivery) => ({ delivery, webhookName: this.#view.webhookName(delivery.webhookId) }));
    const json = ownUtf8(JSON.stringify(runResponse(run, baseUrl, named)));
    const webhookRenames = named.length === 0 ? null : this.#view.webhookRenames;
    const { updatedAtUs } = run;
    const reply = jsonBytesReply(json, true);
    const sizeInBytes = keptBytes(reply) + ENTRY_OVERHEAD_BYTES;
    // Not known to hold yet: the run may have changed while its deliveries were read.
    const checkedAtChange = -1;
    const newest = { baseUrl, updatedAtUs, deliveryChanges, webhookRenames, reply, checkedAtChange, sizeInBytes };
    // By the run's own id: the asker's may be a part of a much larger text, all of which would be kept.
    this.#kept.set(run.id, this.#newestFirst(newest, this.#kept.peek(id) ?? []));
    return reply;
  }

  /** What is kept of a run from now on: a new document, and as many of those before as may stay beside it. */
  #newestFirst(newest: RunDocument, before: readonly RunDocument[]): RunDocument[] {
    const documents = [newest];
    let bytes = newest.sizeInBytes;
    for (const document of before) {
      if (document.baseUrl === newest.baseUrl) continue;
      bytes += document.sizeInBytes;
      if (documents.length === BASE_ADDRESSES || bytes > this.#bytesOfOneRun) break;
      documents.push(document);
    }
    return documents;
  }
}

function ofAddress(documents: readonly RunDocument[], baseUrl: string): RunDocument | undefined {
  for (const document of documents) if (document.baseUrl === baseUrl) return document;
  return undefined;
}
