import {
  flag,
  integer,
  list,
  nullable,
  object,
  oneOf,
  ordinal,
  text,
  uuid,
} from "../../../core/json/described-schema.js";
import { ERROR_CATALOGUE } from "../../../core/service-errors.js";

const CODE_MEANINGS = Object.fromEntries(
  Object.entries(ERROR_CATALOGUE).map(([code, { status, summary, retryable }]) => [
    code,
    `${status}. ${summary}${retryable ? " Retry it, unless `retryable` is false." : ""}`,
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
    "The parameter, header or body field that is wrong. A body field is given as a JSON Pointer without its leading slash.",
  ),
  value: {
    type: ["string", "number", "boolean", "null", "array"],
    items: { type: "string" },
    description:
      "The value that was sent, shortened. Null if nothing was sent, for a secret, and for a field that is not known: it may hold a secret.",
  },
  allowed: text("What is allowed instead, for people."),
};

/** The fields that `params` can have; each code has only some of them. */
const PARAMS = {
  ...FIELD,
  in: oneOf(PLACE_MEANINGS, "Where the field was sent."),
  faults: list(
    object(FIELD, {}, "One field that is wrong."),
    "Every wrong field of the body, if there are several; at most 20.",
  ),
  position: integer("For malformed JSON: the position of the error, in characters from the start."),
  path: text("For an unknown path: the path."),
  method: text("For a method that the path does not allow: the method."),
  allow: list({ type: "string" }, "The methods that the path allows."),
  run_id: uuid("The run that lacks the format."),
  step_index: ordinal("The step that lacks it, counted from 1."),
  frame_id: uuid("The frame that lacks the format."),
  format: text("The format that is not available."),
  available_formats: list({ type: "string" }, "Formats that are available now."),
  size_in_bytes: integer("For a range outside the file: the size of the file in bytes."),
  webhook_id: uuid("The webhook that was deleted."),
  previous_secret_expires_at: text("Until when two secrets of the webhook overlap."),
  cell: nullable(text("At a hub: the cell to ask."), "if it is not known"),
  resend_id: uuid("The resend that is running."),
  scope: text("The scope of the API key."),
  needed: text("The scope that the operation needs."),
  retry_after_seconds: integer("After how many seconds to try again; the same as the header Retry-After."),
  deadline_ms: integer("Time limit for the answer, in milliseconds."),
  held_bytes: integer("Memory taken up by answers that other clients have not read yet, in bytes."),
  cause: text("For stored data that cannot be read: what is wrong with it. Further fields say where."),
};

export const ERROR_SCHEMAS = {
  ErrorResponse: object(
    {
      code: oneOf(CODE_MEANINGS, "What is wrong, for programs."),
      message: text("What is wrong, for people. Its wording may change."),
      params: {
        type: "object",
        description: "Details of the error. The code decides which fields there are.",
        properties: PARAMS,
        additionalProperties: true,
      },
      trace_id: {
        type: "string",
        pattern: "^[0-9a-f]{32}$",
        description: "Names the request in the service's log; the same as the header X-Trace-ID.",
      },
      retryable: flag("Whether the same request, unchanged, can succeed later."),
    },
    {},
    "The envelope of every error.",
  ),
};
