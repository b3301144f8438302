import type { ErrorObject, Options } from "ajv";
import { uuidV7TimeUs } from "../identifiers.js";
import { parseUtcTimeUs, TIME_LIMIT_US } from "../timestamps.js";

/**
 * Options with which the build compiles the schemas of messages and webhook requests (`.ci/build-validators.mjs`). A thread that compiled them
 * itself would take a fifth of a second longer to start.
 */

/** Tells whether a value fits the schema. `errors` holds ajv's errors of the last call, with schema and data. */
export interface SchemaValidator {
  (value: unknown): boolean;
  errors?: ErrorObject[] | null;
}

// The answer to a message names its first fault. The answer to a request body names all of them.
export const CELL_MESSAGE_OPTIONS: Options = { allErrors: false, strict: true, strictTypes: false, verbose: true };
export const REQUEST_BODY_OPTIONS: Options = { allErrors: true, verbose: true, allowUnionTypes: true };

/** The formats that the schemas of messages name. */
export const CELL_MESSAGE_FORMATS = {
  "utc-timestamp": { type: "string", validate: (text: string) => parseUtcTimeUs(text) !== undefined },
  // created_at of programs and frames comes from the id, so an id whose time no timestamp can show is refused.
  "uuid-time": { type: "string", validate: (text: string) => uuidV7TimeUs(text) < TIME_LIMIT_US },
} as const;
