import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findUws, fullReason } from "../../http/server/uws-binary.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark } from "../harness/benchmark.js";
import { atLeast } from "../harness/goal.js";
import { getAnswer, HTTP_LOAD, HTTP_LOAD_METHOD, measureHttpLoad, type WholeAnswer } from "../load/http/http-load.js";
import { type ServerProcess, startServer } from "../load/http/server-process.js";
import { type ServiceProcess, startService } from "../load/http/service-process.js";
import { fillService } from "../load/run-producer.js";

const BARE_SERVER = fileURLToPath(new URL("../peers/bare-http-server.js", import.meta.url));
const CONNECTIONS = 32;
const STEPS = 12;
const LIST_RUNS = { smoke: 20, full: 1_000 };
const LIST_PATH = "/runs?limit=50";
/** Header lines that uWebSockets.js writes by itself, or with the body. */
const OF_THE_LIBRARY = /^(?:date|uwebsockets|content-length)$/i;

/** The answer as it is on the wire. Two headers differ in each answer: only the length of their value is compared. */
function shapeOf({ statusLine, headerLines, body }: WholeAnswer): string {
  const lines = headerLines.map(([name, value]) =>
    /^(?:x-trace-id|date)$/i.test(name) ? `${name}: ${value.length} characters` : `${name}: ${value}`,
  );
  return [statusLine, ...lines, "", body.toString("latin1")].join("\r\n");
}

/** Starts uWebSockets.js alone, and checks that it answers with the same bytes as the service. */
async function startBare(context: BenchmarkContext, path: string, answer: WholeAnswer): Promise<ServerProcess> {
  const [bodyFile, linesFile] = [join(context.directory, "body.json"), join(context.directory, "lines.json")];
  writeFileSync(bodyFile, answer.body);
  writeFileSync(linesFile, JSON.stringify(answer.headerLines.filter(([name]) => !OF_THE_LIBRARY.test(name))));
  const server = await startServer(context, "the bare server", [BARE_SERVER, bodyFile, linesFile]);
  const [own, bare] = [shapeOf(answer), shapeOf(await getAnswer(server.url + path))];
  if (own !== bare) {
    throw new Error(`the servers answer with different bytes:\n${own.slice(0, 800)}\n\n${bare.slice(0, 800)}`);
  }
  return server;
}

/** @param fill fills the service; gives the path that is asked for */
async function open(
  context: BenchmarkContext,
  fill: (service: ServiceProcess) => Promise<string>,
): Promise<OpenBenchmark> {
  const service = await startService(context);
  const path = await fill(service);
  const answer = await getAnswer(service.url + path);
  const measure = (server: ServerProcess) => () =>
    measureHttpLoad(server, path, { connections: CONNECTIONS, size: context.size });
  const notes = [`the service serves on ${service.front}; an answer has ${answer.body.length} bytes of body`];
  const found = findUws();
  if (!("uws" in found)) {
    const missing = [{ name: "bare-uws", why: fullReason(found) }];
    return { runners: { service: measure(service) }, missing, notes };
  }
  const bare = await startBare(context, path, answer);
  return { runners: { service: measure(service), "bare-uws": measure(bare) }, notes };
}

function hotRead(
  name: string,
  what: string,
  goal: number,
  fill: (service: ServiceProcess, context: BenchmarkContext) => Promise<string>,
): Benchmark {
  return {
    name,
    measures:
      `${what}, again and again, over ${CONNECTIONS} connections. ${HTTP_LOAD_METHOD} The peer answers any request out of memory with the very same bytes ` +
      "on the wire (checked before; the trace id is a fixed one): what the server library and the kernel cost.",
    metric: HTTP_LOAD,
    contestants: [
      { name: "service", description: "the service as shipped, default settings" },
      { name: "bare-uws", description: "uWebSockets.js alone: one writeHeader for all header lines, res.end" },
    ],
    peer: "bare-uws",
    goals: [atLeast("service", goal, "against bare uWebSockets.js sending the same bytes", "bare-uws")],
    rounds: { warmup: 2, measured: 15 },
    timeoutSeconds: 600,
    open: (context) => open(context, (service) => fill(service, context)),
  };
}

export const hotReads: readonly Benchmark[] = [
  hotRead(
    "run-detail-hot",
    `GET /runs/{id} of one finished run (${STEPS} steps, event log, checks, metadata)`,
    0.85,
    async (service, context) =>
      `/runs/${(await fillService(service, context.seed, { steps: STEPS, count: 1 })).ids[0]}`,
  ),
  hotRead(
    "list-page-hot",
    `GET ${LIST_PATH} at ${LIST_RUNS.full} runs, none of which changes, so that the service makes the page once (list-1m shows what making one costs)`,
    0.6,
    async (service, context) => {
      await fillService(service, context.seed, { steps: STEPS, count: LIST_RUNS[context.size] });
      return LIST_PATH;
    },
  ),
];
