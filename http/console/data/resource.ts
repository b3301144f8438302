/** Answers of the interface by their path: read once, shared by all that draw them, and read again when they may have changed. */
import { type Signal, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiError, getJson } from "./api.js";
import { liveState } from "./live.js";

export interface Resource<Shape> {
  /** Undefined until the first answer; after an error the last answer stays. */
  readonly data: Signal<Shape | undefined>;
  readonly error: Signal<ApiError | undefined>;
  /** Reads it again. While a read is under way, one more follows it. */
  reload(): Promise<void>;
}

/** Pause after a read that failed, but may succeed later. It doubles with each such read, up to the longest. */
const RETRY_MS = 2_000;
const LONGEST_RETRY_MS = 32_000;

type Read<Shape> = (signal: AbortSignal) => Promise<Shape>;

class StoredResource<Shape> implements Resource<Shape> {
  readonly data: Signal<Shape | undefined> = signal(undefined);
  readonly error: Signal<ApiError | undefined> = signal(undefined);
  users = 0;
  readonly #read: Read<Shape>;
  readonly #ended = new AbortController();
  #reading: Promise<void> | undefined;
  #isStale = false;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;
  #retryMs = RETRY_MS;

  constructor(read: Read<Shape>) {
    this.#read = read;
  }

  async reload(): Promise<void> {
    clearTimeout(this.#retryTimer);
    this.#isStale = true;
    this.#reading ??= this.#readWhileStale();
    await this.#reading;
  }

  end(): void {
    clearTimeout(this.#retryTimer);
    this.#ended.abort();
  }

  async #readWhileStale(): Promise<void> {
    while (this.#isStale && !this.#ended.signal.aborted) {
      this.#isStale = false;
      try {
        const data = await this.#read(this.#ended.signal);
        if (this.#ended.signal.aborted) return;
        this.data.value = data;
        this.error.value = undefined;
        this.#retryMs = RETRY_MS;
      } catch (error) {
        if (this.#ended.signal.aborted) return;
        this.error.value =
          error instanceof ApiError ? error : new ApiError(0, "internal_error", (error as Error).message);
      }
    }
    if (this.error.value !== undefined) this.#retryAfter(this.error.value);
    // Cleared right after the last look at it: a reload that comes now must begin anew.
    this.#reading = undefined;
  }

  /** Nobody may be at the page, so it asks again by itself. */
  #retryAfter({ status, isRetryable, params }: ApiError): void {
    // While the service is away, the stream of changes looks for it.
    if (!isRetryable || (status === 0 && liveState.peek() !== "live")) return;
    const pauseMs = Math.max(this.#retryMs, (params.retry_after_seconds ?? 0) * 1000);
    this.#retryTimer = setTimeout(() => {
      this.#retryMs = Math.min(2 * this.#retryMs, LONGEST_RETRY_MS);
      if (this.users > 0) void this.reload();
    }, pauseMs);
  }
}

/** Answers that nobody draws any more stay until there are this many: going back shows them at once. */
const KEPT = 60;
const resources = new Map<string, StoredResource<unknown>>();

/**
 * The answer to GET `path`, read when the component appears. @param path null: nothing is read @param read instead of GET, for answers of
 * several requests; `path` then only names them
 */
export function useResource<Shape>(path: string | null, read?: Read<Shape>): Resource<Shape> {
  const resource = (path === null ? NOTHING : stored(path, read)) as StoredResource<Shape>;
  useEffect(() => {
    resource.users++;
    if (path !== null) void resource.reload();
    return () => {
      resource.users--;
      forgetOldest();
    };
  }, [resource]);
  const isLive = liveState.value === "live";
  useEffect(() => {
    // What failed while the service was away is read again when it is back.
    if (isLive && resource.error.peek() !== undefined) void resource.reload();
  }, [resource, isLive]);
  return resource;
}

function stored<Shape>(path: string, read: Read<Shape> | undefined): StoredResource<unknown> {
  let resource = resources.get(path);
  if (resource === undefined) {
    resource = new StoredResource<unknown>(read ?? ((signal) => getJson<Shape>(path, signal)));
    resources.set(path, resource);
  }
  return resource;
}

function forgetOldest(): void {
  for (const [path, resource] of resources) {
    if (resources.size <= KEPT) return;
    if (resource.users === 0) {
      resource.end();
      resources.delete(path);
    }
  }
}

/** Forgets every answer, so that nothing of them is left when the page is locked. */
export function forgetAll(): void {
  for (const resource of resources.values()) {
    resource.end();
    resource.data.value = undefined;
  }
  resources.clear();
}

const NOTHING = new StoredResource<unknown>(() => Promise.resolve(undefined));
