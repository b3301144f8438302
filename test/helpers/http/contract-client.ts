import { Ajv2020 } from "ajv/dist/2020.js";
import createClient, { type Client } from "openapi-fetch";
import type { components, paths } from "../../../http/client/interface-types.js";
import { RESPONSE_SCHEMAS } from "../../../http/openapi/response-schemas.js";
import { DocumentValidator, FAST_AJV, type InterfaceDocument } from "./document-validator.js";
import type { AnswerOf, ErrorOf, Method, PathOf, RequestArgument } from "./interface-operations.js";
import { type RawResponse, rawRequest } from "./raw-http.js";

type Schema = Record<string, unknown>;
export type ErrorBody = components["schemas"]["ErrorResponse"];

const HOST = "cell:8000";
/** Between two looks at what is to change. */
const POLL_MS = 20;
/** Far longer than anything takes on busy cores, and shorter than the time of a test file: so what never comes is named. */
const UNTIL_MS = 200_000;

/** The same schemas, taking no property that they do not name: a field too many is a breach too. */
export function closed<T>(schema: T): T {
  if (Array.isArray(schema)) return schema.map(closed) as T;
  if (typeof schema !== "object" || schema === null) return schema;
  const copy = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)])) as Schema;
  if (copy.properties !== undefined && copy.additionalProperties === undefined) copy.additionalProperties = false;
  return copy as T;
}

const ajv = new Ajv2020(FAST_AJV);
const isErrorBody = ajv.compile(closed(RESPONSE_SCHEMAS.ErrorResponse));
const PARAMS = (RESPONSE_SCHEMAS.ErrorResponse.properties as Record<string, { properties: Schema }>).params
  ?.properties as Schema;

/** Validators by the document that was served. All services of tests serve the same one, and compiling takes long. */
const validators = new Map<string, DocumentValidator>();

function validatorOf(document: string): DocumentValidator {
  let validator = validators.get(document);
  if (validator === undefined) {
    validator = new DocumentValidator(closed(JSON.parse(document) as InterfaceDocument));
    validators.set(document, validator);
  }
  return validator;
}

/** What the client needs of a tap test. */
export interface Assert {
  equal(found: unknown, expected: unknown, message: string): unknown;
  match(found: unknown, pattern: unknown, message: string): unknown;
}

/** An answer of any status. */
export interface Answer<Data, Failure = ErrorBody> {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** Undefined when it is no success. */
  readonly data: Data | undefined;
  /** Undefined when it is one. */
  readonly error: Failure | undefined;
}

/**
 * The interface for tests: openapi-fetch with the types made from the document, so that a path, a parameter or a field that it does
 * not have is an error of the build. Every answer is held against the served document. What no typed client would send goes by `raw`.
 */
export class ContractClient {
  readonly port: number;
  readonly #t: Assert;
  readonly #typed: Client<paths>;
  /** What openapi-fetch was given, as it came. */
  readonly #received = new WeakMap<Response, RawResponse>();
  #validator: Promise<DocumentValidator> | undefined;

  constructor(t: Assert, port: number) {
    this.#t = t;
    this.port = port;
    this.#typed = createClient<paths>({ baseUrl: `http://${HOST}`, fetch: (request) => this.#fetch(request) });
  }

  /** The JSON of the answer, which is that of success. */
  get<P extends PathOf<"get">>(path: P, ...request: RequestArgument<"get", P>): Promise<AnswerOf<"get", P>> {
    return this.#success("get", path, request);
  }

  post<P extends PathOf<"post">>(path: P, ...request: RequestArgument<"post", P>): Promise<AnswerOf<"post", P>> {
    return this.#success("post", path, request);
  }

  patch<P extends PathOf<"patch">>(path: P, ...request: RequestArgument<"patch", P>): Promise<AnswerOf<"patch", P>> {
    return this.#success("patch", path, request);
  }

  /** Answered without a body. */
  async delete<P extends PathOf<"delete">>(path: P, ...request: RequestArgument<"delete", P>): Promise<void> {
    const { status, text } = await this.answer("delete", path, ...request);
    this.#t.equal(status, 204, `DELETE ${path}: ${text.slice(0, 300)}`);
    this.#t.equal(text, "", `DELETE ${path}: no body`);
  }

  /** The envelope of an error, which must be this one. */
  async refusal<M extends Method, P extends PathOf<M>>(
    method: M,
    path: P,
    status: number,
    code: ErrorBody["code"],
    ...request: RequestArgument<M, P>
  ): Promise<ErrorBody> {
    const { raw } = await this.#call(method, path, request);
    return this.#envelope(raw, `${method.toUpperCase()} ${path}`, status, code);
  }

  /** The answer, whatever its status. */
  async answer<M extends Method, P extends PathOf<M>>(
    method: M,
    path: P,
    ...request: RequestArgument<M, P>
  ): Promise<Answer<AnswerOf<M, P>, ErrorOf<M, P>>> {
    const { raw, data, error } = await this.#call(method, path, request);
    return { status: raw.status, headers: raw.headers, text: raw.body.toString(), data, error };
  }

