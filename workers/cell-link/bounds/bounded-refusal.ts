import type { JsonObject, JsonValue } from "../../../core/json/json.js";
import { LIMITS } from "../../../core/limits.js";
import type { Refusal } from "../../../core/link/refusal.js";

const MAXIMUM_ITEMS = 64;

/**
 * The refusal with its texts and lists cut short. So it fits an answer and a record, and 1,024 of them fit in memory.
 * The path or the value in it may be as long as the refused message itself.
 */
export function boundedRefusal<Code extends string>(refusal: Refusal<Code>): Refusal<Code> {
  const params: JsonObject = {};
  for (const [key, value] of Object.entries(refusal.params)) params[key] = bounded(value);
  return { code: refusal.code, message: boundedText(refusal.message), params };
}

/** Upper bound of the memory that a bounded refusal takes. */
export function refusalBytes(refusal: Refusal): number {
  return 2 * JSON.stringify(refusal).length + 128;
}

function bounded(value: JsonValue): JsonValue {
  if (typeof value === "string") return boundedText(value);
  if (Array.isArray(value)) return value.slice(0, MAXIMUM_ITEMS).map((item) => leaf(item));
  return leaf(value);
}

/** Params of refusals are flat. Deeper values are shown as text. */
function leaf(value: JsonValue): JsonValue {
  if (typeof value === "string") return boundedText(value);
  return typeof value === "object" && value !== null ? boundedText(JSON.stringify(value)) : value;
}

function boundedText(text: string): string {
  const limit = LIMITS.refusalTextCharacters;
  return text.length <= limit ? text : `${text.slice(0, limit).toWellFormed()}…`;
}

/** Refuses a connection for now: the producer connects again. */
export function unavailable(message: string): Refusal<"unavailable"> {
  return { code: "unavailable", message, params: {} };
}
