import { hash } from "node:crypto";
import { ServiceError } from "../core/service-errors.js";
import { isStreamBody, type Reply, type StreamBody, type Validators } from "./reply.js";
import type { RequestHeaders } from "./request-headers.js";

/** Weak, so that the plain and the compressed form of an answer share it. 96 bits of SHA-1: a mistake is out of the question. */
function tagOf(body: Uint8Array): string {
  return `W/"${hash("sha1", body, "base64url").slice(0, 16)}"`;
}

/**
 * What a GET or HEAD that succeeded answers under its conditions (RFC 9110, sections 13 and 14): 304 when the client has it already; of a
 * download the one range that was asked for; else all of it, with what later conditions need.
 * @throws ServiceError range_not_satisfiable; the body is released then
 */
export function conditionalReply(reply: Reply, method: string, headers: RequestHeaders): Reply {
  const { body } = reply;
  if (body === null) return reply;
  if (!isStreamBody(body)) {
    // Of a reply that is kept it stands there from the last time.
    const etag = reply.etag || tagOf(body);
    reply.etag = etag;
    const { variesByEncoding = false } = reply;
    return hasTag(headers.get("if-none-match"), etag) ? { status: 304, body: null, etag, variesByEncoding } : reply;
  }
  const { validators } = reply;
  const own: [string, string][] = [["Accept-Ranges", "bytes"]];
  if (validators !== undefined) {
    own.push(["ETag", validators.etag], ["Last-Modified", httpDate(validators.modifiedAtUs)]);
    if (isUnchanged(validators, headers)) {
      body.release();
      return { status: 304, body: null, headers: own };
    }
  }
  const whole = { ...reply, headers: [...(reply.headers ?? []), ...own] };
  if (method !== "GET" || !rangeApplies(validators, headers)) return whole;
  const range = parseRange(headers.get("range"), body.totalBytes);
  if (range === undefined) return whole;
  if (range === "unsatisfiable") {
    body.release();
    throw new ServiceError("range_not_satisfiable", "the range lies outside the file", {
      field: "range",
      in: "header",
      value: (headers.get("range") as string).slice(0, 200),
      allowed: `bytes within the file's ${body.totalBytes}`,
      size_in_bytes: body.totalBytes,
    });
  }
  const { first, last } = range;
  const contentRange = ["Content-Range", `bytes ${first}-${last}/${body.totalBytes}`] as const;
  return { ...whole, status: 206, headers: [...whole.headers, contentRange], body: part(body, first, last) };
}

// Of an entity tag: optional weakness, then anything but quotes and controls (RFC 9110, section 8.8.3).
const TAG = /(?:W\/)?("[\x21\x23-\x7e\x80-\uffff]*")/g;

/** Weak comparison, as If-None-Match asks for. */
function hasTag(list: string | undefined, etag: string): boolean {
  if (list === undefined) return false;
  if (list.trim() === "*") return true;
  const opaque = etag.replace(/^W\//, "");
  for (const [, tag] of list.matchAll(TAG)) if (tag === opaque) return true;
  return false;
}

function isUnchanged({ etag, modifiedAtUs }: Validators, headers: RequestHeaders): boolean {
  const tags = headers.get("if-none-match");
  if (tags !== undefined) return hasTag(tags, etag);
  return parseHttpDate(headers.get("if-modified-since") ?? "") >= wholeSecondsMs(modifiedAtUs);
}

/** If-Range lets the range count only for the version that the client has a part of; strong comparison. */
function rangeApplies(validators: Validators | undefined, headers: RequestHeaders): boolean {
  const condition = headers.get("if-range");
  if (condition === undefined) return true;
  if (validators === undefined) return false;
  if (condition.startsWith('"')) return condition === validators.etag;
  return parseHttpDate(condition) === wholeSecondsMs(validators.modifiedAtUs);
}

// The three forms of RFC 9110, section 5.6.7: IMF-fixdate, that of RFC 850, and asctime's, which names no zone and is UTC all the same.
const HTTP_DATE =
  /^(?:[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT|[A-Z][a-z]{5,8}, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4})$/;

/** Milliseconds since the Unix epoch; NaN for what is no HTTP date, which does not count: Date.parse takes `2030` or `x 1` for one. */
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

/**
 * The bytes that a Range header asks for (RFC 9110, section 14.1.2). Undefined for what a server may leave out of account: no header,
 * another unit, several ranges, a broken one.
 */
export function parseRange(
  header: string | undefined,
  totalBytes: number,
): { first: number; last: number } | "unsatisfiable" | undefined {
  // Of any number of digits: clients that want the rest ask for it as far as the largest number that they have.
  const match = /^bytes=[ \t]*(?:(\d+)-(\d*)|-(\d+))[ \t]*$/i.exec(header ?? "");
  if (match === null) return undefined;
  const [, from = "", to = "", suffix] = match;
  if (suffix !== undefined) {
    const lengthBytes = Math.min(Number(suffix), totalBytes);
    return lengthBytes === 0 ? "unsatisfiable" : { first: totalBytes - lengthBytes, last: totalBytes - 1 };
  }
  const first = Number(from);
  const last = to === "" ? totalBytes - 1 : Math.min(Number(to), totalBytes - 1);
  if (to !== "" && BigInt(to) < BigInt(from)) return undefined;
  return first >= totalBytes ? "unsatisfiable" : { first, last };
}

function part(body: StreamBody, first: number, last: number): StreamBody {
  return {
    totalBytes: last - first + 1,
    read: (position, lengthBytes, signal, into) => body.read(first + position, lengthBytes, signal, into),
    release: () => body.release(),
  };
}
