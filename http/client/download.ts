import type { Connection } from "./follow-runs.js";
import { isPassing, pause, refusalOf, ServiceRequestError } from "./service-request-error.js";
import { SILENCE_MS, SilenceWatch } from "./silence-watch.js";

export interface DownloadOptions {
  signal?: AbortSignal;
}

/** Attempts in a row that brought no byte. */
const MOST_FAILURES = 8;
/** Pause before the next attempt, if the service has said nothing. It doubles with each attempt in a row, up to the longest. */
const RETRY_MS = 500;
const LONGEST_RETRY_MS = 10_000;

/** Does what `ServiceClient.download` says. @param silenceMs after so long without a byte the connection counts as broken */
export async function* download(
  { baseUrl, headers, fetch }: Connection,
  path: string,
  { signal }: DownloadOptions,
  silenceMs: number = SILENCE_MS,
): AsyncGenerator<Uint8Array, void, undefined> {
  let received = 0;
  let etag: string | null = null;
  for (let failures = 0; ; failures++) {
    let waitMs = Math.min(RETRY_MS * 2 ** failures, LONGEST_RETRY_MS);
    const watch = new SilenceWatch(signal, silenceMs);
    try {
      // If the file is another one by now, the answer is 412: its rest does not fit the bytes that were given.
      const rest = etag !== null && received > 0 ? { Range: `bytes=${received}-`, "If-Match": etag } : undefined;
      const response = await fetch(`${baseUrl}${path}`, {
        headers: { ...headers, ...rest },
        signal: watch.signal,
      });
      if (response.ok && response.body !== null) {
        if (rest !== undefined && response.status !== 206) throw new ServiceRequestError(response.status, undefined);
        etag = response.headers.get("ETag");
        for await (const chunk of chunksOf(response.body, watch)) {
          [received, failures] = [received + chunk.length, 0];
          yield chunk;
        }
        return;
      }
      const refusal = await refusalOf(response);
      if (!isPassing(response.status) || failures >= MOST_FAILURES) throw refusal;
      const seconds = Number(response.headers.get("Retry-After"));
      if (seconds > 0) waitMs = seconds * 1000;
    } catch (error) {
      // Without a tag the service could not say whether the rest belongs to these bytes.
      const cannotGoOn = received > 0 && etag === null;
      if (error instanceof ServiceRequestError || signal?.aborted || cannotGoOn || failures >= MOST_FAILURES)
        throw error;
    } finally {
      watch.close();
    }
    await pause(waitMs, signal);
  }
}

/** Not every browser can iterate a stream. */
async function* chunksOf(
  body: ReadableStream<Uint8Array>,
  watch: SilenceWatch,
): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = body.getReader();
  try {
    for (;;) {
      watch.begin();
      const { done, value } = await reader.read();
      watch.pause();
      if (done) return;
      yield value;
    }
  } finally {
    // Whoever stops early does not want the rest.
    await reader.cancel().catch(() => undefined);
  }
}
