import { flag, integer, list, object, oneOf, ordinal, text, uuid } from "../../../core/json/described-schema.js";
import { ERROR_CATALOGUE } from "../../../core/service-errors.js";

const CODE_MEANINGS = Object.fromEntries(
  Object.entries(ERROR_CATALOGUE).map(([code, { status, summary, retryable }]) => [
    code,
    `${status}. ${summary}${retryable ? " Worth retrying, unless `retryable` says otherwise." : ""}`,
  ]),
);

const PLACE_MEANINGS = {
  path: "in the path.",
  query: "in the query string.",
  header: "in a header.",
  body: "in the body.",
};

const FIELD = {
  field: text(
    "The parameter, header or body field that is wrong; a field within the body as a JSON Pointer without its leading slash.",
  ),
  value: {
    type: ["string", "number", "boolean", "null", "array"],
    items: { type: "string" },
    description: "What came, shortened. Null when nothing came, and for a secret.",
  },
  allowed: text("What is allowed instead, for people."),
};

/** What `params` can name, by the code; a code has only some of them. */
const PARAMS = {
  ...FIELD,
  in: oneOf(PLACE_MEANINGS, "Where the field stood."),
  faults: list(
    object(FIELD, {}, "One field that is wrong."),
    "Every field of the body that is wrong, when there are several: the first 20.",
  ),
  position: integer("Of JSON that cannot be read: where, in characters from the start."),
  path: text("Of an unknown path: the path."),
  method: text("Of a method that the path does not have: the method."),
  allow: list({ type: "string" }, "The methods that the path has."),
  run_id: uuid("The run that lacks the format."),
  step_index: ordinal("The step that lacks it, counted from 1."),
  frame_id: uuid("The frame that lacks the format."),
  format: text("The format that is not available."),
  available_formats: list({ type: "string" }, "Formats that are available now."),
  size_in_bytes: integer("Of a range outside the file: the file's size in bytes."),
  webhook_id: uuid("The webhook that was deleted."),
  scope: text("What the API key allows."),
  needed: text("What the operation needs."),
  retry_after_seconds: integer("When to try again, in seconds; the same as the header Retry-After."),
  deadline_ms: integer("How long the service tried, in milliseconds."),
  held_bytes: integer("Memory that answers take up that other clients have not read yet, in bytes."),
  cause: text("Of stored data that cannot be read: what is wrong with it. Further fields say where."),
};

export const ERROR_SCHEMAS = {
  ErrorResponse: object(
    {
      code: oneOf(CODE_MEANINGS, "What is wrong, for programs."),
      message: text("What is wrong, for people. Its wording may change."),
      params: {
        type: "object",
        description: "What the error is about. Which fields there are depends on the code.",
        properties: PARAMS,
        additionalProperties: true,
      },
      trace_id: {
        type: "string",
        pattern: "^[0-9a-f]{32}$",
        description: "Names the request in the service's log; the same as the header X-Trace-ID.",
      },
      retryable: flag("Whether the same request can succeed later without a change of its own."),
    },
    {},
    "The envelope of every error.",
  ),
};
