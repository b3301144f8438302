import { UUID_V7_INPUT_PATTERN } from "../../core/identifiers.js";
import { oneOf } from "../../core/json/described-schema.js";
import { NO_REPORT, REPORT_STATUS_MEANINGS } from "../../core/run/quality.js";
import { type ErrorCode, ServiceError } from "../../core/service-errors.js";
import type { Headers } from "../openapi/documented-headers.js";
import type { RESPONSE_SCHEMAS } from "../openapi/response-schemas.js";
import { schemaRef } from "../openapi/response-schemas.js";
import type { PathParameter, ResponseDeclaration } from "../requests/route.js";

/** The id of a thing as a path parameter. @param notFound the error for an unknown id */
function idParameter(what: string, notFound: ErrorCode): PathParameter {
  return {
    description: `Id of the ${what}, in upper or lower case.`,
    schema: { type: "string", pattern: UUID_V7_INPUT_PATTERN },
    kind: "id",
    notFound,
  };
}

export const RUN_ID = idParameter("run", "run_not_found");
export const PROGRAM_ID = idParameter("program", "program_not_found");
export const FRAME_ID = idParameter("captured frame", "frame_not_found");
export const WEBHOOK_ID = idParameter("webhook", "webhook_not_found");
export const DELIVERY_ID = idParameter("delivery", "delivery_not_found");
export const RESEND_ID = idParameter("resend", "resend_not_found");

export const STEP_INDEX: PathParameter = {
  description: "Number of the step in its run, counted from 1.",
  schema: { type: "integer", minimum: 1 },
  kind: "integer",
  notFound: "step_not_found",
};

export const SERIAL_NUMBER = { type: "string", description: "Only runs of the part with this serial number." } as const;

export const CELL = {
  type: "array",
  items: { type: "string" },
  description:
    "Only at a hub: only runs of the cell with this name. Repeat it for several cells. A cell itself has no name, so no run of it matches.",
} as const;

export const QUALITY_STATUS = oneOf(
  { ...REPORT_STATUS_MEANINGS, [NO_REPORT]: "there is no report: `quality_status` is null." },
  "Only runs with this `quality_status`. Any other value is no error: the list is empty, as no run has it.",
);

export const UPDATED_SINCE = {
  type: "string",
  format: "date-time",
  description:
    "Only runs updated after this time. For an incremental sync, pass the latest updated_at of the first page of the previous sync.",
} as const;

/** The `limit` of a list. @param page its bounds, from core/limits.ts */
export function limitParameter<const Page extends { default: number; minimum: number; maximum: number }>(page: Page) {
  return { type: "integer", ...page, description: "Maximum number of entries in a page." } as const;
}

export const OFFSET = {
  type: "integer",
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  default: 0,
  description: "Number of entries to skip, starting with the newest.",
} as const;

/** The value of a query parameter that takes no other than these. @throws ServiceError invalid_parameter */
export function oneOfClosed<Value extends string>(
  field: string,
  value: string | undefined,
  values: readonly Value[],
): Value | undefined {
  if (value === undefined || (values as readonly string[]).includes(value)) return value as Value | undefined;
  const allowed = `one of ${values.join(", ")}`;
  throw new ServiceError("invalid_parameter", `query parameter ${field} must be ${allowed}`, {
    ...{ field, in: "query", value: value.slice(0, 200), allowed },
  });
}

export function jsonResponse(name: keyof typeof RESPONSE_SCHEMAS, description: string): ResponseDeclaration {
  return { description, contentType: "application/json", schema: schemaRef(name) };
}

export function binaryResponse(contentType: string, description: string, headers: Headers = {}): ResponseDeclaration {
  return { description, contentType, schema: { type: "string", format: "binary" }, headers };
}
