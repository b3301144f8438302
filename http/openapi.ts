import { ERROR_CATALOGUE, type ErrorCode } from "../core/service-errors.js";
import { RESPONSE_SCHEMAS } from "./response-schemas.js";
import type { JsonSchema, Route } from "./route.js";

/** What any route can answer beside its own errors. */
const COMMON_ERRORS: readonly ErrorCode[] = ["bad_request", "length_required", "payload_too_large", "internal_error"];

const TRACE_HEADER = {
  "X-Trace-ID": {
    description: "Names the request in the service's log: the trace-id of a valid traceparent, else a fresh one.",
    required: true,
    schema: { type: "string", pattern: "^[0-9a-f]{32}$" },
  },
};

/** Errors that a route can answer: those it declares, its parameters' and those of every route. */
export function errorsOf(route: Route): ErrorCode[] {
  const errors = new Set<ErrorCode>(route.errors);
  for (const parameter of Object.values(route.pathParameters)) errors.add(parameter.notFound);
  if (Object.keys(route.query).length > 0) errors.add("invalid_parameter");
  for (const code of COMMON_ERRORS) errors.add(code);
  return [...errors];
}

/** The OpenAPI 3.1 document of the declared routes. */
export function openApiDocument(routes: readonly Route[], serviceVersion: string): JsonSchema {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    const path = paths[route.path] ?? {};
    path[route.method.toLowerCase()] = operation(route);
    paths[route.path] = path;
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Inspection Results Service",
      version: serviceVersion,
      description: "What the inspection cell produced: programs, runs, quality reports, defects, files and captures.",
    },
    servers: [{ url: "/" }],
    paths,
    components: { schemas: RESPONSE_SCHEMAS },
  };
}

function operation(route: Route): JsonSchema {
  return {
    operationId: route.operationId,
    tags: [route.tag],
    summary: route.summary,
    ...(route.description !== undefined && { description: route.description }),
    parameters: [
      ...Object.entries(route.pathParameters).map(([name, { description, schema }]) => ({
        name,
        in: "path",
        required: true,
        description,
        schema,
      })),
      ...Object.entries(route.query).map(([name, { description, ...schema }]) => ({
        name,
        in: "query",
        required: false,
        description,
        schema,
      })),
    ],
    responses: responsesOf(route),
  };
}

function responsesOf(route: Route): JsonSchema {
  const responses: Record<string, JsonSchema> = {};
  for (const [status, { description, contentType, schema }] of Object.entries(route.responses)) {
    responses[status] = { description, headers: TRACE_HEADER, content: { [contentType]: { schema } } };
  }
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of errorsOf(route)) {
    const { status } = ERROR_CATALOGUE[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  for (const [status, codes] of byStatus) {
    if (responses[status] !== undefined) throw new Error(`${route.path}: ${status} is a response and an error`);
    responses[status] = {
      description: codes.map((code) => `\`${code}\`: ${ERROR_CATALOGUE[code].summary}`).join("\n\n"),
      headers: TRACE_HEADER,
      content: { "application/json": { schema: { $ref: "#/components/schemas/ErrorResponse" } } },
    };
  }
  return responses;
}
