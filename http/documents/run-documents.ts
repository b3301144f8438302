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
  /** The view's count of renamed webhooks when the document was made; null: it names no webhook. */
  readonly webhookRenames: number | null;
  readonly reply: Reply;
  /** The view's count of changes when the document was last found to be current. */
  checkedAtChange: number;
  readonly sizeInBytes: number;
}

/** Measured cost of a cache entry besides its bytes, rounded up. */
const ENTRY_OVERHEAD_BYTES = 1_100;

/** Documents of one run are cached for at most this many base addresses. */
const BASE_ADDRESSES = 4;

/** Largest share of the cache for one run: documents that nobody else asks for must not push out all others. The newest may exceed it. */
const SHARE_OF_ONE_RUN = 1 / 4;

/**
 * The JSON of GET /runs/{run_id}, cached per base address until the run changes or the limit is reached. Documents of active runs are cached
 * too: they can have 16 MiB, and many clients may ask for one between two changes. Simultaneous requests share one document.
 */
export class RunDocuments {
  readonly #view: View;
  readonly #bytesOfOneRun: number;
  /** By run, newest first. A key of id and address would have to be built for every request, which costs more than the look-up. */
  readonly #kept: LRUCache<string, readonly RunDocument[]>;
  readonly #building = new Map<string, Promise<Reply | undefined>>();
  readonly #large: LargeDocuments | undefined;

  /**
   * @param cacheBytes limit of the cache
   * @param large makes and caches large documents; undefined: they are treated like all others
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
   * The document, at once if it is cached; undefined for an unknown run.
   * @param client that waits
   * @throws ServiceError `unavailable` if too many large documents are being made
   */
  get(
    id: string,
    baseUrl: string,
    client: Pick<HandlerRequest, "gone">,
  ): Reply | undefined | Promise<Reply | undefined> {
    const documents = this.#kept.get(id);
    const kept = documents === undefined ? undefined : ofAddress(documents, baseUrl);
    const { changes } = this.#view.fold;
    // Most reads come between two changes of anything: then nothing else needs checking.
    if (kept?.checkedAtChange === changes) return kept.reply;
    const head = this.#view.runHead(id);
    if (head === undefined) return undefined;
    const { updatedAtUs } = head;
    const deliveryChanges = this.#view.deliveries.changesOf(id);
    const webhookRenames = this.#view.webhooks.renames;
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
    // Without deliveries there is no wait here: the state of an active run changes with the next batch.
    const deliveries = deliveryChanges === 0 ? [] : await this.#view.deliveriesOfRun(run);
    const named = deliveries.map((delivery) => ({
      delivery,
      webhookName: this.#view.webhooks.name(delivery.webhookId),
    }));
    const json = ownUtf8(JSON.stringify(runResponse(run, baseUrl, named)));
    const webhookRenames = named.length === 0 ? null : this.#view.webhooks.renames;
    const { updatedAtUs } = run;
    const reply = jsonBytesReply(json, true);
    const sizeInBytes = keptBytes(reply) + ENTRY_OVERHEAD_BYTES;
    // It is not known to be current: the run may have changed while its deliveries were read.
    const checkedAtChange = -1;
    const newest = { baseUrl, updatedAtUs, deliveryChanges, webhookRenames, reply, checkedAtChange, sizeInBytes };
    // By the run's own id: the request's id may be a slice of a much larger string, which would stay in memory.
    this.#kept.set(run.id, this.#newestFirst(newest, this.#kept.peek(id) ?? []));
    return reply;
  }

  /** The documents to cache for a run: the new one, and as many earlier ones as the limits allow. */
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
