import type { JsonSchema } from "../../core/json/described-schema.js";
import { ERROR_SCHEMAS } from "./schemas/error-schema.js";
import { FILE_SCHEMAS } from "./schemas/file-schemas.js";
import { PROGRAM_SCHEMAS } from "./schemas/program-schemas.js";
import { QUALITY_SCHEMAS } from "./schemas/quality-schemas.js";
import { RUN_SCHEMAS } from "./schemas/run-schemas.js";
import { STATISTICS_SCHEMAS } from "./schemas/statistics-schemas.js";
import { SYSTEM_SCHEMAS } from "./schemas/system-schemas.js";
import { WEBHOOK_SCHEMAS } from "./schemas/webhook-schemas.js";

/** The answers of the interface as JSON Schemas, one for each named resource: components of the OpenAPI document. */
export const RESPONSE_SCHEMAS = {
  ...RUN_SCHEMAS,
  ...QUALITY_SCHEMAS,
  ...PROGRAM_SCHEMAS,
  ...STATISTICS_SCHEMAS,
  ...FILE_SCHEMAS,
  ...WEBHOOK_SCHEMAS,
  ...SYSTEM_SCHEMAS,
  ...ERROR_SCHEMAS,
} satisfies Record<string, JsonSchema>;

/** A reference to the schema of this name. */
export function schemaRef(name: keyof typeof RESPONSE_SCHEMAS): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}
