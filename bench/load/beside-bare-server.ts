import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Benchmark, BenchmarkContext, Contestant, OpenBenchmark } from "../harness/benchmark.js";
import { getAnswer, loadEnd, measureHttpLoad, type WholeAnswer } from "./http-load.js";
import { startServer } from "./server-process.js";
import { type ServiceProcess, startService } from "./service-process.js";

const BARE_SERVER = fileURLToPath(new URL("../peers/bare-http-server.js", import.meta.url));
const BARE_CONNECTIONS = 32;
const SECONDS = 3;

/** Whom goals name. */
export const BESIDE_BARE = { service: "service", sameBytes: "bare-uws-same-bytes", bodyOnly: "bare-uws" } as const;

export const BESIDE_BARE_CONTESTANTS: readonly Contestant[] = [
  { name: BESIDE_BARE.service, description: "the service as shipped, default settings" },
  {
    name: BESIDE_BARE.sameBytes,
    description:
      "uWebSockets.js alone, the same bytes on the wire: one writeHeader for all header lines, a fixed trace id among them, res.end",
  },
  {
    name: BESIDE_BARE.bodyOnly,
    description: "uWebSockets.js alone, res.end with the same body and no header line of ours",
  },
];

/** How these benchmarks ask, for `measures`. */
export const BESIDE_BARE_LOAD =
  `again and again, over ${BARE_CONNECTIONS} connections that each keep one request in flight (closed loop), by one thread of the load ` +
  "generator. Clock of the load generator: from sending a request to its whole answer. All with default settings, each in its own process.";

/** How long they take. */
export const BESIDE_BARE_ROUNDS: Benchmark["rounds"] = {
  smoke: { warmup: 0, measured: 1 },
  full: { warmup: 2, measured: 15 },
};

/** What they compare, for `measures`. */
export const BESIDE_BARE_METHOD =
  "Two peers answer any request out of memory: what the server library and the kernel cost. One sends the very same bytes on the wire " +
  "(status line, header lines in their order, by one call as the service writes them, body; checked before, with a trace id of its own of the " +
  "same length): goals that speak of a bare server sending the same bytes are judged against it. The other sends the body alone, without " +
  "Content-Type, ETag, X-Trace-ID and Vary: until 2026 the only one, kept so that what the header lines cost can be seen, and reports of " +
  "before compared.";

/** As it stands on the wire, but for what differs with the time and the request: of these lines' values the length alone. */
function shapeOf({ statusLine, headerLines, body }: WholeAnswer): string {
  const lines = headerLines.map(([name, value]) =>
    /^(?:x-trace-id|date)$/i.test(name) ? `${name}: ${value.length} characters` : `${name}: ${value}`,
  );
  return [statusLine, ...lines, "", body.toString("latin1")].join("\r\n");
}

/**
 * The service and uWebSockets.js alone, each in its own process, all asked for the same path again and again: one peer answers with equal
 * bytes, one with an equal body.
 *
 * @param fill fills the service; gives the path
 */
export async function openBesideBareServer(
  context: BenchmarkContext,
  fill: (service: ServiceProcess) => Promise<string>,
): Promise<OpenBenchmark> {
  const service = await startService(context);
  const closers = [() => service.stop()];
  const close = async (): Promise<void> => {
    for (const closer of closers) await closer();
  };
  try {
    const path = await fill(service);
    const answer = await getAnswer(service.url + path);
    const file = join(context.directory, "body.json");
    writeFileSync(file, answer.body);
    const startBare = async (...options: string[]) => {
      const bare = await startServer("the bare server", [BARE_SERVER, file, ...options], context.profileDirectory);
      closers.push(() => bare.stop());
      return bare;
    };
    const bodyOnly = await startBare();
    const bodyOnlyAnswer = await getAnswer(bodyOnly.url + path);
    if (!answer.body.equals(bodyOnlyAnswer.body)) throw new Error("the servers answer with different bodies");
    // Those that the library writes by itself are in every answer.
    const own = new Set(bodyOnlyAnswer.headerLines.map(([name]) => name));
    const lines = answer.headerLines.filter(([name]) => !own.has(name));
    const linesFile = join(context.directory, "lines.json");
    writeFileSync(linesFile, JSON.stringify(lines));
    const sameBytes = await startBare("--lines", linesFile);
    const [shape, sameShape] = [shapeOf(answer), shapeOf(await getAnswer(sameBytes.url + path))];
    if (shape !== sameShape) {
      throw new Error(
        `the two servers answer with different bytes:\n${shape.slice(0, 800)}\n\n${sameShape.slice(0, 800)}`,
      );
    }
    const measure = (url: string, pid: number) => () =>
      measureHttpLoad(context.httpClient, pid, {
        url,
        paths: [path],
        connections: BARE_CONNECTIONS,
        until: loadEnd(context.size, SECONDS),
        directory: context.directory,
      });
    return {
      runners: {
        [BESIDE_BARE.service]: measure(service.url, service.pid),
        [BESIDE_BARE.sameBytes]: measure(sameBytes.url, sameBytes.pid),
        [BESIDE_BARE.bodyOnly]: measure(bodyOnly.url, bodyOnly.pid),
      },
      notes: [
        `load by ${context.httpClient}, ${BARE_CONNECTIONS} connections; the body is ${answer.body.length} bytes, equal on all; ` +
          `header lines that ${BESIDE_BARE.bodyOnly} has not: ${lines.map(([name]) => name).join(", ")}`,
      ],
      close,
    };
  } catch (error) {
    await close().catch(() => {});
    throw error;
  }
}
