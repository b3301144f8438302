import { spawnSync } from "node:child_process";
import { get } from "node:http";
import type { RoundSample, Size } from "../../harness/benchmark.js";
import { cpuSecondsOf } from "../process-cpu.js";
import { runAutocannon } from "./autocannon-load.js";
import type { HttpClient, HttpLoadRequest, LoadEnd } from "./http-client.js";
import { runWrk } from "./wrk-load.js";

/** Above this share of one core a one-threaded client shows its own limit, not the server's. */
const CLIENT_BOUND = 0.95;

/** wrk where it is installed: it takes a fraction of autocannon's CPU time per request. But it takes whole seconds, and smoke size ends with its answers. */
export function chooseHttpClient(size: Size): HttpClient {
  if (size === "smoke") return "autocannon";
  return spawnSync("wrk", ["--version"], { stdio: "ignore" }).error === undefined ? "wrk" : "autocannon";
}

/** Smoke size proves that answers come; for figures time decides. */
export function loadEnd(size: Size, seconds: number): LoadEnd {
  return size === "smoke" ? { answersPerConnection: 5 } : { seconds };
}

/** One round of closed-loop GETs; a failure among the answers makes it throw, because then it is no measurement. */
export async function measureHttpLoad(
  client: HttpClient,
  serverPid: number,
  request: HttpLoadRequest,
): Promise<RoundSample> {
  const serverCpuBefore = cpuSecondsOf(serverPid);
  const outcome = await (client === "wrk" ? runWrk : runAutocannon)(request);
  const serverCpuSeconds = cpuSecondsOf(serverPid) - serverCpuBefore;
  if (outcome.failures > 0 || outcome.requests === 0) {
    throw new Error(`${outcome.failures} of ${outcome.requests} requests to ${request.url} failed`);
  }
  const clientShare = outcome.clientCpuSeconds / outcome.seconds;
  return {
    value: outcome.requests / outcome.seconds,
    seconds: outcome.seconds,
    latency: outcome.latency,
    details: {
      "server CPU us/request": (serverCpuSeconds * 1e6) / outcome.requests,
      "server CPU %": (serverCpuSeconds / outcome.seconds) * 100,
      "client CPU %": clientShare * 100,
      "received MB/s": outcome.bodyAndHeaderBytes / outcome.seconds / 1e6,
    },
    ...(clientShare >= CLIENT_BOUND
      ? { warnings: [`client-bound: ${client} used its whole core, the server may be faster than this`] }
      : {}),
  };
}

/** What came back, as it stood on the wire. */
export interface WholeAnswer {
  status: number;
  statusLine: string;
  /** In their order, names as they were written. */
  headerLines: (readonly [name: string, value: string])[];
  body: Buffer;
}

/** One GET as the load makes it: no Accept-Encoding, nothing added; over a connection of its own, which no server has closed since. */
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
        resolve({
          status,
          statusLine: `HTTP/${httpVersion} ${status} ${statusMessage}`,
          headerLines,
          body: Buffer.concat(chunks),
        });
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
