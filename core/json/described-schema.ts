import { UUID_V7_PATTERN } from "../identifiers.js";

/**
 * Parts of the JSON Schemas (2020-12) that document answers, webhook events and request bodies. Every property needs a description, so each
 * part takes one. Objects are open, because a later release may add fields; the tests close them.
 */
export type JsonSchema = { readonly [keyword: string]: unknown };

export type Properties = Readonly<Record<string, JsonSchema>>;

export function text(description: string): JsonSchema {
  return { type: "string", description };
}

export function uuid(description: string): JsonSchema {
  return { type: "string", pattern: UUID_V7_PATTERN, description };
}

/** UTC with six decimals and Z, so that times sort as text. */
export function time(description: string): JsonSchema {
  return {
    type: "string",
    format: "date-time",
    pattern: "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{6}Z$",
    description,
  };
}

export function number(description: string): JsonSchema {
  return { type: "number", description };
}

export function integer(description: string): JsonSchema {
  return { type: "integer", description };
}

/** An integer from 0. */
export function count(description: string): JsonSchema {
  return { type: "integer", minimum: 0, description };
}

/** An integer from 1. */
export function ordinal(description: string): JsonSchema {
  return { type: "integer", minimum: 1, description };
}

export function flag(description: string): JsonSchema {
  return { type: "boolean", description };
}

/** Any object. Whoever wrote it decides what is in it. */
export function freeForm(description: string): JsonSchema {
  return { type: "object", additionalProperties: true, description };
}

export function list(items: JsonSchema, description: string): JsonSchema {
  return { type: "array", items, description };
}

export function numbers(description: string): JsonSchema {
  return list({ type: "number" }, description);
}

/** A property that always has this one value. */
export function constant(value: string | number | boolean, description: string): JsonSchema {
  return { const: value, description };
}

/** One of a closed set. The description says what each value means, because OpenAPI 3.1 has no other place for that. */
export function oneOf(
  meanings: Readonly<Record<string, string>>,
  description: string,
): { readonly type: "string"; readonly enum: readonly string[]; readonly description: string } {
  const lines = Object.entries(meanings).map(([value, meaning]) => meaningLine(value, meaning));
  return { type: "string", enum: Object.keys(meanings), description: `${description}\n\n${lines.join("\n")}` };
}

function meaningLine(value: string, meaning: string): string {
  return `- \`${value}\`: ${meaning}`;
}

/** @param whenNull completes the sentence "Null …", such as `before it began`; undefined when this release never answers null */
export function nullable(schema: JsonSchema, whenNull?: string): JsonSchema {
  const { description, ...bare } = schema;
  const { type, enum: values } = bare;
  if (Array.isArray(values)) {
    const meanings = `${description}\n${meaningLine("null", `${whenNull}.`)}`;
    return { ...bare, type: [type, "null"], enum: [...values, null], description: meanings };
  }
  const described = `${description} ${whenNull === undefined ? "Never null in this release" : `Null ${whenNull}`}.`;
  if (typeof type === "string") return { ...bare, type: [type, "null"], description: described };
  return { anyOf: [bare, { type: "null" }], description: described };
}

/** @param description of the object itself, when it is not a property of another */
export function object(required: Properties, optional: Properties = {}, description?: string): JsonSchema {
  return {
    type: "object",
    ...(description !== undefined && { description }),
    properties: { ...required, ...optional },
    required: Object.keys(required),
  };
}
