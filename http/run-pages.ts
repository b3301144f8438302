import { LRUCache } from "lru-cache";
import type { RunListQuery, View } from "../storage/view.js";
import { keptBytes } from "./compressed-reply.js";
import { jsonBytesReply, type Reply } from "./reply.js";

/** What an entry costs beside its bytes: key, objects, header lines and list links, by measurement rounded up. */
const ENTRY_OVERHEAD_BYTES = 1_150;

const START = Buffer.from('{"runs":[');
const COMMA = 0x2c;

/**
 * The JSON of lists of runs. A page that was made is kept until the next change of any run, so that what many clients ask for between two
 * changes is made once; whoever asks while it is being made gets the same bytes.
 */
export class RunPages {
  readonly #view: View;
  readonly #kept: LRUCache<string, Reply>;
  readonly #building = new Map<string, Promise<Reply>>();
  /** The view's, of all that is kept. */
  #version = -1;

  /** @param cacheBytes bound of what is kept */
  constructor(view: View, cacheBytes: number) {
    this.#view = view;
    this.#kept = new LRUCache({
      maxSize: cacheBytes,
      sizeCalculation: (page, key) => keptBytes(page) + 2 * key.length + ENTRY_OVERHEAD_BYTES,
    });
  }

  /** At once when it is kept. */
  get(query: RunListQuery, baseUrl: string): Reply | Promise<Reply> {
    const version = this.#view.runsVersion;
    if (version !== this.#version) {
      this.#kept.clear();
      this.#version = version;
    }
    const key = keyOf(query, baseUrl);
    const kept = this.#kept.get(key);
    if (kept !== undefined) return kept;
    const buildKey = `${version} ${key}`;
    let building = this.#building.get(buildKey);
    if (building === undefined) {
      building = this.#build(query, baseUrl, version, key).finally(() => this.#building.delete(buildKey));
      this.#building.set(buildKey, building);
    }
    return building;
  }

  async #build(query: RunListQuery, baseUrl: string, version: number, key: string): Promise<Reply> {
    // What the page shows is fixed before this first waits for anything: it is of that version.
    const { total, runs, isWhole } = await this.#view.listRuns(query, baseUrl);
    const json = join(runs, Buffer.from(`],"total":${total},"limit":${query.limit},"offset":${query.offset}}`));
    // What could not be read may be there the next time.
    const page = jsonBytesReply(json, isWhole);
    if (isWhole && version === this.#version && version === this.#view.runsVersion) this.#kept.set(key, page);
    return page;
  }
}

/** No two queries share it: the texts stand last, behind their lengths. */
function keyOf(query: RunListQuery, baseUrl: string): string {
  const { programId, status, qualityStatus, serialNumber, updatedSinceUs, limit, offset } = query;
  const numbers = `${limit} ${offset} ${updatedSinceUs ?? ""}`;
  const texts = [programId, status, qualityStatus, serialNumber];
  if (texts.every((text) => text === undefined)) return `${numbers}  ${baseUrl}`;
  return `${numbers} ${texts.map((text) => text?.length ?? "").join(" ")} ${texts.join("")}${baseUrl}`;
}

/** In memory of its own: a part of a shared piece would keep all of that piece. */
function join(entries: readonly Uint8Array[], end: Uint8Array): Uint8Array {
  let length = START.length + end.length + Math.max(0, entries.length - 1);
  for (const entry of entries) length += entry.length;
  const json = Buffer.allocUnsafeSlow(length);
  json.set(START, 0);
  let at = START.length;
  for (let nth = 0; nth < entries.length; nth++) {
    const entry = entries[nth] as Uint8Array;
    if (nth > 0) json[at++] = COMMA;
    json.set(entry, at);
    at += entry.length;
  }
  json.set(end, at);
  return json;
}
