import type { ErrorObject } from "ajv";
import { counted } from "../counted.js";
import type { JsonValue } from "./json.js";
import { pointerPart } from "./non-json.js";

/** What does not fit a schema, from an error of ajv with schema and data. */
export interface SchemaFault {
  /** JSON Pointer (RFC 6901); empty for the whole value. */
  path: string;
  /** What was sent there; null if nothing was. */
  value: unknown;
  /** What is allowed, for people. For an enumeration these are its values. */
  allowed: JsonValue;
}

export function schemaFault({ keyword, params, instancePath, data, parentSchema, message }: ErrorObject): SchemaFault {
  const at = (allowed: JsonValue): SchemaFault => ({ path: instancePath, value: data, allowed });
  switch (keyword) {
    case "required": {
      const path = `${instancePath}/${params.missingProperty}`;
      return { path, value: null, allowed: "present" };
    }
    case "additionalProperties": {
      const properties = (parentSchema?.properties ?? {}) as Record<string, { readOnly?: boolean }>;
      const known = Object.keys(properties).filter((field) => properties[field]?.readOnly !== true);
      const name = String(params.additionalProperty);
      const path = `${instancePath}/${pointerPart(name)}`;
      const value = (data as Record<string, unknown>)[name];
      return { path, value, allowed: `absent: the fields are ${known.join(", ")}` };
    }
    case "enum":
      return at(params.allowedValues as JsonValue);
    case "type":
      return at(`of type ${[params.type].flat().join(" or ")}`);
    case "minimum":
    case "maximum":
    case "exclusiveMinimum":
      return at(`${params.comparison} ${params.limit}`);
    case "minLength":
    case "maxLength":
      return at(`${keyword === "minLength" ? "at least" : "at most"} ${counted(params.limit, "character")}`);
    case "maxProperties":
      return at(`at most ${params.limit} entries`);
    case "minItems":
    case "maxItems":
      return at(`${keyword === "minItems" ? "at least" : "at most"} ${counted(params.limit, "item")}`);
    default:
      return at(message ?? "valid");
  }
}
