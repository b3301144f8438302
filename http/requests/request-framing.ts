import { LIMITS } from "../../core/limits.js";
import { ServiceError } from "../../core/service-errors.js";
import type { RequestHeaders } from "./request-headers.js";

// A name, an IPv4 address or a bracketed IPv6 address, and an optional port (RFC 3986, section 3.2). The host goes into links.
const HOST = /^(?:[A-Za-z0-9._~-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/;

/** The last valid Host: most requests have the same one, and comparing is much cheaper than the pattern. */
let soundHost = "localhost";

function isHost(text: string): boolean {
  if (text === soundHost) return true;
  if (!HOST.test(text)) return false;
  soundHost = text;
  return true;
}

/** The form of all registered methods. Anything else may be the rest of a body that was longer than its Content-Length. */
const METHOD = /^[A-Z][A-Z-]{0,31}$/;

/** The request line, without the query. */
export interface RequestTarget {
  readonly method: string;
  readonly path: string;
}

/**
 * The error for a request whose end two parsers could see differently, or whose body is too large. Nothing more may be
 * read from the connection of such a request.
 * @returns undefined if the request is fine
 */
export function framingFault(target: RequestTarget, headers: RequestHeaders): ServiceError | undefined {
  const { method, path } = target;
  if (method !== "GET" && !METHOD.test(method)) {
    return new ServiceError("bad_request", "the request's method must be written in upper-case letters", {
      field: "method",
      value: method.slice(0, 200),
      allowed: "upper-case letters, such as GET",
    });
  }
  if (!path.startsWith("/") && path !== "*") {
    return new ServiceError("bad_request", "the request's target must be a path that starts with a slash", {
      field: "target",
      value: path.slice(0, 200),
      allowed: "a path that starts with a slash",
    });
  }
  if (headers.count("transfer-encoding") > 0) {
    return new ServiceError("length_required", "Transfer-Encoding is not accepted: send a Content-Length", {
      field: "transfer-encoding",
      in: "header",
      value: headers.get("transfer-encoding") ?? "",
      allowed: "absent",
    });
  }
  const host = headers.sole("host");
  if (host === undefined || !isHost(host)) {
    return badHeader("host", headers, "given exactly once, as a host with an optional port");
  }
  const lengths = headers.count("content-length");
  if (lengths === 0) return method === "PATCH" ? missingLength() : undefined;
  const length = headers.get("content-length") as string;
  if (lengths > 1 || !/^\d{1,9}$/.test(length))
    return badHeader("content-length", headers, "one number of 1 to 9 digits");
  if (Number(length) > LIMITS.httpBodyBytes) {
    return new ServiceError("payload_too_large", `the request body must have at most ${LIMITS.httpBodyBytes} bytes`, {
      field: "content-length",
      in: "header",
      value: length,
      allowed: `at most ${LIMITS.httpBodyBytes} bytes`,
    });
  }
  return undefined;
}

/** The error for a request that needs a body but does not say how long it is. */
export function missingLength(): ServiceError {
  return new ServiceError("length_required", "this request needs a body with a Content-Length", {
    field: "content-length",
    in: "header",
    value: null,
    allowed: `one number, at most ${LIMITS.httpBodyBytes}`,
  });
}

function badHeader(field: string, headers: RequestHeaders, allowed: string): ServiceError {
  const value = headers.get(field)?.slice(0, 200) ?? null;
  return new ServiceError("bad_request", `the header ${field} must be ${allowed}`, {
    field,
    in: "header",
    value,
    allowed,
  });
}
