import { Writable } from "node:stream";
import { setImmediate as eventLoopTurn, setTimeout as pause } from "node:timers/promises";
import pino from "pino";
import type { Test } from "tap";
import type { Reply } from "../../../http/replies/reply.js";
import type { AllowedHosts } from "../../../http/requests/allowed-hosts.js";
import type { ApiKeys } from "../../../http/requests/api-keys.js";
import type { CrossOrigin } from "../../../http/requests/cross-origin.js";
import { type OnAnswer, RequestPipeline } from "../../../http/requests/request-pipeline.js";
import {
  defineRoute,
  type HandlerRequest,
  type RequestBodyDeclaration,
  type Route,
} from "../../../http/requests/route.js";
import { startFront } from "../../../http/server/choose-server.js";
import type { Front, FrontChoice } from "../../../http/server/server-name.js";
import type { TlsFiles } from "../../../http/server/server-options.js";
import type { StallClock } from "../../../http/server/stalled-clients.js";
import { type FrontHere, frontsHere } from "./fronts-here.js";

export type Handler = (request: HandlerRequest) => Reply | Promise<Reply>;

/** A handler with what its route declares beside it. */
export interface DeclaredHandler {
  body?: RequestBodyDeclaration;
  scope?: Route["scope"];
  live?: NonNullable<Route["live"]>;
  handle: Handler;
}

/** What the helper needs of a tap test. */
export type Teardown = { teardown(undo: () => Promise<void>): void };

export interface HandlerServerOptions {
  level?: string;
  baseUrl?: string;
  heldBodyBytes?: number;
  stallClock?: StallClock;
  deadlineMs?: number;
  tls?: TlsFiles;
  apiKeys?: ApiKeys;
  allowedHosts?: AllowedHosts;
  crossOrigin?: CrossOrigin;
  onAnswer?: OnAnswer;
  front?: FrontChoice;
  uwsPackage?: string;
}

function route(name: string, handler: Handler | DeclaredHandler): Route {
  const [method, path] = name.startsWith("/") ? ["GET", name] : (name.split(" ") as [string, string]);
  return defineRoute({
    method: method as Route["method"],
    path,
    operationId: name,
    tag: "test",
    summary: name,
    pathParameters: {},
    query: {},
    responses: {},
    errors: [],
    scope: "read",
    ...(typeof handler === "function" ? { handle: handler } : handler),
  });
}

/** The front over handlers by `path` or `METHOD path`, with the lines of its log. */
export async function serveHandlers(
  t: Teardown,
  handlers: Record<string, Handler | DeclaredHandler>,
  options: HandlerServerOptions = {},
) {
  const lines: Record<string, unknown>[] = [];
  const sink = new Writable({
    write(chunk, _encoding, done) {
      lines.push(JSON.parse(String(chunk)));
      done();
    },
  });
  const log = pino({ level: options.level ?? "error" }, sink);
  const routes = Object.entries(handlers).map(([name, handler]) => route(name, handler));
  const { baseUrl, deadlineMs, tls, apiKeys, allowedHosts, crossOrigin, onAnswer, front = "auto" } = options;
  const pipeline = new RequestPipeline({
    routes,
    baseUrl,
    scheme: tls === undefined ? "http" : "https",
    log,
    apiKeys,
    allowedHosts,
    ...(crossOrigin !== undefined && { crossOrigin }),
    ...(onAnswer !== undefined && { onAnswer }),
    ...(deadlineMs !== undefined && { deadlineMs }),
  });
  const server = await startFront(front, { host: "127.0.0.1", port: 0, pipeline, log, ...options });
  t.teardown(() => server.close(0));
  return { server, port: server.port, lines };
}

export type Serve = typeof serveHandlers;

type OnFront = (t: Test, serve: Serve, front: Front, here: FrontHere) => Promise<void>;
type TestOptions = { buffered?: boolean };

/** A test that runs on every front: what clients see must not depend on it. */
export function onEveryFront(
  t: Test,
  name: string,
  ...rest: [run: OnFront] | [options: TestOptions, run: OnFront]
): void {
  const [options, run] = rest.length === 1 ? [{}, rest[0]] : rest;
  for (const here of frontsHere(t)) {
    const { front, uwsPackage } = here;
    const serve: Serve = (t, handlers, options) =>
      serveHandlers(t, handlers, { ...options, front, ...(uwsPackage !== undefined && { uwsPackage }) });
    t.test(`${name} (${here.name})`, options, (t) => run(t, serve, front, here));
  }
}

/** Most conditions come within so many turns. A longer wait leaves the core to others. */
const TURNS = 100;

/** Waits for a condition, turn by turn of the event loop; the test's own time limit bounds it. */
export async function until(condition: () => boolean): Promise<void> {
  for (let turn = 0; !condition(); turn++) await (turn < TURNS ? eventLoopTurn() : pause(1));
}
