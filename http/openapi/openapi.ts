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

/** Errors that any route can answer. */
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
  description: "A key made by `inspection-service keys add`. Needed if the service was started with --api-keys.",
};

/** What an operation says about the key that it needs. */
const SCOPE_TEXTS: Record<Route["scope"], string> = {
  none: "Needs no API key.",
  read: "Scope of the API key: `read`, or `manage`.",
  manage: "Scope of the API key: `manage`.",
};

/** All errors that a route can answer: those it declares, those of its parameters, and those of every route. */
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
  if (takesConditions(route)) errors.add("precondition_failed");
  if (isDownload(route)) errors.add("range_not_satisfiable").add("not_shipped");
  if (route.scope !== "none") errors.add("unauthorized");
  if (route.scope === "manage") errors.add("forbidden").add("read_only_hub");
  for (const code of COMMON_ERRORS) errors.add(code);
  return [...errors];
}

/** Whether the route answers If-None-Match and the like: what is live, or made while it is sent, has no version. */
function takesConditions({ method, live, isMadeWhileSent = false }: Route): boolean {
  return method === "GET" && live === undefined && !isMadeWhileSent;
}

/** Whether the route answers with a file, and so takes ranges. */
function isDownload({ responses }: Route): boolean {
  const ok = responses[200];
  return ok?.contentType !== undefined && ok.schema.format === "binary";
}

/** The OpenAPI 3.1 document of the declared routes. */
export function openApiDocument(
  routes: readonly Route[],
  serviceVersion: string,
  /** What links start with; undefined: the address that the document came from. */
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
      // No operation lists 405. Every path answers it for any other method.
      responses: { MethodNotAllowed: errorResponse(["method_not_allowed"], ALLOW_HEADER) },
    },
  };
}

/** The request that the service posts to webhooks for this event. */
function eventOperation(name: EventName, schema: JsonSchema): JsonSchema {
  return {
    post: {
      operationId: `on${name}`,
      summary:
        name === "WebhookTest"
          ? "Posted to one webhook when it is tested. Subscribing to it has no effect."
          : `Posted to every webhook that subscribes to ${name}: ${EVENT_MEANINGS[name]}`,
      parameters: DELIVERY_HEADERS,
      requestBody: {
        description:
          "The event, with `Content-Type: application/json`. Every attempt of a delivery has the same bytes.",
        required: true,
        content: { [JSON_CONTENT_TYPE]: { schema, example: EVENT_EXAMPLES[name] } },
      },
      responses: { "2XX": { description: "The receiver accepted the event. Any other answer is a failed attempt." } },
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
    // The empty alternative is for a service without --api-keys.
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
        // No keywords of JSON Schema: the parser of the value uses them.
        if ("isUpperBound" in schema) delete schema.isUpperBound;
        if ("notBefore" in schema) delete schema.notBefore;
        return { name, in: "query", required: false, description, schema };
      }),
      ...Object.entries(route.headers ?? {}).map(([name, { description, schema }]) => ({
        name,
        in: "header",
        required: false,
        description,
        schema,
      })),
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
      headers: { ...TRACE_HEADER, ...declared.headers },
      ...contentOf(declared, example),
    };
  }
  const ok = responses[200];
  if (takesConditions(route) && ok !== undefined)
    Object.assign(responses, conditionalResponses(ok, isDownload(route), route.responses[200]?.headers));
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

/** The answers to a conditional GET, besides the plain 200. */
function conditionalResponses(ok: JsonSchema, isFile: boolean, own: Headers = {}): Record<string, JsonSchema> {
  const unchanged = "Nothing has changed since the version that If-None-Match or If-Modified-Since names.";
  if (!isFile) {
    const headers = { ...TRACE_HEADER, ...TAG_HEADER };
    return {
      200: { ...ok, headers: { ...headers, ...ENCODING_HEADER } },
      304: {
        description: "Nothing has changed since the version that If-None-Match names.",
        headers,
      },
    };
  }
  const headers = { ...TRACE_HEADER, ...DOWNLOAD_HEADERS, ...own };
  return {
    200: { ...ok, headers },
    206: {
      ...ok,
      description: "The range of bytes that Range asks for.",
      headers: { ...headers, ...PART_HEADER },
    },
    304: { description: unchanged, headers: { ...TRACE_HEADER, ...VALIDATOR_HEADERS } },
  };
}

/** @param declared the route's own answer with the same status, if any; clients tell the two apart by the shape of the body */
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
