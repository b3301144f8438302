/** What went wrong with an attempt, as text for people. */
import { shortageOf } from "../../../storage/disk/file-system-error.js";
import { NameLookupError } from "./name-lookups.js";
import { AddressRefusedError } from "./receiver-connector.js";

/** Why an answer with this status does not count as taken; null if it does. */
export function statusFault(statusCode: number | null): string | null {
  if (statusCode === null) return "no answer";
  if (statusCode >= 200 && statusCode < 300) return null;
  if (statusCode >= 300 && statusCode < 400) return `the receiver answered ${statusCode}: redirects are not followed`;
  return `the receiver answered ${statusCode}`;
}

/** Errors with which undici ends a connection although an answer has begun, by the error's message. */
const REFUSED_ANSWERS: Record<string, string> = {
  "bad response": "the receiver answered 100 Continue, which the service did not ask for",
  "bad upgrade": "the receiver answered with another protocol",
};

/** True if the connection was closed, by the receiver or on the way to it. */
export function isClosed(error: Error): boolean {
  if (error.message in REFUSED_ANSWERS) return false;
  const { code } = error as { code?: unknown };
  return code === "UND_ERR_SOCKET" || code === "ECONNRESET" || code === "EPIPE";
}

/** Says for people what the machine lacked, so that it could not even try to connect; null for any other error. */
export function lackOf(error: Error): string | null {
  // Several addresses of one name were tried.
  const errors = error instanceof AggregateError ? error.errors : [error];
  const lacks = errors.map(shortageOf);
  return lacks.includes(null) ? null : (lacks[0] ?? null);
}

/** Most characters of an error's text that are kept. */
const ERROR_CHARACTERS = 500;

const CLOSED = "the connection was closed before an answer came";

const FAILURES: Record<string, string> = {
  ECONNREFUSED: "the connection was refused",
  ECONNRESET: "the connection was reset",
  EPIPE: "the connection was reset",
  ENOTFOUND: "the host name does not resolve",
  EAI_AGAIN: "the host name cannot be resolved at the moment",
  EHOSTUNREACH: "the host cannot be reached",
  ENETUNREACH: "the network cannot be reached",
  EADDRNOTAVAIL: "the host cannot be reached",
  EACCES: "the system does not allow the connection",
  EPERM: "the system does not allow the connection",
  EPROTO: "TLS with the receiver failed",
  ETIMEDOUT: "the connection timed out",
  UND_ERR_CONNECT_TIMEOUT: "the connection timed out",
  UND_ERR_SOCKET: CLOSED,
  UND_ERR_INFO: CLOSED,
  // From undici's parser, for a status below 100.
  ERR_ASSERTION: "the answer is not HTTP",
  UND_ERR_HEADERS_OVERFLOW: "the answer's headers are too large",
};

/** Says for people what went wrong. It tells no more than the address and the kind of failure. */
export function failureText(error: Error): string {
  if (error instanceof AddressRefusedError) return error.message;
  const { code } = error as { code?: unknown };
  if (typeof code === "string") {
    if (code.startsWith("HPE_")) return `the answer is not HTTP (${code})`;
    if (code.startsWith("ERR_SSL_")) return `${FAILURES.EPROTO} (${code})`;
    if (error instanceof NameLookupError) return `${FAILURES[code] ?? FAILURES.ENOTFOUND} (${code})`;
    const known = REFUSED_ANSWERS[error.message] ?? FAILURES[code];
    if (known !== undefined) return `${known} (${code})`;
  }
  // Several addresses of one name were tried: the first error says enough.
  if (error instanceof AggregateError && error.errors[0] instanceof Error) return failureText(error.errors[0]);
  return error.message.slice(0, ERROR_CHARACTERS).toWellFormed();
}
