import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { LatencyHistogram } from "../../harness/latency-histogram.js";
import { cpuSecondsOfEndedChildren } from "../process-cpu.js";
import type { HttpLoadOutcome, HttpLoadRequest } from "./http-client.js";

/**
 * Only `done` runs for a single path, so that nothing of Lua stands in the request's way; several paths are formatted
 * beforehand and taken in turn. `done` writes the whole histogram, value and count a line, in microseconds.
 */
function luaScript(paths: readonly string[], resultFile: string): string {
  const quoted = (text: string): string => `"${text.replace(/[\\"\n]/g, (c) => `\\${c}`)}"`;
  const turns =
    paths.length === 1
      ? ""
      : `local paths = {${paths.map(quoted).join(", ")}}
local requests = {}
local turn = 0
init = function(args)
  for i, path in ipairs(paths) do requests[i] = wrk.format("GET", path) end
end
request = function()
  turn = turn % #requests + 1
  return requests[turn]
end
`;
  return `${turns}done = function(summary, latency, requests)
  local e = summary.errors
  local file = io.open(${quoted(resultFile)}, "w")
  file:write(string.format("%d %d %d %d %d\\n", summary.requests, summary.duration, summary.bytes,
    e.connect + e.read + e.write + e.timeout + e.status, latency.max))
  for i = 1, #latency do
    local value, count = latency(i)
    file:write(string.format("%d %d\\n", value, count))
  end
  file:close()
end
`;
}

/**
 * One thread of wrk: closed loop, one request in flight on each connection; for a second where a number of answers is to end it. wrk itself fills the
 * histogram up for what it did not send while it waited (its `stats_correct`).
 */
export async function runWrk(request: HttpLoadRequest): Promise<HttpLoadOutcome> {
  const script = join(request.directory, "wrk.lua");
  const resultFile = join(request.directory, "wrk-result.txt");
  writeFileSync(script, luaScript(request.paths, resultFile));
  const cpuBefore = cpuSecondsOfEndedChildren();
  const child = spawn(
    "wrk",
    [
      "-t",
      "1",
      "-c",
      `${request.connections}`,
      "-d",
      `${"seconds" in request.until ? request.until.seconds : 1}s`,
      "--timeout",
      "10s",
      "-s",
      script,
    ].concat(`${request.url}${request.paths[0]}`),
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  let complaint = "";
  child.stderr.on("data", (chunk: Buffer) => {
    complaint = (complaint + chunk.toString()).slice(-2000);
  });
  const [code] = (await once(child, "exit")) as [number | null];
  if (code !== 0) throw new Error(`wrk ended with ${code}: ${complaint}`);
  const clientCpuSeconds = cpuSecondsOfEndedChildren() - cpuBefore;

  const [head = "", ...lines] = readFileSync(resultFile, "utf8").trim().split("\n");
  rmSync(resultFile);
  const [requests = 0, durationUs = 0, bytes = 0, failures = 0] = head.split(" ").map(Number);
  const latency = new LatencyHistogram();
  for (const line of lines) {
    const [us = 0, count = 0] = line.split(" ").map(Number);
    latency.record(us * 1000, count);
  }
  return {
    requests,
    seconds: durationUs / 1e6,
    bodyAndHeaderBytes: bytes,
    failures,
    clientCpuSeconds,
    latency: latency.toData(),
  };
}
