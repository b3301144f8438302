import type { Client, ClientPathsWithMethod, FetchResponse, MethodResponse } from "openapi-fetch";
import type { paths } from "../../../http/client/interface-types.js";

/** Methods, paths, parameters, bodies and answers of the served document, as types. */
export type Method = "get" | "post" | "patch" | "delete";
/** A path of the document, parameters in braces. */
export type PathOf<M extends Method> = ClientPathsWithMethod<Client<paths>, M> & keyof paths;
/** The JSON of an answer that is no error. */
export type AnswerOf<M extends Method, P extends PathOf<M>> = MethodResponse<Client<paths>, M, P>;
/** The JSON of any other answer. */
export type ErrorOf<M extends Method, P extends PathOf<M>> = NonNullable<
  FetchResponse<Extract<paths[P][M], Record<string | number, unknown>>, object, "application/json">["error"]
>;

type Operation<M extends Method, P extends keyof paths> = paths[P] extends Record<M, infer Found> ? Found : never;
type PathPart<Op> = Op extends { parameters: { path: infer Path } } ? { path: Path } : { path?: never };
type QueryPart<Op> = Op extends { parameters: { query?: infer Query } } ? { query?: Query } : { query?: never };
type BodyPart<Op> = Op extends { requestBody: { content: { "application/json": infer Body } } }
  ? { body: Body }
  : { body?: never };

/** What is to go with a request: `path` and `query` parameters by name, the JSON `body`. */
export type RequestOf<M extends Method, P extends PathOf<M>> = PathPart<Operation<M, P>> &
  QueryPart<Operation<M, P>> &
  BodyPart<Operation<M, P>>;
/** The last argument of a call: it can be left out where nothing must go with the request. */
export type RequestArgument<M extends Method, P extends PathOf<M>> =
  Record<never, never> extends RequestOf<M, P> ? [request?: RequestOf<M, P>] : [request: RequestOf<M, P>];