  /** Asks until the answer is as expected. What was acknowledged to a producer may not be there yet (404). */
  async until<P extends PathOf<"get">>(
    path: P,
    isWanted: (answer: AnswerOf<"get", P>) => boolean,
    ...request: RequestArgument<"get", P>
  ): Promise<AnswerOf<"get", P>> {
    for (const endMs = performance.now() + UNTIL_MS; ; ) {
      const { raw, data } = await this.#call("get", path, request);
      if (raw.status !== 404 && isWanted(await this.#checked("get", path, raw, data)))
        return data as AnswerOf<"get", P>;
      if (performance.now() > endMs) throw new Error(`GET ${path} never was as expected, but ${raw.body.toString()}`);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  /**
   * What no typed client would send.
   * @param target as it goes out, with its query
   * @param headers lines, each with its CR LF
   */
  async raw(method: string, target: string, headers = "", body = ""): Promise<RawResponse> {
    const length = body === "" ? "" : `Content-Length: ${Buffer.byteLength(body)}\r\n`;
    const head = `${method} ${target} HTTP/1.1\r\nHost: ${HOST}\r\n${headers}${length}\r\n`;
    const response = await rawRequest(this.port, head + Buffer.from(body).toString("latin1"), method);
    if (response === undefined) throw new Error(`${method} ${target}: the connection closed without an answer`);
    const what = `${method} ${target}`;
    this.#t.match(response.headers["x-trace-id"], /^[0-9a-f]{32}$/, `${what}: X-Trace-ID`);
    this.#validator ??= this.#readDocument();
    this.#t.equal((await this.#validator).faults(method, target, response), "", `${what}: fits the served document`);
    return response;
  }

  /** As `raw`, with any JSON as the body. */
  rawJson(method: string, target: string, body: unknown): Promise<RawResponse> {
    return this.raw(method, target, "Content-Type: application/json\r\n", JSON.stringify(body));
  }

  /** The envelope of the error that a raw GET gets. */
  async rawRefusal(target: string, status: number, code: ErrorBody["code"]): Promise<ErrorBody> {
    return this.#envelope(await this.raw("GET", target), `GET ${target}`, status, code);
  }

  async #readDocument(): Promise<DocumentValidator> {
    const response = await rawRequest(this.port, `GET /openapi.json HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
    return validatorOf(response?.body.toString() ?? "");
  }

  /** Sends a request of openapi-fetch byte by byte, with the host that links are made of. */
  async #fetch(request: Request): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    const lines = [...request.headers].map(([name, value]) => `${name}: ${value}\r\n`).join("");
    const raw = await this.raw(request.method, pathname + search, lines, await request.text());
    const hasBody = raw.status !== 204 && raw.status !== 304;
    const response = new Response(hasBody ? raw.body : null, { status: raw.status, headers: raw.headers });
    this.#received.set(response, raw);
    return response;
  }

  /** The types of `path` and `request` were checked where they came in. */
  async #call<M extends Method, P extends PathOf<M>>(
    method: M,
    path: P,
    [request]: RequestArgument<M, P>,
  ): Promise<{ raw: RawResponse; data: AnswerOf<M, P> | undefined; error: ErrorOf<M, P> | undefined }> {
    const { path: pathParameters, query, body } = (request ?? {}) as Record<string, object | undefined>;
    const call = this.#typed.request as (method: Method, path: string, init: object) => Promise<CallOutcome>;
    const outcome = await call(method, path, { params: { path: pathParameters, query }, body });
    const raw = this.#received.get(outcome.response) as RawResponse;
    return { raw, data: outcome.data as AnswerOf<M, P> | undefined, error: outcome.error as ErrorOf<M, P> | undefined };
  }

  async #success<M extends Method, P extends PathOf<M>>(
    method: M,
    path: P,
    request: RequestArgument<M, P>,
  ): Promise<AnswerOf<M, P>> {
    const { raw, data } = await this.#call(method, path, request);
    return this.#checked(method, path, raw, data);
  }

  /** Checks an answer that must be a success, and gives its data. */
  async #checked<Data>(method: Method, path: string, raw: RawResponse, data: Data | undefined): Promise<Data> {
    const what = `${method.toUpperCase()} ${path}`;
    const validator = (await this.#validator) as DocumentValidator;
    this.#t.equal(raw.status, validator.successOf(method, path), `${what}: ${raw.body.toString().slice(0, 300)}`);
    this.#t.equal(raw.headers["content-type"], "application/json", what);
    return data as Data;
  }

  #envelope(response: RawResponse, what: string, status: number, code: ErrorBody["code"]): ErrorBody {
    const value = response.json() as ErrorBody;
    this.#t.equal(response.status, status, `${what}: ${response.body.toString().slice(0, 300)}`);
    this.#t.equal(isErrorBody(value) ? "" : ajv.errorsText(isErrorBody.errors), "", `${what}: the envelope`);
    this.#t.equal(Object.keys(value).join(), "code,message,params,trace_id,retryable", what);
    this.#t.equal(value.code, code, what);
    this.#t.equal(value.trace_id, response.headers["x-trace-id"], what);
    // An internal_error may name any params, since any stored data may be unreadable.
    const unknown =
      code === "internal_error" ? [] : Object.keys(value.params ?? {}).filter((name) => !(name in PARAMS));
    this.#t.equal(unknown.join(), "", `${what}: params that the document lacks`);
    return value;
  }
}

interface CallOutcome {
  response: Response;
  data?: unknown;
  error?: unknown;
}
