import { hash } from "node:crypto";
import { ServiceError } from "../../core/service-errors.js";
import type { RequestHeaders } from "../requests/request-headers.js";
import { parseRange } from "./byte-range.js";
import { type HeaderLines, isStreamBody, type Reply, type StreamBody, type Validators } from "./reply.js";

/**
 * The ETag of an answer. It is weak, so that the plain and the compressed answer share it. 96 bits of SHA-1 are enough.
 * @param sha1 of the body, in base64url
 */
export function tagOfHash(sha1: string): string {
  return `W/"${sha1.slice(0, 16)}"`;
}

/**
 * The answer to a conditional GET or HEAD, in the order of RFC 9110, section 13.2.2: 412 if the client asks for another version; 304 if it has
 * this version already; for a download the requested range; else the whole reply, with its validators.
 * @throws ServiceError precondition_failed, range_not_satisfiable; the body is then released
 */
export function conditionalReply(reply: Reply, method: string, headers: RequestHeaders): Reply {
  const { body } = reply;
  if (body === null) return reply;
  if (!isStreamBody(body)) {
    // A cached reply keeps its tag.
    const etag = reply.etag || tagOfHash(hash("sha1", body, "base64url"));
    reply.etag = etag;
    if (isUnchanged(etag, undefined, headers)) {
      const variesByEncoding = reply.variesByEncoding ?? false;
      return { status: 304, body: null, headers: cacheHeaders(reply), etag, variesByEncoding };
    }
    return reply;
  }
  try {
    return conditionalDownload(reply, body, method, headers);
  } catch (error) {
    body.release();
    throw error;
  }
}

function conditionalDownload(reply: Reply, body: StreamBody, method: string, headers: RequestHeaders): Reply {
  const { validators } = reply;
  const own: [string, string][] = [["Accept-Ranges", "bytes"]];
  if (validators !== undefined) {
    own.push(["ETag", validators.etag], ["Last-Modified", httpDate(validators.modifiedAtUs)]);
  }
  if (isUnchanged(validators?.etag, validators?.modifiedAtUs, headers)) {
    body.release();
    return { status: 304, body: null, headers: [...cacheHeaders(reply), ...own] };
  }
  const whole = { ...reply, headers: [...(reply.headers ?? []), ...own] };
  if (method !== "GET" || !rangeApplies(validators, headers)) return whole;
  const range = parseRange(headers.get("range"), body.totalBytes);
  if (range === undefined) return whole;
  if (range === "unsatisfiable") {
    throw new ServiceError("range_not_satisfiable", "the requested range lies outside the file", {
      field: "range",
      in: "header",
      value: (headers.get("range") as string).slice(0, SHOWN_CHARACTERS),
      allowed: `bytes within the file's ${body.totalBytes}`,
      size_in_bytes: body.totalBytes,
    });
  }
  const { first, last } = range;
  const contentRange = ["Content-Range", `bytes ${first}-${last}/${body.totalBytes}`] as const;
  return { ...whole, status: 206, headers: [...whole.headers, contentRange], body: part(body, first, last) };
}

/** The headers of a reply that its 304 has too (RFC 9110, section 15.4.5). */
function cacheHeaders({ headers = [] }: Reply): HeaderLines {
  return headers.filter(([name]) => name === "Cache-Control" || name === "Vary");
}

const SHOWN_CHARACTERS = 200;

/**
 * Whether the client already has this version. A condition on a time counts only if there is none on a tag.
 * @param etag undefined: the version is unknown
 * @param modifiedAtUs undefined: unknown, and conditions on the time are ignored
 * @throws ServiceError precondition_failed if the client asks for another version
 */
