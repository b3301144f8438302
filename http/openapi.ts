import { EVENT_SCHEMAS } from "../core/event-schema.js";
import { ERROR_CATALOGUE, type ErrorCode } from "../core/service-errors.js";
import { JSON_CONTENT_TYPE } from "./reply.js";
import { REQUEST_EXAMPLES } from "./request-examples.js";
import { ERROR_EXAMPLE, EVENT_EXAMPLES, RESPONSE_EXAMPLES } from "./response-examples.js";
import { RESPONSE_SCHEMAS } from "./response-schemas.js";
import type { JsonSchema, RequestBodyDeclaration, Route } from "./route.js";

/** What any route can answer beside its own errors. */
const COMMON_ERRORS: readonly ErrorCode[] = [
  "bad_request",
  "length_required",
  "payload_too_large",
  "misdirected_request",
  "internal_error",
  "unavailable",
];

const TRACE_HEADER = {
  "X-Trace-ID": {
    description: "Names the request in the service's log: the trace-id of a valid traceparent, else a fresh one.",
    required: true,
    schema: { type: "string", pattern: "^[0-9a-f]{32}$" },
  },
};

const ETAG_HEADER = {
  ETag: {
    description:
      "Tells this version from others; for If-None-Match and If-Match. Weak (`W/`) for JSON, strong for files.",
    schema: { type: "string" },
  },
};

const ERROR_SCHEMA: JsonSchema = { ...RESPONSE_SCHEMAS.ErrorResponse, examples: [ERROR_EXAMPLE] };

const SECURITY_SCHEME = "apiKey";
const BEARER = {
  type: "http",
  scheme: "bearer",
  description: "A key made by `inspection-service keys add`; needed where the service is started with --api-keys.",
};

/** Errors that a route can answer: those it declares, its parameters' and those of every route. */
export function errorsOf(route: Route): ErrorCode[] {
  const errors = new Set<ErrorCode>(route.errors);
  const pathParameters = Object.values(route.pathParameters);
  for (const { notFound } of pathParameters) errors.add(notFound);
  const hasInteger = pathParameters.some(({ kind }) => kind === "integer");
  if (hasInteger || Object.keys(route.query).length > 0) errors.add("invalid_parameter");
  if (route.body !== undefined) {
    for (const code of ["unsupported_media_type", "malformed_json", "invalid_parameter"] as const) {
      errors.add(code);
    }
  }
  if (route.method === "GET") errors.add("precondition_failed");
  if (isDownload(route)) errors.add("range_not_satisfiable");
  if (route.scope !== "none") errors.add("unauthorized");
  if (route.scope === "manage") errors.add("forbidden");
  for (const code of COMMON_ERRORS) errors.add(code);
  return [...errors];
}

/** Whether what it answers is a file, with ranges. */
function isDownload({ responses }: Route): boolean {
  const ok = responses[200];
  return ok?.contentType !== undefined && ok.schema.format === "binary";
}

/** The OpenAPI 3.1 document of the declared routes. */
export function openApiDocument(
  routes: readonly Route[],
  serviceVersion: string,
  /** What links start with; undefined: where the document comes from. */
  baseUrl: string | undefined,
): JsonSchema {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    if (route.isUndocumented) continue;
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
    servers: [{ url: baseUrl ?? "/" }],
    paths,
    webhooks: Object.fromEntries(
      Object.entries(EVENT_SCHEMAS).map(([name, schema]) => [name, eventOperation(name, schema)]),
    ),
    components: {
      securitySchemes: { [SECURITY_SCHEME]: BEARER },
      schemas: { ...RESPONSE_SCHEMAS, ErrorResponse: ERROR_SCHEMA, ...bodySchemas(routes) },
    },
  };
}

