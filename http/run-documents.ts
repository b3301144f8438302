import { LRUCache } from "lru-cache";
import { runResponse } from "../core/run-response.js";
import type { View } from "../storage/view.js";

interface RunDocument {
  updatedAtUs: number;
  deliveryChanges: number;
  /** Names of webhooks stand in it as they were at this count; null: none stands in it. */
  webhookRenames: number | null;
  json: Uint8Array;
}

/** What an entry costs beside its bytes: key, object and list links, by measurement rounded up. */
const ENTRY_OVERHEAD_BYTES = 400;

/**
 * The JSON of GET /runs/{run_id}, kept once per base address until the run changes or the bound is reached: a hot one costs a
 * look-up. Also that of a run that has not ended: a document may have 16 MiB, and many clients may ask for it between two changes.
 * Whoever asks while it is being made gets the same bytes.
 */
export class RunDocuments {
  readonly #view: View;
  readonly #kept: LRUCache<string, RunDocument>;
  readonly #building = new Map<string, Promise<Uint8Array | undefined>>();

  /** @param cacheBytes bound of what is kept */
  constructor(view: View, cacheBytes: number) {
    this.#view = view;
    this.#kept = new LRUCache({
      maxSize: cacheBytes,
      sizeCalculation: ({ json }) => json.byteLength + ENTRY_OVERHEAD_BYTES,
    });
  }

  /** At once when it is kept; undefined for an unknown run. */
  get(id: string, baseUrl: string): Uint8Array | undefined | Promise<Uint8Array | undefined> {
    const head = this.#view.runHead(id);
    if (head === undefined) return undefined;
    const key = id + baseUrl;
    const kept = this.#kept.get(key);
    const { updatedAtUs } = head;
    const deliveryChanges = this.#view.deliveryChanges(id);
    const { webhookRenames } = this.#view;
    if (kept?.updatedAtUs === updatedAtUs && kept.deliveryChanges === deliveryChanges) {
      if ((kept.webhookRenames ?? webhookRenames) === webhookRenames) return kept.json;
    }
    const version = `${updatedAtUs} ${deliveryChanges} ${webhookRenames} ${key}`;
    let building = this.#building.get(version);
    if (building === undefined) {
      building = this.#build(id, baseUrl, key, deliveryChanges).finally(() => this.#building.delete(version));
      this.#building.set(version, building);
    }
    return building;
  }

  async #build(id: string, baseUrl: string, key: string, deliveryChanges: number): Promise<Uint8Array | undefined> {
    const run = await this.#view.run(id);
    if (run === undefined) return undefined;
    // Without deliveries at once: a run that has not ended changes in place with the next batch.
    const deliveries = run.emitted === undefined ? [] : await this.#view.deliveriesOfRun(run);
    const named = deliveries.map((delivery) => ({ delivery, webhookName: this.#view.webhookName(delivery.webhookId) }));
    const json = Buffer.from(JSON.stringify(runResponse(run, baseUrl, named)));
    const webhookRenames = named.length === 0 ? null : this.#view.webhookRenames;
    this.#kept.set(key, { updatedAtUs: run.updatedAtUs, deliveryChanges, webhookRenames, json });
    return json;
  }
}