function isUnchanged(etag: string | undefined, modifiedAtUs: number | undefined, headers: RequestHeaders): boolean {
  const ifMatch = headers.get("if-match");
  if (ifMatch !== undefined) {
    if (!hasTag(ifMatch, etag, "strong")) throw anotherVersion("if-match", ifMatch, strongTagsOf(etag));
  } else {
    const until = headers.get("if-unmodified-since");
    // An invalid date is NaN, and the comparison false.
    if (until !== undefined && modifiedAtUs !== undefined && parseHttpDate(until) < wholeSecondsMs(modifiedAtUs)) {
      throw anotherVersion("if-unmodified-since", until, `${httpDate(modifiedAtUs)} or later`);
    }
  }
  const had = headers.get("if-none-match");
  if (had !== undefined) return hasTag(had, etag, "weak");
  const since = headers.get("if-modified-since");
  return since !== undefined && modifiedAtUs !== undefined && parseHttpDate(since) >= wholeSecondsMs(modifiedAtUs);
}

/**
 * Checks If-Match of a write. JSON answers have weak tags, and If-Match compares strongly, so no tag can match and only `*` is accepted. A
 * client that names a version must not overwrite another one by mistake.
 * @throws ServiceError precondition_failed
 */
export function checkWriteCondition(ifMatch: string | undefined): void {
  if (ifMatch !== undefined && ifMatch.trim() !== "*")
    throw anotherVersion("if-match", ifMatch, strongTagsOf(undefined));
}

function strongTagsOf(etag: string | undefined): string {
  return etag === undefined || etag.startsWith("W/")
    ? "only *, because If-Match needs a strong ETag, which only files have"
    : `* or ${etag}`;
}

function anotherVersion(field: string, value: string, allowed: string): ServiceError {
  const message = `the header ${field} does not match the version that is served`;
  const shown = { field, in: "header", value: value.slice(0, SHOWN_CHARACTERS), allowed };
  return new ServiceError("precondition_failed", message, shown);
}

// One entry of a list, perhaps empty: W/ for weak, then quoted text without quotes and controls (RFC 9110, sections 5.6.1 and 8.8.3).
const LISTED_TAG = /[ \t]*(?:(W\/)?("[\x21\x23-\x7e\x80-\uffff]*")[ \t]*)?(?:,|$)/y;

/** Whether the list names this version. In strong comparison a weak tag matches nothing. A malformed list names nothing. */
function hasTag(list: string, etag: string | undefined, comparison: "strong" | "weak"): boolean {
  if (list.trim() === "*") return true;
  if (etag === undefined) return false;
  const isWeak = etag.startsWith("W/");
  const opaque = isWeak ? etag.slice(2) : etag;
  let isNamed = false;
  LISTED_TAG.lastIndex = 0;
  while (LISTED_TAG.lastIndex < list.length) {
    const match = LISTED_TAG.exec(list);
    if (match === null) return false;
    const [, weakness, tag] = match;
    isNamed ||= tag === opaque && (comparison === "weak" || (!isWeak && weakness === undefined));
  }
  return isNamed;
}

/** Whether If-Range allows the range: only for the version that the client has a part of, by strong comparison. */
function rangeApplies(validators: Validators | undefined, headers: RequestHeaders): boolean {
  const condition = headers.get("if-range");
  if (condition === undefined) return true;
  if (validators === undefined) return false;
  if (condition.startsWith('"')) return condition === validators.etag;
  return parseHttpDate(condition) === wholeSecondsMs(validators.modifiedAtUs);
}

// The three forms of RFC 9110, section 5.6.7: IMF-fixdate, RFC 850, and asctime, which names no time zone but means UTC.
const HTTP_DATE =
  /^(?:[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT|[A-Z][a-z]{5,8}, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4})$/;

/** Milliseconds since the Unix epoch; NaN if it is no HTTP date. Date.parse alone would accept `2030` or `x 1`. */
export function parseHttpDate(text: string): number {
  if (!HTTP_DATE.test(text)) return Number.NaN;
  return Date.parse(text.endsWith("GMT") ? text : `${text} GMT`);
}

function wholeSecondsMs(timeUs: number): number {
  return Math.floor(timeUs / 1_000_000) * 1000;
}

function httpDate(timeUs: number): string {
  return new Date(wholeSecondsMs(timeUs)).toUTCString();
}

function part(body: StreamBody, first: number, last: number): StreamBody {
  return {
    totalBytes: last - first + 1,
    read: (position, lengthBytes, signal, into) => body.read(first + position, lengthBytes, signal, into),
    release: () => body.release(),
  };
}