/** What the service posts to the webhooks that subscribe to the event. */
function eventOperation(name: string, schema: JsonSchema): JsonSchema {
  return {
    post: {
      operationId: `on${name}`,
      tags: ["events"],
      summary: `Posted to every webhook that subscribes to ${name}.`,
      requestBody: { required: true, content: { [JSON_CONTENT_TYPE]: { schema, example: EVENT_EXAMPLES[name] } } },
      responses: { "2XX": { description: "The receiver has taken it; anything else is a failed attempt." } },
    },
  };
}

function bodySchemas(routes: readonly Route[]): Record<string, JsonSchema> {
  const schemas: Record<string, JsonSchema> = {};
  for (const { body, path } of routes) {
    if (body === undefined) continue;
    if (Object.hasOwn(RESPONSE_SCHEMAS, body.name)) throw new Error(`${path}: ${body.name} is a response`);
    schemas[body.name] = body.schema;
  }
  return schemas;
}

function operation(route: Route): JsonSchema {
  return {
    operationId: route.operationId,
    tags: [route.tag],
    summary: route.summary,
    // The empty alternative: a service without --api-keys asks for none.
    ...(route.scope !== "none" && { security: [{ [SECURITY_SCHEME]: [] }, {}] }),
    ...(route.description !== undefined && { description: route.description }),
    parameters: [
      ...Object.entries(route.pathParameters).map(([name, { description, schema }]) => ({
        name,
        in: "path",
        required: true,
        description,
        schema,
      })),
      ...Object.entries(route.query).map(([name, { description, ...schema }]) => {
        // Of the reader of the value, not of the schema.
        if ("isUpperBound" in schema) delete schema.isUpperBound;
        return { name, in: "query", required: false, description, schema };
      }),
    ],
    ...(route.body !== undefined && { requestBody: requestBodyOf(route.body, route.operationId) }),
    responses: responsesOf(route),
  };
}

function requestBodyOf({ name, description }: RequestBodyDeclaration, operationId: string): JsonSchema {
  const example = REQUEST_EXAMPLES[operationId];
  const schema = { $ref: `#/components/schemas/${name}` };
  return {
    description,
    required: true,
    content: { [JSON_CONTENT_TYPE]: { schema, ...(example !== undefined && { example }) } },
  };
}

function responsesOf(route: Route): JsonSchema {
  const responses: Record<string, { [keyword: string]: unknown }> = {};
  for (const [status, response] of Object.entries(route.responses)) {
    const { description, contentType } = response;
    responses[status] = { description, headers: TRACE_HEADER };
    if (contentType !== undefined) {
      const example = status.startsWith("2") ? RESPONSE_EXAMPLES[route.operationId] : undefined;
      const media = { schema: response.schema, ...(example !== undefined && { example }) };
      responses[status] = { ...responses[status], content: { [contentType]: media } };
    }
  }
  const ok = responses[200];
  if (route.method === "GET" && ok !== undefined) {
    ok.headers = { ...TRACE_HEADER, ...ETAG_HEADER };
    const headers = ok.headers;
    responses[304] = {
      description: "The client has it already, by If-None-Match; of a file also by If-Modified-Since.",
      headers,
    };
    if (isDownload(route)) responses[206] = { ...ok, description: "The range that was asked for." };
  }
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of errorsOf(route)) {
    const { status } = ERROR_CATALOGUE[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  for (const [status, codes] of byStatus) {
    const texts = codes.map((code) => `\`${code}\`: ${ERROR_CATALOGUE[code].summary}`);
    let schema: JsonSchema = { $ref: "#/components/schemas/ErrorResponse" };
    // A status may be a response and an error: the body's shape tells them apart.
    const declared = route.responses[status];
    if (declared !== undefined) texts.unshift(declared.description);
    if (declared?.contentType === JSON_CONTENT_TYPE) schema = { anyOf: [declared.schema, schema] };
    const description = texts.join("\n\n");
    responses[status] = { description, headers: TRACE_HEADER, content: { [JSON_CONTENT_TYPE]: { schema } } };
  }
  return responses;
}
