import type { JsonSchema } from "../../../core/json/described-schema.js";

/** A schema of the document's components, by its name, and what it is where it is used. */
export function ref(name: string, description: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}`, description };
}

/** A list of a component. */
export function listOf(name: string, description: string): JsonSchema {
  return { type: "array", items: { $ref: `#/components/schemas/${name}` }, description };
}

/** What every list with limit and offset carries beside its entries. */
export const PAGE = {
  total: {
    type: "integer",
    minimum: 0,
    description: "How many entries match the filters, on all pages together. It can change between two pages.",
  },
  limit: { type: "integer", minimum: 1, maximum: 1000, description: "The `limit` of the request, or its default." },
  offset: { type: "integer", minimum: 0, description: "The `offset` of the request, or 0." },
} as const;
