import type { HeaderLines } from "./reply.js";
import type { RequestHeaders } from "./request-headers.js";

/** Headers of answers that a page of another origin may read beside the safelisted ones. */
const EXPOSED =
  "X-Trace-ID, ETag, Accept-Ranges, Content-Range, Content-Length, Content-Disposition, Content-Encoding, Allow, Retry-After";
const ALLOWED_HEADERS =
  "Authorization, Content-Type, If-None-Match, If-Modified-Since, If-Range, Range, traceparent, tracestate";
const PREFLIGHT_SECONDS = 600;

/** Which pages of other origins may use the interface, reading and writing (Fetch standard, CORS protocol). No cookies are ever involved. */
export class CrossOrigin {
  readonly #origins: readonly string[];

  /** @param origins such as `https://dashboard.factory`, or `*` for any; empty: none */
  constructor(origins: readonly string[]) {
    this.#origins = origins;
  }

  /** Further lines of an answer, for a page of another origin where one may read it; undefined: none. */
  linesFor(headers: RequestHeaders): HeaderLines | undefined {
    if (this.#origins.length === 0) return undefined;
    const allowed = this.#allowed(headers);
    const vary: HeaderLines = this.#origins.includes("*") ? [] : [["Vary", "Origin"]];
    if (allowed === undefined) return vary;
    return [["Access-Control-Allow-Origin", allowed], ["Access-Control-Expose-Headers", EXPOSED], ...vary];
  }

  /** Further lines for the answer to a preflight request. */
  preflightHeaders(headers: RequestHeaders, methods: string): HeaderLines {
    if (headers.count("access-control-request-method") === 0 || this.#allowed(headers) === undefined) return [];
    return [
      ["Access-Control-Allow-Methods", methods],
      ["Access-Control-Allow-Headers", ALLOWED_HEADERS],
      ["Access-Control-Max-Age", String(PREFLIGHT_SECONDS)],
    ];
  }

  #allowed(headers: RequestHeaders): string | undefined {
    const origin = headers.get("origin");
    if (origin === undefined) return undefined;
    if (this.#origins.includes("*")) return "*";
    return this.#origins.includes(origin) ? origin : undefined;
  }
}
