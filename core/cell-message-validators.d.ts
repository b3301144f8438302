import type { CellMessageType } from "./cell-message.js";
import type { SchemaValidator } from "./schema-validators.js";

/** Made of `CELL_MESSAGE_SCHEMAS` by the build. */
export const validators: Readonly<Record<CellMessageType, SchemaValidator>>;
