import { LRUCache } from "lru-cache";
import { ownUtf8 } from "../../core/json/utf8.js";
import { runResponse } from "../../core/run/run-response.js";
import type { View } from "../../storage/view/view.js";
import { keptBytes } from "../replies/compressed-reply.js";
import { jsonBytesReply, type Reply } from "../replies/reply.js";
import type { HandlerRequest } from "../requests/route.js";
import type { LargeDocuments } from "./large-documents.js";

/** Measured cost of a cache entry besides its bytes, rounded up. */
const ENTRY_OVERHEAD_BYTES = 1_100;

interface RunDocument {
  readonly version: string;
  readonly reply: Reply;
}

/**
 * The JSON of GET /runs/{run_id}, cached per base address until the run changes or the limit is reached. Documents of active runs are cached
 * too: they can have 16 MiB, and many clients may ask for one between two changes. Simultaneous requests share one document.
 */
export class RunDocuments {
  readonly #view: View;
  /** By run and base address. */
  readonly #kept: LRUCache<string, RunDocument>;
  readonly #building = new Map<string, Promise<Reply | undefined>>();
  readonly #large: LargeDocuments | undefined;

  /**
   * @param cacheBytes limit of the cache
   * @param large makes and caches large documents; undefined: they are treated like all others
   */
  constructor(view: View, cacheBytes: number, large?: LargeDocuments) {
    this.#view = view;
    this.#large = large;
    this.#kept = new LRUCache({
      maxSize: cacheBytes,
      sizeCalculation: ({ reply }, key) => keptBytes(reply) + 2 * key.length + ENTRY_OVERHEAD_BYTES,
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
    const head = this.#view.runHead(id);
    if (head === undefined) return undefined;
    const deliveryChanges = this.#view.deliveries.changesOf(id);
    const version = this.#version(head.updatedAtUs, deliveryChanges);
    const key = `${id} ${baseUrl}`;
    const kept = this.#kept.get(key);
    if (kept?.version === version) return kept.reply;
    if (this.#large?.has(id)) return this.#large.get("detail", id, baseUrl, client);
    const buildKey = `${version} ${key}`;
    let building = this.#building.get(buildKey);
    if (building === undefined) {
      building = this.#build(id, baseUrl, deliveryChanges).finally(() => this.#building.delete(buildKey));
      this.#building.set(buildKey, building);
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
    const reply = jsonBytesReply(ownUtf8(JSON.stringify(runResponse(run, baseUrl, named))), true);
    // By the run's own id: the request's id may be a slice of a much larger string, which would stay in memory.
    this.#kept.set(`${run.id} ${baseUrl}`, { version: this.#version(run.updatedAtUs, deliveryChanges), reply });
    return reply;
  }

  /** What a document is made of: the run, its deliveries, and the names of their webhooks. */
  #version(updatedAtUs: number, deliveryChanges: number): string {
    return `${updatedAtUs} ${deliveryChanges} ${this.#view.webhooks.renames}`;
  }
}
