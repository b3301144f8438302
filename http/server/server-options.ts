import type { ServiceLog } from "../log/service-log.js";
import type { RequestPipeline } from "../requests/request-pipeline.js";
import type { FrontFigures } from "../service/metrics.js";
import type { StallClock } from "./stalled-clients.js";

export interface HttpServerOptions {
  /** Address to listen on; port 0 takes a free one. */
  host: string;
  port: number;
  pipeline: RequestPipeline;
  log: ServiceLog;
  /** Undefined: plain HTTP. */
  tls?: TlsFiles | undefined;
  /** Connections at a time, of all clients; undefined: any number. */
  maxConnections?: number | undefined;
  /** What whole answers that clients do not read may hold together; for tests. */
  heldBodyBytes?: number;
  /** The package to take uWebSockets.js from; for tests. */
  uwsPackage?: string | undefined;
  /** Time by which clients that take nothing are cut; for tests. */
  stallClock?: StallClock;
}

/**
 * What TLS 1.2 may use: keys that are agreed on for one connection, and ciphers that authenticate what they encrypt. No key exchange by RSA, no CBC.
 * TLS 1.3 has nothing else.
 */
export const TLS_CIPHERS = [
  ...["TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"],
  ...["ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384"],
  ...["ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305"],
  ...["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"],
].join(":");

/** Files in PEM. */
export interface TlsFiles {
  certPath: string;
  keyPath: string;
}

/**
 * How long a connection stays open without a request. It is what is built into uWebSockets.js, which looks every 4 s: there a connection is
 * closed when it has been idle for 8 to 12 s.
 */
export const IDLE_MS = 10_000;

/** What clients are told of it: less than the shortest, so that a request sent until then finds the connection open, also on a slow line. */
export const KEEP_ALIVE_SECONDS = 5;

/** Of every answer that is not the last of its connection. */
export const KEEP_ALIVE_LINES = [
  ["Connection", "keep-alive"],
  ["Keep-Alive", `timeout=${KEEP_ALIVE_SECONDS}`],
] as const;

export class HttpServerError extends Error {
  override name = "HttpServerError";
}

export function cannotListen({ host, port }: HttpServerOptions, reason: string): HttpServerError {
  return new HttpServerError(`cannot listen on ${host} port ${port}: ${reason}`);
}

/** A listening server; what it serves on is its own affair. */
export interface HttpServer {
  readonly port: number;
  /** What serves, for people: `uWebSockets.js 20.56.0`. */
  readonly label: string;
  figures(): FrontFigures;
  /**
   * Takes no new connections, lets requests that are under way end within `graceMs`, then closes what is left. Resolves when
   * nothing is open any more.
   */
  close(graceMs: number): Promise<void>;
}
