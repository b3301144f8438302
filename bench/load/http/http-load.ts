import { get } from "node:http";
import type { Metric, RoundSample, Size } from "../../harness/benchmark.js";
import { LatencyHistogram } from "../../harness/latency-histogram.js";
import { TICKS_PER_SECOND } from "../../harness/machine-cpu.js";
import { cpuSecondsOf } from "../process-cpu.js";
import { HttpConnection } from "./http-connection.js";
import type { ServerProcess } from "./server-process.js";

/** The system counts CPU time in these units. A shorter time counts as one unit. */
const LEAST_CPU_SECONDS = 1 / TICKS_PER_SECOND;
const SECONDS = 3;
/** A number of answers that even the slowest machine reaches. */
const SMOKE_ANSWERS = 2;

/**
 * What `measureHttpLoad` measures. The client shares the cores with the server and takes more of them. So the client would limit the
 * requests per second, and a slower server would not show.
 */
export const HTTP_LOAD: Metric = { name: "requests by CPU time of the server", unit: "req/CPU s", better: "higher" };
/** The same in words, for `measures`. */
export const HTTP_LOAD_METHOD =
  "Each connection keeps one request in flight (closed loop). The figure is requests for each second of CPU time of the server's process, so that it does not " +
  "depend on the client, which shares the cores; requests a second, and latencies from sending a request to its whole answer, are told beside it.";

/** One round of GETs of one path from this process. An answer other than 200 makes it throw. */
export async function measureHttpLoad(
  { url, pid }: Pick<ServerProcess, "url" | "pid">,
  path: string,
  options: { connections: number; size: Size },
): Promise<RoundSample> {
  const connections = await Promise.all(Array.from({ length: options.connections }, () => HttpConnection.open(url)));
  try {
    const latency = new LatencyHistogram();
    let [answers, bytes] = [0, 0];
    const serverCpuBefore = cpuSecondsOf(pid);
    const cpuBefore = process.cpuUsage();
    const startMs = performance.now();
    const endMs = startMs + SECONDS * 1000;
    const isSmoke = options.size === "smoke";
    const load = async (connection: HttpConnection): Promise<void> => {
      for (let nth = 0; isSmoke ? nth < SMOKE_ANSWERS : performance.now() < endMs; nth++) {
        const sentMs = performance.now();
        const { bodyBytes } = await connection.get(path);
        latency.record((performance.now() - sentMs) * 1e6);
        answers++;
        bytes += bodyBytes;
      }
    };
    await Promise.all(connections.map(load));
    const seconds = (performance.now() - startMs) / 1000;
    const cpu = process.cpuUsage(cpuBefore);
    const serverCpuSeconds = cpuSecondsOf(pid) - serverCpuBefore;
    return {
      value: answers / Math.max(serverCpuSeconds, LEAST_CPU_SECONDS),
      seconds,
      latency: latency.toData(),
      details: {
        "req/s": answers / seconds,
        "bodies MB/s": bytes / seconds / 1e6,
        "server CPU %": (serverCpuSeconds / seconds) * 100,
        "client CPU %": (cpu.user + cpu.system) / 1e4 / seconds,
      },
    };
  } finally {
    for (const connection of connections) connection.close();
  }
}

/** An answer as it was on the wire. */
export interface WholeAnswer {
  status: number;
  statusLine: string;
  /** In their order, names as they were written. */
  headerLines: (readonly [name: string, value: string])[];
  body: Buffer;
}

/** One GET over a connection of its own, whatever its status. */
export function getOnce(url: string): Promise<WholeAnswer> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const { httpVersion, statusCode: status = 0, statusMessage, rawHeaders } = response;
        const headerLines: [string, string][] = [];
        for (let i = 0; i < rawHeaders.length; i += 2) {
          headerLines.push([rawHeaders[i] as string, rawHeaders[i + 1] as string]);
        }
        const statusLine = `HTTP/${httpVersion} ${status} ${statusMessage}`;
        resolve({ status, statusLine, headerLines, body: Buffer.concat(chunks) });
      });
    }).on("error", reject);
  });
}

/** A GET that must succeed. */
export async function getAnswer(url: string): Promise<WholeAnswer> {
  const answer = await getOnce(url);
  const { status, body } = answer;
  if (status !== 200) throw new Error(`GET ${url} answered ${status}: ${body.toString("utf8", 0, 500)}`);
  return answer;
}

/** The body of a GET that must succeed. */
export async function getBody(url: string): Promise<Buffer> {
  return (await getAnswer(url)).body;
}

export async function getJson<T>(url: string): Promise<T> {
  return JSON.parse((await getBody(url)).toString()) as T;
}
