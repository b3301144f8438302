import { ServiceError } from "../core/service-errors.js";
import type { Route } from "./route.js";

export interface RouteMatch {
  route: Route;
  params: Record<string, string>;
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
 * Finds the route of a path. A literal segment wins over a parameter. Paths are compared as they came, segment by segment: nothing
 * is normalised, so `..`, doubled slashes and an encoded slash lead nowhere.
 */
export class PathRouter {
  readonly #root = createNode();

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
        let next = node.literals.get(segment);
        if (next === undefined) {
          next = createNode();
          node.literals.set(segment, next);
        }
        node = next;
      }
    }
    if (names.join() !== Object.keys(route.pathParameters).join()) {
      throw new Error(`${route.method} ${route.path}: its path parameters are not the declared ones`);
    }
    if (node.routes.has(route.method)) throw new Error(`${route.method} ${route.path} is declared twice`);
    node.routes.set(route.method, route);
    node.names = names;
  }

  /**
   * @param method in upper case; HEAD is answered by the GET route
   * @param path raw path with its leading slash, without the query
   * @throws ServiceError route_not_found; method_not_allowed with params.allow; the parameter's not-found code when its
   *   percent-encoding is broken
   */
  find(method: string, path: string): RouteMatch {
    const values: string[] = [];
    const node = this.#walk(path, values);
    if (node === undefined) throw noRoute(path);
    const route = node.routes.get(method === "HEAD" ? "GET" : method);
    if (route === undefined) {
      const allow = methodsOf(node);
      throw new ServiceError("method_not_allowed", `this path allows ${allow.join(", ")}`, { method, allow });
    }
    const params: Record<string, string> = {};
    for (let i = 0; i < values.length; i++) {
      const name = node.names[i] as string;
      params[name] = decodeSegment(route, name, values[i] as string);
    }
    return { route, params };
  }

  /** Methods of the path, HEAD and OPTIONS among them. @throws ServiceError route_not_found */
  methods(path: string): string[] {
    const node = this.#walk(path, []);
    if (node === undefined) throw noRoute(path);
    return methodsOf(node);
  }

  #walk(path: string, values: string[]): Node | undefined {
    let node: Node | undefined = this.#root;
    let start = 1;
    while (node !== undefined) {
      const slash: number = path.indexOf("/", start);
      const segment: string = slash === -1 ? path.slice(start) : path.slice(start, slash);
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

function noRoute(path: string): ServiceError {
  return new ServiceError("route_not_found", "the interface has no such path", { path: path.slice(0, 2048) });
}

function methodsOf(node: Node): string[] {
  return [...[...node.routes.keys()].flatMap((known) => (known === "GET" ? ["GET", "HEAD"] : [known])), "OPTIONS"];
}

function decodeSegment(route: Route, name: string, raw: string): string {
  const notFound = () =>
    new ServiceError(route.pathParameters[name]?.notFound ?? "route_not_found", `nothing can have this ${name}`, {
      field: name,
      in: "path",
      value: raw.slice(0, 2048),
      allowed: "percent-encoded UTF-8",
    });
  // Raw bytes that were not UTF-8 arrive as U+FFFD.
  if (raw.includes("\ufffd")) throw notFound();
  if (!raw.includes("%")) return raw;
  try {
    return decodeURIComponent(raw);
  } catch {
    throw notFound();
  }
}
