import { UUID_V7_INPUT_PATTERN } from "../../core/identifiers.js";
import { oneOf } from "../../core/json/described-schema.js";
import { NO_REPORT, REPORT_STATUS_MEANINGS } from "../../core/run/quality.js";
import type { ErrorCode } from "../../core/service-errors.js";
import type { RESPONSE_SCHEMAS } from "../openapi/response-schemas.js";
import { schemaRef } from "../openapi/response-schemas.js";
import type { PathParameter, ResponseDeclaration } from "../requests/route.js";

/** Parameters that several routes declare. */
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

export const STEP_INDEX: PathParameter = {
  description: "Index of the step in its run, from 1.",
  schema: { type: "integer", minimum: 1 },
  kind: "integer",
  notFound: "step_not_found",
};

export const SERIAL_NUMBER = { type: "string", description: "Only runs of the part with this serial number." } as const;

export const QUALITY_STATUS = oneOf(
  { ...REPORT_STATUS_MEANINGS, [NO_REPORT]: "there is no report: `quality_status` is null." },
  "Only runs with this `quality_status`. Another value is no error: no run has it, so the list is empty.",
);

export const UPDATED_SINCE = {
  type: "string",
  format: "date-time",
  description:
    "Only runs updated after this time. For an incremental sync: the latest updated_at seen; when one sync takes several pages, " +
    "the next mark is the latest updated_at of its first page.",
} as const;

/** `limit` of a list; the bounds are those of core/limits.ts. */
export function limitParameter<const Page extends { default: number; minimum: number; maximum: number }>(page: Page) {
  return { type: "integer", ...page, description: "Most entries of a page." } as const;
}

export const OFFSET = {
  type: "integer",
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  default: 0,
  description: "Entries to leave out from the newest on.",
} as const;

export function jsonResponse(name: keyof typeof RESPONSE_SCHEMAS, description: string): ResponseDeclaration {
  return { description, contentType: "application/json", schema: schemaRef(name) };
}

export function binaryResponse(contentType: string, description: string): ResponseDeclaration {
  return { description, contentType, schema: { type: "string", format: "binary" } };
}
