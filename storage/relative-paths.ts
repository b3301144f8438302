import type { JsonObject, JsonValue } from "../core/json/json.js";

/** The text with all paths in the data directory made relative to it, because people elsewhere do not know the machine's folders. */
export function withRelativePaths(text: string, dataDirectory: string): string {
  return text.replaceAll(`${dataDirectory}/`, "");
}

/** As `withRelativePaths`, for every text in the fields. */
export function fieldsWithRelativePaths(fields: JsonObject, dataDirectory: string): JsonObject {
  const shown = (value: JsonValue): JsonValue =>
    typeof value === "string" ? withRelativePaths(value, dataDirectory) : value;
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, shown(value)]));
}
