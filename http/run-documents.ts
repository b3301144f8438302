import { LRUCache } from "lru-cache";
import { runResponse } from "../core/run-response.js";
import { isTerminal } from "../core/run-state.js";
import type { RunHead, View } from "../storage/view.js";

interface RunDocument {
  updatedAtUs: number;
  json: Uint8Array;
}

/** What an entry costs beside its bytes: key, object and list links, by measurement rounded up. */
const ENTRY_OVERHEAD_BYTES = 400;

/**
 * The JSON of GET /runs/{run_id}. That of an ended run is kept, once per base address, until the run changes or the bound is
 * reached: a hot one costs a look-up.
 */
export class RunDocuments {
  readonly #view: View;
  readonly #ended: LRUCache<string, RunDocument>;

  /** @param cacheBytes bound of what is kept */
  constructor(view: View, cacheBytes: number) {
    this.#view = view;
    this.#ended = new LRUCache({
      maxSize: cacheBytes,
      sizeCalculation: ({ json }) => json.byteLength + ENTRY_OVERHEAD_BYTES,
    });
  }

  /** At once when it is kept; undefined for an unknown run. */
  get(id: string, baseUrl: string): Uint8Array | undefined | Promise<Uint8Array | undefined> {
    const head = this.#view.runHead(id);
    if (head === undefined) return undefined;
    if (!isTerminal(head.status)) return this.#build(head, baseUrl);
    const kept = this.#ended.get(keyOf(id, baseUrl));
    return kept !== undefined && kept.updatedAtUs === head.updatedAtUs ? kept.json : this.#build(head, baseUrl);
  }

  async #build({ id }: RunHead, baseUrl: string): Promise<Uint8Array | undefined> {
    const run = await this.#view.run(id);
    if (run === undefined) return undefined;
    const json = Buffer.from(JSON.stringify(runResponse(run, baseUrl)));
    if (isTerminal(run.status)) this.#ended.set(keyOf(id, baseUrl), { updatedAtUs: run.updatedAtUs, json });
    return json;
  }
}

function keyOf(id: string, baseUrl: string): string {
  return id + baseUrl;
}
