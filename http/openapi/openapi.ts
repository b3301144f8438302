import type { JsonSchema } from "../../core/json/described-schema.js";
import { ERROR_CATALOGUE, type ErrorCode } from "../../core/service-errors.js";
import { EVENT_SCHEMAS } from "../../core/webhook/event-schema.js";
import { EVENT_MEANINGS, EVENT_NAMES, type EventName } from "../../core/webhook/webhook.js";
import { JSON_CONTENT_TYPE } from "../replies/reply.js";
import type { RequestBodyDeclaration, ResponseDeclaration, Route } from "../requests/route.js";
import {
  ALLOW_HEADER,
  DELIVERY_HEADERS,
  DOWNLOAD_HEADERS,
  ENCODING_HEADER,
  ERROR_HEADERS,
  type Headers,
  PART_HEADER,
  TAG_HEADER,
  TRACE_HEADER,
  VALIDATOR_HEADERS,
} from "./documented-headers.js";
import { INTERFACE_GUIDE, TAGS } from "./interface-guide.js";
import { REQUEST_EXAMPLES } from "./request-examples.js";
import { ERROR_EXAMPLE, EVENT_EXAMPLES, RESPONSE_EXAMPLES } from "./response-examples.js";
import { RESPONSE_SCHEMAS, schemaRef } from "./response-schemas.js";

/** What any route can answer beside its own errors. */
const COMMON_ERRORS: readonly ErrorCode[] = [
  "bad_request",
  "length_required",
  "payload_too_large",
  "misdirected_request",
  "internal_error",
  "unavailable",
];

const ERROR_SCHEMA: JsonSchema = { ...RESPONSE_SCHEMAS.ErrorResponse, examples: [ERROR_EXAMPLE] };

const SECURITY_SCHEME = "apiKey";
const BEARER = {
  type: "http",
  scheme: "bearer",
  description: "A key made by `inspection-service keys add`; needed where the service is started with --api-keys.",
};

/** What an operation says of the key it needs. */
const SCOPE_TEXTS: Record<Route["scope"], string> = {
  none: "Needs no API key.",
  read: "Scope of the API key: `read`, or `manage`.",
  manage: "Scope of the API key: `manage`.",
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
      description: INTERFACE_GUIDE,
    },
    servers: [{ url: baseUrl ?? "/" }],
    tags: TAGS,
    paths,
    webhooks: Object.fromEntries(EVENT_NAMES.map((name) => [name, eventOperation(name, EVENT_SCHEMAS[name])])),
    components: {
      securitySchemes: { [SECURITY_SCHEME]: BEARER },
      schemas: { ...RESPONSE_SCHEMAS, ErrorResponse: ERROR_SCHEMA, ...bodySchemas(routes) },
      // No operation lists it: every path answers it for a method that it does not have.
      responses: { MethodNotAllowed: errorResponse(["method_not_allowed"], ALLOW_HEADER) },
    },
  };
}

/** What the service posts to the webhooks that subscribe to the event. */
function eventOperation(name: EventName, schema: JsonSchema): JsonSchema {
  return {
    post: {
      operationId: `on${name}`,
      summary:
        name === "WebhookTest"
          ? "Posted to one webhook when it is tested. Subscribing to it changes nothing."
          : `Posted to every webhook that subscribes to ${name}: ${EVENT_MEANINGS[name]}`,
      parameters: DELIVERY_HEADERS,
      requestBody: {
        description:
          "The event, with `Content-Type: application/json`. Every attempt of a delivery has the same bytes.",
        required: true,
        content: { [JSON_CONTENT_TYPE]: { schema, example: EVENT_EXAMPLES[name] } },
      },
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
    ...(route.scope !== "none" && { security: [{ [SECURITY_SCHEME]: [route.scope] }, {}] }),
    description: [route.description, SCOPE_TEXTS[route.scope]].filter((part) => part !== undefined).join("\n\n"),
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
  const responses: Record<string, JsonSchema> = {};
  for (const [status, declared] of Object.entries(route.responses)) {
    const example = status.startsWith("2") ? RESPONSE_EXAMPLES[route.operationId] : undefined;
    responses[status] = {
      description: declared.description,
      headers: TRACE_HEADER,
      ...contentOf(declared, example),
    };
  }
  const ok = responses[200];
  if (route.method === "GET" && ok !== undefined) Object.assign(responses, conditionalResponses(ok, isDownload(route)));
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of errorsOf(route)) {
    const { status } = ERROR_CATALOGUE[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  for (const [status, codes] of byStatus) {
    responses[status] = errorResponse(codes, ERROR_HEADERS[status], route.responses[status]);
  }
  return responses;
}

function contentOf(declared: ResponseDeclaration, example: unknown): JsonSchema {
  if (declared.contentType === undefined) return {};
  const { contentType, schema } = declared;
  return { content: { [contentType]: { schema, ...(example !== undefined && { example }) } } };
}

/** What a GET answers under its conditions, in place of a 200 or as one. */
function conditionalResponses(ok: JsonSchema, isFile: boolean): Record<string, JsonSchema> {
  const unchanged =
    "The client has it already: nothing has changed since what its If-None-Match or If-Modified-Since names.";
  if (!isFile) {
    const headers = { ...TRACE_HEADER, ...TAG_HEADER };
    return {
      200: { ...ok, headers: { ...headers, ...ENCODING_HEADER } },
      304: {
        description: "The client has it already: nothing has changed since what its If-None-Match names.",
        headers,
      },
    };
  }
  const headers = { ...TRACE_HEADER, ...DOWNLOAD_HEADERS };
  return {
    200: { ...ok, headers },
    206: {
      ...ok,
      description: "The one range of bytes that the request's Range asks for.",
      headers: { ...headers, ...PART_HEADER },
    },
    304: { description: unchanged, headers: { ...TRACE_HEADER, ...VALIDATOR_HEADERS } },
  };
}

/** @param declared what the route itself answers with the same status: the body's shape tells the two apart */
function errorResponse(codes: readonly ErrorCode[], further: Headers = {}, declared?: ResponseDeclaration): JsonSchema {
  const texts = codes.map((code) => `\`${code}\`: ${ERROR_CATALOGUE[code].summary}`);
  let schema = schemaRef("ErrorResponse");
  if (declared !== undefined) texts.unshift(declared.description);
  if (declared?.contentType === JSON_CONTENT_TYPE) schema = { anyOf: [declared.schema, schema] };
  return {
    description: texts.join("\n\n"),
    headers: { ...TRACE_HEADER, ...further },
    content: { [JSON_CONTENT_TYPE]: { schema } },
  };
}
