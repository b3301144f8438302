import { ERROR_CATALOGUE, type ErrorData } from "../../core/service-errors.js";
import { jsonReply, type Reply } from "./reply.js";

/** The error envelope, with the status from the catalogue. A 405 carries Allow, a 401 WWW-Authenticate, a 426 Upgrade, a 416 Content-Range, a 503 Retry-After. */
export function errorReply(error: ErrorData, traceId: string): Reply {
  const { status, retryable: isUsuallyRetryable } = ERROR_CATALOGUE[error.code];
  const { code, message, params, retryable = isUsuallyRetryable } = error;
  const reply = jsonReply({ code, message, params, trace_id: traceId, retryable }, status);
  if (code === "method_not_allowed" && Array.isArray(params.allow)) {
    reply.headers = [["Allow", params.allow.join(", ")]];
  } else if (code === "unauthorized") {
    reply.headers = [["WWW-Authenticate", "Bearer"]];
  } else if (code === "upgrade_required") {
    reply.headers = [
      ["Upgrade", "websocket"],
      ["Sec-WebSocket-Version", "13"],
    ];
  } else if (code === "range_not_satisfiable") {
    reply.headers = [["Content-Range", `bytes */${params.size_in_bytes}`]];
  } else if (code === "unavailable" && typeof params.retry_after_seconds === "number") {
    reply.headers = [["Retry-After", String(params.retry_after_seconds)]];
  }
  return reply;
}
