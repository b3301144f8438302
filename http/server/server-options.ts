import type { Timers } from "../../core/timers.js";
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
  /** Most connections at a time; undefined: any number. */
  maxConnections?: number | undefined;
  /** Limit of unread answers in bytes; for tests. */
  heldBodyBytes?: number;
  /** The package to take uWebSockets.js from; for tests. */
  uwsPackage?: string | undefined;
  /** Timers of the pings to WebSockets; tests pass their own. */
  pingTimers?: Timers;
  /** Clock that cuts off stalled clients; for tests. */
  stallClock?: StallClock;
}

/**
 * Ciphers for TLS 1.2: only ephemeral key exchange and authenticated encryption, so no RSA key exchange and no CBC. TLS 1.3 has no others.
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
 * How long an idle connection stays open. The value is built into uWebSockets.js, which checks every 4 s and so closes a connection after 8 to 12 s
 * without a request.
 */
export const IDLE_MS = 10_000;

/** The idle time that clients are told: shorter, so that a request sent in time finds the connection open even on a slow line. */
export const KEEP_ALIVE_SECONDS = 5;

/** Header lines of every answer that keeps its connection open. */
export const KEEP_ALIVE_LINES = [
  ["Connection", "keep-alive"],
  ["Keep-Alive", `timeout=${KEEP_ALIVE_SECONDS}`],
] as const;

export class HttpServerError extends Error {
  override name = "HttpServerError";
}

export function cannotListen({ host, port }: HttpServerOptions, reason: string): HttpServerError {
  return new HttpServerError(`cannot listen on ${host} port ${port}: ${reason}; --host and --port choose another`);
}

/** A listening HTTP server. */
export interface HttpServer {
  readonly port: number;
  /** Name for people, such as `uWebSockets.js 20.56.0`. */
  readonly label: string;
  figures(): FrontFigures;
  /**
   * Accepts no new connections, lets requests end within `graceMs`, then closes the rest. Resolves when every connection is closed.
   */
  close(graceMs: number): Promise<void>;
}
