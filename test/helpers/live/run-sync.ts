import type { ContractClient } from "../http/contract-client.js";

export interface SyncedRun {
  id: string;
  status: string;
  updated_at: string;
}

/** The copy of all runs that a client keeps by `updated_since`, as the interface tells clients to. */
export class RunSync {
  readonly seen = new Map<string, SyncedRun>();
  readonly #marksFrom: "first page" | "every page";
  #mark: string | undefined;
  pages = 0;
  /** Pages after the first of each sync. */
  furtherPages = 0;

  /** @param marksFrom which pages of a sync its next mark is taken from: the interface says, from the first */
  constructor(marksFrom: "first page" | "every page" = "first page") {
    this.#marksFrom = marksFrom;
  }

  /** One sync of all its pages. @param between what goes on after each request @returns how many runs came */
  async sync(client: ContractClient, limit: number, between: () => unknown): Promise<number> {
    const since = this.#mark !== undefined && { updated_since: this.#mark };
    let received = 0;
    for (let total = 1; received < total; ) {
      const page = await client.get("/runs", { query: { limit, offset: received, ...since } });
      this.pages++;
      if (received > 0) this.furtherPages++;
      for (const row of page.runs) {
        const known = this.seen.get(row.id);
        if (known === undefined || known.updated_at <= row.updated_at) this.seen.set(row.id, row);
        const marks = received === 0 || this.#marksFrom === "every page";
        if (marks && (this.#mark === undefined || row.updated_at > this.#mark)) this.#mark = row.updated_at;
      }
      received += page.runs.length;
      total = page.runs.length === 0 ? 0 : page.total;
      await between();
    }
    return received;
  }
}
