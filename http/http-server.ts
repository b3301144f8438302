import type { FrontFigures } from "./metrics.js";
import type { RequestPipeline } from "./request-pipeline.js";
import type { ServiceLog } from "./service-log.js";
import type { StallClock } from "./stalled-clients.js";

export interface HttpServerOptions {
  /** Address to listen on; port 0 takes a free one. */
  host: string;
  port: number;
  pipeline: RequestPipeline;
  log: ServiceLog;
  /** Undefined: plain HTTP. */
  tls?: TlsFiles | undefined;
  /** What whole answers that clients do not read may hold together; for tests. */
  heldBodyBytes?: number;
  /** Time by which clients that take nothing are cut; for tests. */
  stallClock?: StallClock;
}

/** Files in PEM. */
export interface TlsFiles {
  certPath: string;
  keyPath: string;
}

/** How long a connection may stay open without a request. */
export const IDLE_MS = 10_000;

export class HttpServerError extends Error {
  override name = "HttpServerError";
}

export function cannotListen({ host, port }: HttpServerOptions, reason: string): HttpServerError {
  return new HttpServerError(`cannot listen on ${host} port ${port}: ${reason}`);
}

/** A listening server; what it serves on is its own affair. */
export interface HttpServer {
  readonly port: number;
  figures(): FrontFigures;
  /**
   * Takes no new connections, lets requests that are under way end within `graceMs`, then closes what is left. Resolves when
   * nothing is open any more.
   */
  close(graceMs: number): Promise<void>;
}
