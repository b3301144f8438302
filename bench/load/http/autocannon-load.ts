import autocannon from "autocannon";
import { LatencyHistogram } from "../../harness/latency-histogram.js";
import type { HttpLoadOutcome, HttpLoadRequest } from "./http-client.js";

/** autocannon in this process, where wrk is not installed: closed loop, one request in flight on each connection. */
export async function runAutocannon(request: HttpLoadRequest): Promise<HttpLoadOutcome> {
  const { until } = request;
  const latency = new LatencyHistogram();
  const cpuBefore = process.cpuUsage();
  const result = await new Promise<autocannon.Result>((resolve, reject) => {
    const running = autocannon(
      {
        url: request.url,
        connections: request.connections,
        ...("seconds" in until
          ? { duration: until.seconds }
          : // It ends with a sample, of which it takes one a second if it is not told otherwise.
            { amount: until.answersPerConnection * request.connections, sampleInt: 50 }),
        requests: request.paths.map((path) => ({ method: "GET", path })),
      },
      (error: Error | null, outcome) => (error === null ? resolve(outcome) : reject(error)),
    );
    running.on("response", (_client, _statusCode, _bytes, milliseconds) => latency.record(milliseconds * 1e6));
  });
  const cpu = process.cpuUsage(cpuBefore);
  return {
    requests: result.requests.total,
    seconds: result.duration,
    bodyAndHeaderBytes: result.throughput.total,
    failures: result.errors + result.timeouts + result.non2xx,
    clientCpuSeconds: (cpu.user + cpu.system) / 1e6,
    latency: latency.toData(),
  };
}
