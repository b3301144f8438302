import { ServiceError } from "../../core/service-errors.js";
import type { HeaderLines } from "../replies/reply.js";
import type { RequestHeaders } from "./request-headers.js";

/** Headers that a page of another origin may read, in addition to those that the standard safelists. */
const EXPOSED =
  "X-Trace-ID, ETag, Accept-Ranges, Content-Range, Content-Length, Content-Disposition, Content-Encoding, Allow, Retry-After, " +
  "X-Stride, X-X-Pitch-Mm, X-Y-Pitch-Mm, X-X-Origin-Mm, X-Y-Origin-Mm";
const ALLOWED_HEADERS =
  "Authorization, Content-Type, If-Match, If-None-Match, If-Modified-Since, If-Unmodified-Since, If-Range, Last-Event-ID, Range, traceparent, tracestate";
const PREFLIGHT_SECONDS = 600;

/** Which pages of other origins may read and write (CORS protocol of the Fetch standard). There are no cookies. */
export class CrossOrigin {
  readonly #origins: readonly string[];

  /** @param origins such as `https://dashboard.factory`, or `*` for any; empty: none */
  constructor(origins: readonly string[]) {
    this.#origins = origins;
  }

  /** Header lines that let a page of another origin read the answer; undefined: none. */
  linesFor(headers: RequestHeaders): HeaderLines | undefined {
    if (this.#origins.length === 0) return undefined;
    const allowed = this.#allowed(headers);
    const vary: HeaderLines = this.#origins.includes("*") ? [] : [["Vary", "Origin"]];
    if (allowed === undefined) return vary;
    return [["Access-Control-Allow-Origin", allowed], ["Access-Control-Expose-Headers", EXPOSED], ...vary];
  }

  preflightHeaders(headers: RequestHeaders, methods: string): HeaderLines {
    if (headers.count("access-control-request-method") === 0 || this.#allowed(headers) === undefined) return [];
    return [
      ["Access-Control-Allow-Methods", methods],
      ["Access-Control-Allow-Headers", ALLOWED_HEADERS],
      ["Access-Control-Max-Age", String(PREFLIGHT_SECONDS)],
    ];
  }

  /**
   * Lets a page follow changes only if it may write: it would hold a connection that is meant for others.
   * @throws ServiceError forbidden
   */
  checkStream(headers: RequestHeaders, baseUrl: string): void {
    if (!this.#mayWrite(headers, baseUrl)) throw refused(headers, "follow changes");
  }

  /**
   * Lets a page open a WebSocket only if its origin is the service's own or an allowed one. Browsers always send Origin with it, and let the page
   * read all messages.
   * @throws ServiceError forbidden
   */
  checkSocket(headers: RequestHeaders, baseUrl: string): void {
    const origin = headers.get("origin");
    if (origin === undefined || this.#allowed(headers) !== undefined) return;
    if (!isOwnOrigin(origin, headers.get("host"), baseUrl)) throw refused(headers, "open a WebSocket");
  }

  /**
   * Lets a page write only if its origin is the service's own or an allowed one. Browsers send Sec-Fetch-Site; older ones at least send
   * Origin. Programs other than browsers send neither.
   * @param baseUrl what links start with for this request
   * @throws ServiceError forbidden
   */
  checkWrite(headers: RequestHeaders, baseUrl: string): void {
    if (!this.#mayWrite(headers, baseUrl)) throw refused(headers, "write");
  }

  #mayWrite(headers: RequestHeaders, baseUrl: string): boolean {
    const origin = headers.get("origin");
    const site = headers.get("sec-fetch-site");
    if (site === undefined && origin === undefined) return true;
    if (site === "same-origin" || site === "none") return true;
    if (this.#allowed(headers) !== undefined) return true;
    return site === undefined && isOwnOrigin(origin as string, headers.get("host"), baseUrl);
  }

  #allowed(headers: RequestHeaders): string | undefined {
    const origin = headers.get("origin");
    if (origin === undefined) return undefined;
    if (this.#origins.includes("*")) return "*";
    return this.#origins.includes(origin) ? origin : undefined;
  }
}

function refused(headers: RequestHeaders, what: string): ServiceError {
  return new ServiceError(
    "forbidden",
    `pages of this origin may not ${what}: to allow it, start the service with --cors-origin`,
    {
      field: "origin",
      in: "header",
      value: headers.get("origin")?.slice(0, 200) ?? null,
      allowed: "absent, the service's own origin, or one of --cors-origin",
    },
  );
}

/** Compares the host only, as a proxy may change the scheme; or else the whole origin with that of `--base-url`. */
function isOwnOrigin(origin: string, host: string | undefined, baseUrl: string): boolean {
  return /^https?:\/\/(.*)$/.exec(origin)?.[1] === host?.toLowerCase() || origin === new URL(baseUrl).origin;
}
