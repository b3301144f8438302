import type { SchemaValidator } from "../json/schema-validators.js";
import type { WEBHOOK_REQUEST_SCHEMAS } from "./webhook-request.js";

/** Made of `WEBHOOK_REQUEST_SCHEMAS` by the build. */
export const validators: Readonly<Record<keyof typeof WEBHOOK_REQUEST_SCHEMAS, SchemaValidator>>;
