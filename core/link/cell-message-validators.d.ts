import type { SchemaValidator } from "../json/schema-validators.js";
import type { CellMessageType } from "./cell-message-schema.js";

/** Made of `CELL_MESSAGE_SCHEMAS` by the build. */
export const validators: Readonly<Record<CellMessageType, SchemaValidator>>;
