import { LRUCache } from "lru-cache";
import type { RunListQuery, RunPage, View } from "../../storage/view/view.js";
import { keptBytes } from "../replies/compressed-reply.js";
import { tagOfHash } from "../replies/conditional-reply.js";
import { jsonBytesReply, type Reply } from "../replies/reply.js";
import type { HandlerRequest } from "../requests/route.js";
import { joinInSlices } from "./json-in-slices.js";
import { SharedWork, type Slices } from "./shared-work.js";
import type { ThreadSlices } from "./thread-slices.js";

/** What an entry costs beside its bytes: key, objects, header lines and list links, by measurement rounded up. */
const ENTRY_OVERHEAD_BYTES = 1_150;

/** Of the records and entries of a page, up to which any number of pages may be made side by side: the lists that people look at. */
const SMALL_BYTES = 256 * 1024;
/** Larger ones than this are made one after the other, and so are smaller ones, which do not wait for the former. */
const LARGE_BYTES = 4 * 1024 * 1024;

const START = Buffer.from('{"runs":[');
const COMMA = 0x2c;
const COMMA_BYTES = Uint8Array.of(COMMA);

/**
 * The JSON of lists of runs. A page that was made is kept until the next change of any run, so that what many clients ask for between two
 * changes is made once; whoever asks while it is being made gets the same bytes.
 */
export class RunPages {
  readonly #view: View;
  readonly #largeWork: SharedWork;
  readonly #mediumWork: SharedWork;
  readonly #slices: ThreadSlices;
  readonly #kept: LRUCache<string, Reply>;
  readonly #building = new Map<string, Promise<Reply>>();
  /** The view's, of all that is kept. */
  #version = -1;

  /**
   * @param cacheBytes bound of what is kept
   * @param slices of the thread, which those that are made side by side share
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
   * At once when it is kept.
   * @param client that waits
   * @throws ServiceError `unavailable` when too many pages wait to be made
   */
  get(query: RunListQuery, baseUrl: string, client: Pick<HandlerRequest, "gone">): Reply | Promise<Reply> {
    const version = this.#view.runsVersion;
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
    // What the page shows is fixed before this first waits for anything: it is of that version.
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
    return this.#made(version, key, isWhole, join(runs, pageEnd(page.total, query)));
  }

  /** A larger one, when its turn has come. */
  async #buildLarge(query: RunListQuery, baseUrl: string, slices: Slices): Promise<Reply> {
    slices.throwIfCancelled();
    const { runsVersion } = this.#view;
    const page = this.#view.runPage(query, baseUrl);
    const { runs, isWhole } = await page.read(slices.giveWay);
    const parts: Uint8Array[] = [START];
    for (const [at, run] of runs.entries()) parts.push(...(at === 0 ? [run] : [COMMA_BYTES, run]));
    const { bytes, sha1 } = await joinInSlices([...parts, pageEnd(page.total, query)], slices);
    return this.#made(runsVersion, keyOf(query, baseUrl), isWhole, bytes, tagOfHash(sha1));
  }

  #made(version: number, key: string, isWhole: boolean, json: Uint8Array, etag?: string): Reply {
    // Whoever asked for it meanwhile gets this very reply.
    const page = jsonBytesReply(json, true);
    if (etag !== undefined) page.etag = etag;
    // What could not be read may be there the next time.
    if (isWhole && version === this.#version && version === this.#view.runsVersion) this.#kept.set(key, page);
    return page;
  }
}

function pageEnd(total: number, { limit, offset }: RunListQuery): Uint8Array {
  return Buffer.from(`],"total":${total},"limit":${limit},"offset":${offset}}`);
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
