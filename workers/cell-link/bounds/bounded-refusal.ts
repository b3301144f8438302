import type { JsonObject, JsonValue } from "../../../core/json/json.js";
import { LIMITS } from "../../../core/limits.js";
import type { Refusal } from "../../../core/link/refusal.js";

const MAXIMUM_ITEMS = 64;

/**
 * The refusal with its texts and lists cut to what an answer, a record and the memory of 1,024 of them can hold: the path or the
 * value that came may be as long as the message itself.
 */
export function boundedRefusal<Code extends string>(refusal: Refusal<Code>): Refusal<Code> {
  const params: JsonObject = {};
  for (const [key, value] of Object.entries(refusal.params)) params[key] = bounded(value);
  return { code: refusal.code, message: boundedText(refusal.message), params };
}

/** Upper bound of the memory that a bounded refusal takes, for the sums that limit it. */
export function refusalBytes(refusal: Refusal): number {
  return 2 * JSON.stringify(refusal).length + 128;
}

function bounded(value: JsonValue): JsonValue {
  if (typeof value === "string") return boundedText(value);
  if (Array.isArray(value)) return value.slice(0, MAXIMUM_ITEMS).map((item) => leaf(item));
  return leaf(value);
}

/** Refusals carry flat params; whatever is deeper is shown as text. */
function leaf(value: JsonValue): JsonValue {
  if (typeof value === "string") return boundedText(value);
  return typeof value === "object" && value !== null ? boundedText(JSON.stringify(value)) : value;
}

function boundedText(text: string): string {
  const limit = LIMITS.refusalTextCharacters;
  return text.length <= limit ? text : `${text.slice(0, limit).toWellFormed()}…`;
}
