import { canonicalUuid } from "../../core/identifiers.js";
import { type ErrorCode, ServiceError } from "../../core/service-errors.js";
import type { Route } from "./route.js";

export interface RouteMatch {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
  /** Whether the route declares query parameters. */
  readonly takesQuery: boolean;
}

/**
 * Size of the cache of paths. Each place keeps the last path that hashed to it, so the cache stays small whatever clients send. A power of
 * two.
 */
const REMEMBERED_PLACES = 2_048;
const REMEMBERED_PATH_CHARACTERS = 200;
/** End of the id in `/runs/{id}/…`: its last digits are random. */
const ID_END = "/runs/".length + 36;

interface Remembered {
  readonly path: string;
  readonly match: RouteMatch;
}

/** The cache place of a path, from a few of its characters: hashing all of them, as a Map does, costs more than the whole look-up. */
function placeOf(path: string): number {
  const { length } = path;
  let place = length;
  for (let at = Math.max(length - 4, 0); at < length; at++) place = Math.imul(place, 31) + path.charCodeAt(at);
  if (length > ID_END) {
    for (let at = ID_END - 4; at < ID_END; at++) place = Math.imul(place, 31) + path.charCodeAt(at);
  }
  return (place ^ (place >>> 11)) & (REMEMBERED_PLACES - 1);
}

interface Node {
  readonly literals: Map<string, Node>;
  parameter: Node | undefined;
  /** The route of each method that ends here. */
  readonly routes: Map<string, Route>;
  /** Names of the path's parameters, in order. */
  names: string[];
}

function createNode(): Node {
  return { literals: new Map(), parameter: undefined, routes: new Map(), names: [] };
}

function parameterName(segment: string): string | undefined {
  return /^\{([a-z_]+)\}$/.exec(segment)?.[1];
}

/**
 * Finds the route of a path. A literal segment wins over a parameter. Paths are compared as they were sent, segment by segment, without
 * normalising: `..`, doubled slashes and an encoded slash match no route.
 */
export class PathRouter {
  readonly #root = createNode();
  /** Recent paths of GET, by place: the match of a path never changes. */
  readonly #remembered: (Remembered | undefined)[] = new Array(REMEMBERED_PLACES).fill(undefined);

  /** @throws Error when two routes share method and path, or a path and its declared parameters differ */
  constructor(routes: readonly Route[]) {
    for (const route of routes) this.#add(route);
  }

  #add(route: Route): void {
    let node = this.#root;
    const names: string[] = [];
    for (const segment of route.path.slice(1).split("/")) {
      const name = parameterName(segment);
      if (name !== undefined) {
        names.push(name);
        node.parameter ??= createNode();
        node = node.parameter;
      } else {
        const next = node.literals.get(segment) ?? createNode();
        node.literals.set(segment, next);
        node = next;
      }
    }
    const declared = Object.keys(route.pathParameters);
    if (names.join() !== declared.join()) {
      throw new Error(`${route.method} ${route.path}: its path parameters differ from the declared ones`);
    }
    if (node.routes.has(route.method)) throw new Error(`${route.method} ${route.path} is declared twice`);
    node.routes.set(route.method, route);
    // The declared names are already property keys in V8, which makes setting them cheaper.
    node.names = declared;
  }

  /**
   * @param method in upper case; HEAD is answered by the GET route
   * @param path raw path with its leading slash, without the query
   * @throws ServiceError route_not_found; method_not_allowed with params.allow; the parameter's not-found code when its
   *   percent-encoding is broken; invalid_parameter when it must be an integer and is none
   */
  find(method: string, path: string): RouteMatch {
    if (method !== "GET") return this.#find(method, path);
    const place = placeOf(path);
    const remembered = this.#remembered[place];
    if (remembered !== undefined && remembered.path === path) return remembered.match;
    const match = this.#find(method, path);
    if (path.length <= REMEMBERED_PATH_CHARACTERS) this.#remembered[place] = { path, match };
    return match;
  }

  #find(method: string, path: string): RouteMatch {
    const values: string[] = [];
    const node = this.#walk(path, values);
    if (node === undefined) throw noRoute(path);
    const route = node.routes.get(method === "HEAD" ? "GET" : method);
    if (route === undefined) {
      const allow = methodsOf(node);
      throw new ServiceError(
        "method_not_allowed",
        `this path does not allow ${method.slice(0, 32)}, only ${allow.join(", ")}`,
        { method, allow },
      );
    }
    const takesQuery = Object.keys(route.query).length > 0;
    if (values.length === 0) return { route, params: NO_PARAMETERS, takesQuery };
    const params: Record<string, string> = {};
    for (let i = 0; i < values.length; i++) {
      const name = node.names[i] as string;
      params[name] = readSegment(route, name, values[i] as string);
    }
    return { route, params: Object.freeze(params), takesQuery };
  }

  /** Methods of the path, HEAD and OPTIONS among them. @throws ServiceError route_not_found */
  methods(path: string): string[] {
    const node = this.#walk(path, []);
    if (node === undefined) throw noRoute(path);
    return methodsOf(node);
  }

  #walk(path: string, values: string[]): Node | undefined {
    let node: Node | undefined = path === "" ? undefined : this.#root;
    let start = 1;
    while (node !== undefined) {
      const slash: number = path.indexOf("/", start);
      const segment = path.slice(start, slash === -1 ? path.length : slash);
      const literal: Node | undefined = node.literals.get(segment);
      if (literal !== undefined) node = literal;
      else if (segment === "") return undefined;
      else {
        node = node.parameter;
        values.push(segment);
      }
      if (slash === -1) return node !== undefined && node.routes.size > 0 ? node : undefined;
      start = slash + 1;
    }
    return undefined;
  }
}

const NO_PARAMETERS: Record<string, string> = Object.freeze({});

function noRoute(path: string): ServiceError {
  return new ServiceError("route_not_found", "the interface has no such path; /docs lists all paths", {
    path: path.slice(0, 2048),
  });
}

function methodsOf(node: Node): string[] {
  return [...[...node.routes.keys()].flatMap((known) => (known === "GET" ? ["GET", "HEAD"] : [known])), "OPTIONS"];
}

/** The parameter's value. @throws ServiceError its not-found code if the encoding is broken; invalid_parameter if it is no integer */
function readSegment(route: Route, name: string, raw: string): string {
  const parameter = route.pathParameters[name];
  const text = decoded(raw);
  if (parameter?.kind === "integer" && (text === undefined || !/^-?\d+$/.test(text))) {
    throw refused("invalid_parameter", `path parameter ${name} must be an integer`, name, raw, "an integer");
  }
  if (text === undefined) {
    const notFound = parameter?.notFound ?? "route_not_found";
    throw refused(notFound, `path parameter ${name} must be percent-encoded UTF-8`, name, raw, "percent-encoded UTF-8");
  }
  return parameter?.kind === "id" ? (canonicalUuid(text) ?? text) : text;
}

/** Undefined when its encoding is broken. */
function decoded(raw: string): string | undefined {
  // Bytes that are not UTF-8 arrive as U+FFFD.
  if (raw.includes("\ufffd")) return undefined;
  // A copy, for speed: V8 compares and looks up a slice of another string more slowly each time.
  if (!raw.includes("%")) return Buffer.from(raw).toString();
  try {
    return decodeURIComponent(raw);
  } catch {
    return undefined;
  }
}

function refused(code: ErrorCode, message: string, field: string, raw: string, allowed: string): ServiceError {
  return new ServiceError(code, message, { field, in: "path", value: raw.slice(0, 2048), allowed });
}
