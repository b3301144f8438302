import type { JsonSchema } from "../../core/json/described-schema.js";
import type { SchemaValidator } from "../../core/json/schema-validators.js";
import type { ErrorCode } from "../../core/service-errors.js";
import type { Headers } from "../openapi/documented-headers.js";
import type { Reply } from "../replies/reply.js";
import type { KeyScope } from "./api-keys.js";
import type { QueryParameters, QueryValues } from "./query-parameters.js";

export interface PathParameter {
  description: string;
  schema: JsonSchema;
  /** An id is taken in either case and handed on in lower case; an integer must be one (422). Default: any text. */
  kind?: "id" | "integer";
  /** Error if nothing has this name, or if its percent-encoding is broken. */
  notFound: ErrorCode;
}

/** A response without content type has no body. */
export type ResponseDeclaration =
  | { description: string; contentType: string; schema: JsonSchema; headers?: Headers }
  | { description: string; contentType?: undefined; headers?: undefined };

/** A JSON body that a route accepts. The OpenAPI document lists it in its components under `name`. */
export interface RequestBodyDeclaration {
  name: string;
  description: string;
  /** Errors do not show the value of a `writeOnly` field. */
  schema: JsonSchema;
  /** Compiled from the schema; it checks the body before the handler runs. */
  validate: SchemaValidator;
  /** Checks that a schema cannot express, for fields of the right type. `value`: what an error may show, else null. */
  furtherFaults?(body: Readonly<Record<string, unknown>>): { field: string; value: string | null; allowed: string }[];
}

export type RouteMethod = "GET" | "POST" | "PATCH" | "DELETE";

/** A request as handlers see it, independent of the server. */
export interface HandlerRequest<Query extends QueryParameters = QueryParameters> {
  /** All parameters of the path, decoded. */
  readonly params: Readonly<Record<string, string>>;
  /** Validated, with defaults; date-times as microseconds since the Unix epoch. */
  readonly query: QueryValues<Query>;
  /** What absolute links start with, without a slash at the end: `--base-url`, or else the request's Host. */
  readonly baseUrl: string;
  /** The parsed body, valid by the declared schema; undefined if the route declares none. */
  readonly body: unknown;
  /** Value of the header (name in lower case), undefined if absent; several lines joined by RFC 9110, section 5.3. */
  header(name: string): string | undefined;
  /** Aborted when nobody waits for the answer any more: the client is gone, or the deadline has passed. */
  gone(): AbortSignal;
}

/**
 * One route of the interface. Dispatch, validation, the OpenAPI document and the contract tests all derive from this declaration. A GET
 * route also answers HEAD.
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
  /** Header parameters, for the document. */
  readonly headers?: Readonly<Record<string, { readonly description: string; readonly schema: JsonSchema }>>;
  /** Undefined: a body is ignored. */
  readonly body?: RequestBodyDeclaration;
  readonly responses: Readonly<Record<number, ResponseDeclaration>>;
  /** Left out of the OpenAPI document: files that our own pages load are not for clients. */
  readonly isUndocumented?: boolean;
  /** Error codes of this route, in addition to those that every route can answer. */
  readonly errors: readonly ErrorCode[];
  /** The scope that an API key needs; "none": no key is needed. */
  readonly scope: "none" | KeyScope;
  /** Accepts keys that were valid before the key file failed, so that a monitor can see what is wrong. */
  readonly showsKeyFault?: boolean;
  /** The answer is sent while it is made: nobody knows its length or version before. */
  readonly isMadeWhileSent?: boolean;
  /** The client stays connected: it gets a stream, or a WebSocket. Pages of other origins may not open it, unless they are allowed. */
  readonly live?: "stream" | "socket";
  handle(request: HandlerRequest<Query>): Reply | Promise<Reply>;
}

type Defaulted = "method" | "pathParameters" | "query" | "errors" | "scope";

/** A route as it is declared. A field that is left out means: a GET, no parameters, no errors of its own. */
type RouteDeclaration<Query extends QueryParameters> = Omit<Route<Query>, Defaulted> &
  Partial<Pick<Route<Query>, Defaulted>>;

/**
 * Declares a route; the type of the handler's query values follows from the declared parameters. By default a GET needs a key that
 * may read, and any other method needs a key that may manage.
 */
export function defineRoute<const Query extends QueryParameters>(route: RouteDeclaration<Query>): Route {
  const { method = "GET" } = route;
  const defaults = { method, pathParameters: {}, query: {}, errors: [], scope: method === "GET" ? "read" : "manage" };
  return { ...defaults, ...route } as unknown as Route;
}
