type Json = Readonly<Record<string, unknown>>;

/** Maps from names to parts, and lists of parts, each of which is to be described. */
const DESCRIBED = new Set(["properties", "schemas", "headers", "responses", "parameters", "tags"]);
/** Maps whose entries need no description. */
const MAPS = new Set(["paths", "webhooks", "content"]);
/** Not declarations: answers, and lists of values. */
const SKIPPED = new Set(["example", "examples", "enum", "required", "security"]);

/**
 * What an OpenAPI document names without a word on it: properties, parameters, headers, responses and schemas without a description, values of
 * closed sets that their description does not explain, operations without summary and scope.
 *
 * @returns one line each, with the place as a JSON Pointer
 */
export function undescribedParts(document: Json): string[] {
  const faults: string[] = [];
  const visitEntries = (entries: unknown, at: string, areDescribed: boolean): void => {
    for (const [name, entry] of Object.entries(entries as Json)) {
      // Tags of an operation are names alone.
      if (areDescribed && typeof entry !== "string" && textOf(entry) === "")
        faults.push(`${at}/${name}: no description`);
      visit(entry, `${at}/${name}`, "");
    }
  };
  /** @param holder description of the parameter or header that the schema belongs to */
  const visit = (part: unknown, at: string, holder: string): void => {
    if (Array.isArray(part)) visitEntries(part, at, false);
    if (!isObject(part)) return;
    const own = textOf(part);
    for (const value of Array.isArray(part.enum) ? part.enum : []) {
      if (!`${holder}\n${own}`.includes(`\n- \`${value}\`: `)) faults.push(`${at}: ${value} is not explained`);
    }
    if (typeof part.operationId === "string" && typeof part.summary !== "string") faults.push(`${at}: no summary`);
    for (const [key, inner] of Object.entries(part)) {
      if (SKIPPED.has(key)) continue;
      if (DESCRIBED.has(key) || MAPS.has(key)) visitEntries(inner, `${at}/${key}`, DESCRIBED.has(key));
      else visit(inner, `${at}/${key}`, key === "schema" ? own : "");
    }
  };
  visit(document, "", "");
  return faults;
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function textOf(part: unknown): string {
  return isObject(part) && typeof part.description === "string" ? part.description.trim() : "";
}
