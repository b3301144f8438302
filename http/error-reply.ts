import { ERROR_CATALOGUE, type ErrorData } from "../core/service-errors.js";
import { jsonReply, type Reply } from "./reply.js";

/** The envelope of decisions.md (Errors), with the catalogue's status. A 405 carries Allow. */
export function errorReply(error: ErrorData, traceId: string): Reply {
  const { status, retryable } = ERROR_CATALOGUE[error.code];
  const { code, message, params } = error;
  const reply = jsonReply({ code, message, params, trace_id: traceId, retryable }, status);
  if (code === "method_not_allowed" && Array.isArray(params.allow))
    reply.headers = [["Allow", params.allow.join(", ")]];
  return reply;
}
