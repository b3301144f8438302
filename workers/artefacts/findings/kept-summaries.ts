import { LRUCache } from "lru-cache";
import type { FindingQuery } from "../../../storage/findings/finding-query.js";
import type { ProgramSummary } from "./program-summary.js";

/** Some million runs' worth: a program with a million runs of ten checks takes 150 MB. */
const KEPT_BYTES = 192 * 1024 * 1024;

/** What has been counted for the last questions, so that the next answer to one of them needs to read the new runs only. */
export class KeptSummaries {
  readonly #kept = new LRUCache<string, ProgramSummary>({ maxSize: KEPT_BYTES });
  #refused = "";

  /** Whoever takes one gives it back, unless it fails. Undefined if there is none, or if it has counted too much for this question. */
  take(query: FindingQuery): ProgramSummary | undefined {
    const key = keyOf(query);
    const found = this.#kept.get(key);
    if (found === undefined || found.untilSequence > query.untilSequence) return undefined;
    this.#kept.delete(key);
    return found;
  }

  /** Where there is no room, only a question that is asked twice in a row takes the place of others: most of them come once. */
  keep(query: FindingQuery, summary: ProgramSummary): void {
    const key = keyOf(query);
    const size = summary.bytes;
    const fits = this.#kept.calculatedSize + size <= KEPT_BYTES;
    if (summary.holdsAll && (fits || this.#refused === key)) this.#kept.set(key, summary, { size });
    else this.#refused = key;
  }
}

function keyOf({ dataDirectory, programId, sinceUs, untilUs, serialNumber, check }: FindingQuery): string {
  return JSON.stringify([dataDirectory, programId, sinceUs, untilUs, serialNumber, check]);
}
