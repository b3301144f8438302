import { LRUCache } from "lru-cache";
import type { RunListQuery, RunPage, View } from "../../storage/view/view.js";
import { keptBytes } from "../replies/compressed-reply.js";
import { tagOfHash } from "../replies/conditional-reply.js";
import { jsonBytesReply, type Reply } from "../replies/reply.js";
import type { HandlerRequest } from "../requests/route.js";
import { joinInSlices } from "./json-in-slices.js";
import { SharedWork, type Slices } from "./shared-work.js";
import type { ThreadSlices } from "./thread-slices.js";

/** Measured cost of a cache entry besides its bytes, rounded up. */
const ENTRY_OVERHEAD_BYTES = 1_150;

/** Pages up to this size may be made side by side: the lists that people look at. */
const SMALL_BYTES = 256 * 1024;
/** Pages above this size are made one after the other. Pages between the two sizes too, in a queue of their own. */
const LARGE_BYTES = 4 * 1024 * 1024;

const START = Buffer.from('{"runs":[');
const COMMA = Buffer.from(",");

/**
 * The JSON of lists of runs. A page is cached until any run changes, so that clients who ask for the same page between two changes, even
 * simultaneously, share one.
 */
export class RunPages {
  readonly #view: View;
  readonly #largeWork: SharedWork;
  readonly #mediumWork: SharedWork;
  readonly #slices: ThreadSlices;
  readonly #kept: LRUCache<string, Reply>;
  readonly #building = new Map<string, Promise<Reply>>();
  /** The view's version that all cached pages belong to. */
  #version = -1;

  /**
   * @param cacheBytes limit of the cache
   * @param slices time slices of the thread; pages that are made side by side share them
   */
  constructor(view: View, cacheBytes: number, slices: ThreadSlices) {
    this.#view = view;
    this.#largeWork = new SharedWork(slices);
    this.#mediumWork = new SharedWork(slices);
    this.#slices = slices;
    this.#kept = new LRUCache({
      maxSize: cacheBytes,
      sizeCalculation: (page, key) => keptBytes(page) + 2 * key.length + ENTRY_OVERHEAD_BYTES,
    });
  }

  /**
   * The page, at once if it is cached.
   * @param client that waits
   * @throws ServiceError `unavailable` if too many pages wait to be made
   */
  get(query: RunListQuery, baseUrl: string, client: Pick<HandlerRequest, "gone">): Reply | Promise<Reply> {
    const version = this.#view.fold.runsVersion;
    if (version !== this.#version) {
      this.#kept.clear();
      this.#version = version;
    }
    const key = keyOf(query, baseUrl);
    const kept = this.#kept.get(key);
    if (kept !== undefined) return kept;
    const buildKey = `${version} ${key}`;
    const building = this.#building.get(buildKey);
    if (building !== undefined) return building;
    // The content of the page is fixed here, before the first wait, so it belongs to this version.
    const page = this.#view.runPage(query, baseUrl);
    const bytes = page.unreadBytes + page.knownBytes;
    if (bytes > SMALL_BYTES) {
      const work = bytes > LARGE_BYTES ? this.#largeWork : this.#mediumWork;
      return work.get(buildKey, bytes, client.gone(), (slices) => this.#buildLarge(query, baseUrl, slices));
    }
    const started = this.#build(page, query, version, key).finally(() => this.#building.delete(buildKey));
    this.#building.set(buildKey, started);
    return started;
  }

  async #build(page: RunPage, query: RunListQuery, version: number, key: string): Promise<Reply> {
    const { runs, isWhole } = await page.read(() => this.#slices.giveWay());
    return this.#made(version, key, isWhole, joined(pageParts(runs, page.total, query)));
  }

  /** Makes a large page when its turn has come. */
  async #buildLarge(query: RunListQuery, baseUrl: string, slices: Slices): Promise<Reply> {
    slices.throwIfCancelled();
    const { runsVersion } = this.#view.fold;
    const page = this.#view.runPage(query, baseUrl);
    const { runs, isWhole } = await page.read(slices.giveWay);
    const { bytes, sha1 } = await joinInSlices(pageParts(runs, page.total, query), slices);
    return this.#made(runsVersion, keyOf(query, baseUrl), isWhole, bytes, tagOfHash(sha1));
  }

  #made(version: number, key: string, isWhole: boolean, json: Uint8Array, etag?: string): Reply {
    // Everybody who asked in the meantime gets this object.
    const page = jsonBytesReply(json, true);
    if (etag !== undefined) page.etag = etag;
    // A page with unreadable entries is not cached: the next read may succeed.
    if (isWhole && version === this.#version && version === this.#view.fold.runsVersion) this.#kept.set(key, page);
    return page;
  }
}

function pageParts(runs: readonly Uint8Array[], total: number, { limit, offset }: RunListQuery): Uint8Array[] {
  const end = Buffer.from(`],"total":${total},"limit":${limit},"offset":${offset}}`);
  return [START, ...runs.flatMap((run, at) => (at === 0 ? [run] : [COMMA, run])), end];
}

/** A unique key for each query: the texts come last, after their lengths. */
function keyOf(query: RunListQuery, baseUrl: string): string {
  const { programId, status, qualityStatus, serialNumber, updatedSinceUs, limit, offset, cells } = query;
  const numbers = `${limit} ${offset} ${updatedSinceUs ?? ""}`;
  const texts = [programId, status, qualityStatus, serialNumber, cells && JSON.stringify(cells)];
  if (texts.every((text) => text === undefined)) return `${numbers}  ${baseUrl}`;
  return `${numbers} ${texts.map((text) => text?.length ?? "").join(" ")} ${texts.join("")}${baseUrl}`;
}

/** In a buffer of its own: a slice of a shared buffer would keep that whole buffer in memory. */
function joined(parts: readonly Uint8Array[]): Uint8Array {
  const json = Buffer.allocUnsafeSlow(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    json.set(part, at);
    at += part.length;
  }
  return json;
}
