import type { JsonObject, JsonValue } from "../json/json.js";

/** Codes of a `refuse` frame that answers a message and is stored as a record (workers/cell-link/README.md). Other codes close the connection. */
export const MESSAGE_REFUSAL_CODES = [
  "invalid_message",
  "not_found",
  "already_exists",
  "illegal_transition",
  "id_out_of_order",
  "name_taken",
  "out_of_sequence",
  "size_mismatch",
  "too_large",
] as const;

export type MessageRefusalCode = (typeof MESSAGE_REFUSAL_CODES)[number];

export interface Refusal<Code extends string = MessageRefusalCode> {
  code: Code;
  message: string;
  /** The field's `path`, the `value` sent and what is `allowed`, as far as they apply. */
  params: JsonObject;
}

/** Thrown while a message is decided, before anything of it is applied. It carries the refusal as data. */
export class RefusedError extends Error {
  readonly refusal: Refusal;

  constructor(code: MessageRefusalCode, message: string, params: JsonObject = {}) {
    super(message);
    this.name = "RefusedError";
    this.refusal = { code, message, params };
  }
}

/** A path can contain long keys of the producer's. Refusals are stored, so the path is cut as the value is. */
const PATH_CHARACTERS = 500;

/** A field's value breaks a rule: `<path> must be <allowed>`. */
export function invalid(fullPath: string, value: unknown, allowed: JsonValue): RefusedError {
  const path = fullPath.length <= PATH_CHARACTERS ? fullPath : `${fullPath.slice(0, PATH_CHARACTERS).toWellFormed()}…`;
  const wanted = Array.isArray(allowed) ? `one of ${allowed.join(", ")}` : String(allowed);
  return new RefusedError("invalid_message", `${path === "" ? "the message" : path} must be ${wanted}`, {
    path,
    value: printable(value),
    allowed,
  });
}

/** A value of any kind as JSON, short enough for an answer and a log line. */
function printable(value: unknown): JsonValue {
  if (value === undefined) return null;
  if (value === null || typeof value === "boolean") return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? String(value));
  return text.length <= 200 ? text.toWellFormed() : `${text.slice(0, 200).toWellFormed()}…`;
}
