import type { ErrorObject } from "ajv";
import { isPlainObject } from "../json/json.js";
import { schemaFault } from "../json/schema-fault.js";
import type { SchemaValidator } from "../json/schema-validators.js";
import { formatTimeUs, TIME_LIMIT_US } from "../timestamps.js";
import { CELL_MESSAGE_SCHEMAS, type CellMessage, type CellMessageType } from "./cell-message-schema.js";
import { validators } from "./cell-message-validators.js";
import { invalid, type RefusedError } from "./refusal.js";

const VALIDATORS = new Map<string, SchemaValidator>(Object.entries(validators));
const MESSAGE_TYPES = Object.keys(CELL_MESSAGE_SCHEMAS) as CellMessageType[];

/**
 * Checks the decoded MessagePack body of a message.
 *
 * @param body holds only what JSON has
 * @throws {RefusedError} invalid_message; its params give the field's `path` (JSON Pointer), the `value` sent and what is `allowed`
 */
export function parseCellMessage(body: unknown): CellMessage {
  if (!isPlainObject(body)) throw invalid("", Array.isArray(body) ? "array" : typeof body, "a map with string keys");
  const type = body.type;
  const validate = typeof type === "string" ? VALIDATORS.get(type) : undefined;
  if (validate === undefined) throw invalid("/type", type, MESSAGE_TYPES);
  if (!validate(body)) throw fromSchemaError(validate.errors?.[0] as ErrorObject);
  return body as unknown as CellMessage;
}

function fromSchemaError(error: ErrorObject): RefusedError {
  const { path, value, allowed } = schemaFault(error);
  const { keyword, params } = error;
  if (keyword === "pattern") return invalid(path, value, patternText(String(params.pattern)));
  if (keyword !== "format") return invalid(path, value, allowed);
  const before = `before ${formatTimeUs(TIME_LIMIT_US)}`;
  const time = `an ISO 8601 UTC time with up to microseconds, such as 2026-01-31T12:00:00.000000Z, from 1970 and ${before}`;
  return invalid(path, value, params.format === "uuid-time" ? `a UUIDv7 of a time ${before}` : time);
}

function patternText(pattern: string): string {
  return pattern.includes("-7[0-9a-f]{3}") ? "a UUIDv7 in lower case" : "a MIME type such as application/pdf";
}
