import type { JsonObject } from "./json/json.js";

/**
 * The catalogue of errors of the HTTP interface. `retryable` tells a client whether the same request can succeed later;
 * an error may override it.
 */
export const ERROR_CATALOGUE = {
  program_not_found: { status: 404, retryable: false, summary: "No program has this id." },
  run_not_found: { status: 404, retryable: false, summary: "No run has this id." },
  file_not_found: { status: 404, retryable: false, summary: "The run's manifest has no file of this name." },
  frame_not_found: { status: 404, retryable: false, summary: "No captured frame has this id." },
  not_shipped: {
    status: 404,
    retryable: true,
    summary:
      "At a hub: the plant does not have these bytes, or not yet. `cell` names the cell that may have them, and `public_url` its address, or is null.",
  },
  step_not_found: { status: 404, retryable: false, summary: "The run has no such step, or the step no such data." },
  webhook_not_found: { status: 404, retryable: false, summary: "No webhook has this id." },
  delivery_not_found: { status: 404, retryable: false, summary: "No webhook delivery has this id." },
  resend_not_found: { status: 404, retryable: false, summary: "No resend of this webhook has this id." },
  route_not_found: { status: 404, retryable: false, summary: "The interface has no such path." },
  format_not_available: {
    status: 404,
    retryable: true,
    summary: "The frame or step does not have this format, or not yet.",
  },
  method_not_allowed: { status: 405, retryable: false, summary: "The path exists, but not with this method." },
  read_only_hub: {
    status: 409,
    retryable: false,
    summary: "A hub only reads. `cell` names the cell that has the webhook, if it is known.",
  },
  webhook_deleted: { status: 409, retryable: false, summary: "The delivery's webhook was deleted." },
  rotation_in_progress: {
    status: 409,
    retryable: false,
    summary: "Two secrets of the webhook overlap already. `previous_secret_expires_at` says until when.",
  },
  resend_in_progress: {
    status: 409,
    retryable: true,
    summary: "A resend of the webhook is running. Wait until it is done, or cancel it.",
  },
  file_removed: {
    status: 410,
    retryable: false,
    summary: "Retention removed the file's bytes; its entry stays listed.",
  },
  precondition_failed: {
    status: 412,
    retryable: false,
    summary: "What is served now is not the version that If-Match or If-Unmodified-Since asks for.",
  },
  length_required: { status: 411, retryable: false, summary: "The request needs a Content-Length." },
  payload_too_large: { status: 413, retryable: false, summary: "The request body is over 64 KiB." },
  unsupported_media_type: { status: 415, retryable: false, summary: "The request body must be application/json." },
  range_not_satisfiable: { status: 416, retryable: false, summary: "The range lies outside the file." },
  bad_request: { status: 400, retryable: false, summary: "The request's framing is ambiguous or broken." },
  invalid_parameter: {
    status: 422,
    retryable: false,
    summary: "A parameter or body field has a value that is not allowed.",
  },
  malformed_json: { status: 422, retryable: false, summary: "The request body is not JSON." },
  misdirected_request: {
    status: 421,
    retryable: false,
    summary:
      "Without API keys: the request's Host is no address and no name of this service. `--allowed-host` adds names.",
  },
  unauthorized: { status: 401, retryable: false, summary: "An API key is needed, or the one sent is not valid." },
  forbidden: {
    status: 403,
    retryable: false,
    summary:
      "The API key lacks the scope that this needs, or a page of another origin asks to write or to follow changes.",
  },
  upgrade_required: {
    status: 426,
    retryable: false,
    summary: "This path opens a WebSocket, and the request is no WebSocket handshake of version 13.",
  },
  internal_error: { status: 500, retryable: true, summary: "The service failed; its log has the trace id." },
  unavailable: { status: 503, retryable: true, summary: "The service cannot answer this now." },
} as const satisfies Record<string, { status: number; retryable: boolean; summary: string }>;

export type ErrorCode = keyof typeof ERROR_CATALOGUE;

/** An error as data: threads post it to each other, and the answer's envelope shows it. */
export interface ErrorData {
  code: ErrorCode;
  message: string;
  params: JsonObject;
  /** Absent means what the catalogue says for the code. */
  retryable?: boolean;
}

/** A failure with a code of the interface. It is thrown only within a thread; its `data` crosses threads. */
export class ServiceError extends Error {
  readonly data: ErrorData;

  constructor(code: ErrorCode, message: string, params: JsonObject = {}, options: Pick<ErrorData, "retryable"> = {}) {
    super(message);
    this.name = "ServiceError";
    this.data = { code, message, params, ...options };
  }
}

/** The error for an id in the path that nothing has. */
export function unknownId(
  thing: "program" | "run" | "frame" | "webhook" | "delivery" | "resend",
  id: string,
): ServiceError {
  return new ServiceError(`${thing}_not_found`, `no ${thing} has this id`, {
    field: `${thing}_id`,
    in: "path",
    value: id,
  });
}
