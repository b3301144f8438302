import type { RequestPipeline } from "./request-pipeline.js";
import type { ServiceLog } from "./service-log.js";

export interface HttpServerOptions {
  /** Address to listen on; port 0 takes a free one. */
  host: string;
  port: number;
  pipeline: RequestPipeline;
  log: ServiceLog;
  /** What whole answers that clients do not read may hold together; for tests. */
  heldBodyBytes?: number;
}

/** A listening server; what it serves on is its own affair. */
export interface HttpServer {
  readonly port: number;
  /**
   * Takes no new connections, lets requests that are under way end within `graceMs`, then closes what is left. Resolves when
   * nothing is open any more.
   */
  close(graceMs: number): Promise<void>;
}
