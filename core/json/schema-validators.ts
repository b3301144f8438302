import type { ErrorObject, Options } from "ajv";
import { uuidV7TimeUs } from "../identifiers.js";
import { parseUtcTimeUs, TIME_LIMIT_US } from "../timestamps.js";

/**
 * What the build compiles the schemas of this folder with (`.ci/build-validators.mjs`): a thread of the service that compiled them itself would
 * take a fifth of a second longer to come up, and would need a compiler to answer.
 */

/** Whether a value fits the schema; what is wrong with the last one stands in `errors`, as ajv has them, with schema and data. */
export interface SchemaValidator {
  (value: unknown): boolean;
  errors?: ErrorObject[] | null;
}

// Of a message the first fault is told, of a request body all of them.
export const CELL_MESSAGE_OPTIONS: Options = { allErrors: false, strict: true, strictTypes: false, verbose: true };
export const REQUEST_BODY_OPTIONS: Options = { allErrors: true, verbose: true, allowUnionTypes: true };

/** The formats that the schemas of messages name. */
export const CELL_MESSAGE_FORMATS = {
  "utc-timestamp": { type: "string", validate: (text: string) => parseUtcTimeUs(text) !== undefined },
  // A program's and a frame's created_at come from the id: a time that no timestamp can show is refused here.
  "uuid-time": { type: "string", validate: (text: string) => uuidV7TimeUs(text) < TIME_LIMIT_US },
} as const;
