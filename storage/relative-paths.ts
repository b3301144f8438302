import type { JsonObject, JsonValue } from "../core/json/json.js";

/** The text with every path in the data directory relative to it: for people elsewhere, to whom the machine's folders say nothing. */
export function withRelativePaths(text: string, dataDirectory: string): string {
  return text.replaceAll(`${dataDirectory}/`, "");
}

/** The same of every text in the fields. */
export function fieldsWithRelativePaths(fields: JsonObject, dataDirectory: string): JsonObject {
  const shown = (value: JsonValue): JsonValue =>
    typeof value === "string" ? withRelativePaths(value, dataDirectory) : value;
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, shown(value)]));
}
