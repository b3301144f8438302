import type { JsonSchema } from "../../../core/json/described-schema.js";

/** A reference to a schema of the components. @param description what the schema means where it is used */
export function ref(name: string, description: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}`, description };
}

/** A list of a component. */
export function listOf(name: string, description: string): JsonSchema {
  return { type: "array", items: { $ref: `#/components/schemas/${name}` }, description };
}

/** Fields of every list with limit and offset, besides its entries. */
export const PAGE = {
  total: {
    type: "integer",
    minimum: 0,
    description: "Number of entries that match the filters, on all pages together. It can change between two pages.",
  },
  limit: { type: "integer", minimum: 1, maximum: 1000, description: "The `limit` of the request, or its default." },
  offset: { type: "integer", minimum: 0, description: "The `offset` of the request, or 0." },
} as const;
