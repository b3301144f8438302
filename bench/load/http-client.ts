import type { LatencyData } from "../harness/latency-histogram.js";

export type HttpClient = "wrk" | "autocannon";

export interface HttpLoadRequest {
  url: string;
  /** Asked for in turn, over and over. */
  paths: readonly string[];
  connections: number;
  /** Whole seconds: wrk takes no others. */
  seconds: number;
  /** For files of the client's. */
  directory: string;
}

/** What a client reports, whichever it is. */
export interface HttpLoadOutcome {
  requests: number;
  seconds: number;
  latency: LatencyData;
  bodyAndHeaderBytes: number;
  clientCpuSeconds: number;
  /** Connection errors, timeouts and answers other than 2xx. */
  failures: number;
}
