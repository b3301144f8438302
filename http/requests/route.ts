import type { JsonSchema } from "../../core/json/described-schema.js";
import type { SchemaValidator } from "../../core/json/schema-validators.js";
import type { ErrorCode } from "../../core/service-errors.js";
import type { Reply } from "../replies/reply.js";
import type { KeyScope } from "./api-keys.js";
import type { QueryParameters, QueryValues } from "./query-parameters.js";

export interface PathParameter {
  description: string;
  schema: JsonSchema;
  /** An id is taken in either case and handed on in lower case; an integer must be one (422). Default: any text. */
  kind?: "id" | "integer";
  /** What the client is told when nothing can have this name, a broken percent-encoding among it. */
  notFound: ErrorCode;
}

/** A response without content type has no body. */
export type ResponseDeclaration =
  | { description: string; contentType: string; schema: JsonSchema }
  | { description: string; contentType?: undefined };

/** A JSON body that a route takes; it stands in the document's components under its name. */
export interface RequestBodyDeclaration {
  name: string;
  description: string;
  /** A field that is `writeOnly` is not shown in errors. */
  schema: JsonSchema;
  /** Compiled of the schema. The body is held against it before the handler runs. */
  validate: SchemaValidator;
  /** What the schema cannot say: faults of the fields that are of the right type, whatever else is wrong. `value`: what may be shown, else null. */
  furtherFaults?(body: Readonly<Record<string, unknown>>): { field: string; value: string | null; allowed: string }[];
}

export type RouteMethod = "GET" | "POST" | "PATCH" | "DELETE";

/** A request as handlers see it; they know no socket. */
export interface HandlerRequest<Query extends QueryParameters = QueryParameters> {
  /** Decoded path parameters, every one the path names. */
  readonly params: Readonly<Record<string, string>>;
  /** Validated, with defaults; date-times as microseconds since the Unix epoch. */
  readonly query: QueryValues<Query>;
  /** What absolute links start with, without a slash at the end: `--base-url`, or else the request's Host. */
  readonly baseUrl: string;
  /** The decoded body, which fits the declared schema; undefined for a route that declares none. */
  readonly body: unknown;
  readonly traceId: string;
  /** Value of the header (lower-case name), undefined when absent; several lines joined as RFC 9110 section 5.3 says. */
  header(name: string): string | undefined;
  /** The client is gone: what is still to do for it can be left. */
  isAborted(): boolean;
  /** Aborted when nobody waits for the answer any more: the client is gone, or the request's deadline is over. */
  gone(): AbortSignal;
}

/**
 * One route of the interface, declared once: dispatch, validation, the OpenAPI document and the contract tests derive from it. A
 * GET route answers HEAD too.
 */
export interface Route<Query extends QueryParameters = QueryParameters> {
  readonly method: RouteMethod;
  /** Path below the base address with parameters in braces: `/runs/{run_id}`. */
  readonly path: string;
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  readonly pathParameters: Readonly<Record<string, PathParameter>>;
  readonly query: Query;
  /** Undefined: what comes as a body is skipped. */
  readonly body?: RequestBodyDeclaration;
  readonly responses: Readonly<Record<number, ResponseDeclaration>>;
  /** Files that a page of ours loads are not for clients: the document leaves them out. */
  readonly isUndocumented?: boolean;
  /** Codes it answers beside those that any route can. */
  readonly errors: readonly ErrorCode[];
  /** What an API key must allow; none is needed for "none". */
  readonly scope: "none" | KeyScope;
  /** It tells why no key is accepted: keys that were valid before the key file failed still open it. */
  readonly showsKeyFault?: boolean;
  handle(request: HandlerRequest<Query>): Reply | Promise<Reply>;
}

/** Declares a route; the handler's query values are typed after the declared parameters. */
export function defineRoute<const Query extends QueryParameters>(route: Route<Query>): Route {
  return route as unknown as Route;
}
