import type { LatencyData } from "../../harness/latency-histogram.js";

export type HttpClient = "wrk" | "autocannon";

/** What ends a round: time, in whole seconds since wrk takes no others; or a number of answers, to which a machine comes however slow it is. */
export type LoadEnd = { seconds: number } | { answersPerConnection: number };

export interface HttpLoadRequest {
  url: string;
  /** Asked for in turn, over and over. */
  paths: readonly string[];
  connections: number;
  until: LoadEnd;
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
