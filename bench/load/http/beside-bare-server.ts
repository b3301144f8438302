import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findUws, fullReason } from "../../../http/server/uws-binary.js";
import type {
  Benchmark,
  BenchmarkContext,
  Contestant,
  MissingContestant,
  OpenBenchmark,
} from "../../harness/benchmark.js";
import { getAnswer, loadEnd, measureHttpLoad, type WholeAnswer } from "./http-load.js";
import { type ServerProcess, startServer } from "./server-process.js";
import { type ServiceProcess, serveStore } from "./service-process.js";

const BARE_SERVER = fileURLToPath(new URL("../../peers/bare-http-server.js", import.meta.url));
const BARE_CONNECTIONS = 32;
const SECONDS = 3;

/** The build of 2023, by the package that carries it. */
const OLD_PACKAGE = "@trufflesuite/uws-js-unofficial";

/** Whom goals name. */
export const BESIDE_BARE = { service: "service", sameBytes: "bare-uws-same-bytes", bodyOnly: "bare-uws" } as const;
export const ON_OLD_BUILD = { service: "service-build-2023", sameBytes: "bare-build-2023" } as const;

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

export const ON_OLD_BUILD_CONTESTANTS: readonly Contestant[] = [
  {
    name: ON_OLD_BUILD.service,
    description: "the service on the uWebSockets.js build of 2023, where it takes a newer one by itself",
  },
  { name: ON_OLD_BUILD.sameBytes, description: "that build alone, the same bytes on the wire" },
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

/** Which build of uWebSockets.js a process takes; undefined: as the service does by itself. */
type Build = string | undefined;

function environmentOf(build: Build): Record<string, string> {
  return build === undefined ? {} : { UWS_PACKAGE: build };
}

/** All servers of one benchmark, each in its own process, and what is measured of them. */
class HotPath {
  readonly runners: OpenBenchmark["runners"] = {};
  readonly notes: string[];
  readonly #context: BenchmarkContext;
  readonly #path: string;
  readonly #servers: ServerProcess[] = [];
  /** Of the services, without their address, which stands in links. */
  #body: string | undefined;

  constructor(context: BenchmarkContext, path: string) {
    this.#context = context;
    this.#path = path;
    this.notes = [`load by ${context.httpClient}, ${BARE_CONNECTIONS} connections`];
  }

  /** Starts the service on a store; gives its answer. */
  async serve(name: string, dataDirectory: string, build?: Build): Promise<WholeAnswer> {
    const socketDirectory = join(this.#context.socketDirectory, name);
    mkdirSync(socketDirectory);
    const context = { ...this.#context, socketDirectory };
    const service = await serveStore(context, dataDirectory, [], environmentOf(build));
    this.#servers.push(service);
    this.#measure(name, service);
    this.notes.push(`${name} serves on ${service.front}`);
    const answer = await getAnswer(service.url + this.#path);
    const body = answer.body.toString().replaceAll(service.url, "");
    this.#body ??= body;
    if (body !== this.#body) throw new Error("the services answer with different bodies");
    return answer;
  }

  /**
   * Starts uWebSockets.js alone, twice: with the bytes of the service's answer, and with its body alone; checks both.
   * @param names of the contestants; without one for the body alone, it is not measured
   */
  async startBare(answer: WholeAnswer, names: { sameBytes: string; bodyOnly?: string }, build?: Build): Promise<void> {
    const { directory, profileDirectory } = this.#context;
    const file = join(directory, "body.json");
    writeFileSync(file, answer.body);
    const start = async (...options: string[]): Promise<ServerProcess> => {
      const args = [BARE_SERVER, file, ...options];
      const server = await startServer("the bare server", args, profileDirectory, environmentOf(build));
      this.#servers.push(server);
      return server;
    };
    const bodyOnly = await start();
    const bodyOnlyAnswer = await getAnswer(bodyOnly.url + this.#path);
    if (!answer.body.equals(bodyOnlyAnswer.body)) throw new Error("the servers answer with different bodies");
    // Those that the library writes by itself are in every answer.
    const own = new Set(bodyOnlyAnswer.headerLines.map(([name]) => name));
    const lines = answer.headerLines.filter(([name]) => !own.has(name));
    const linesFile = join(directory, "lines.json");
    writeFileSync(linesFile, JSON.stringify(lines));
    const sameBytes = await start("--lines", linesFile);
    const [shape, sameShape] = [shapeOf(answer), shapeOf(await getAnswer(sameBytes.url + this.#path))];
    if (shape !== sameShape) {
      throw new Error(
        `the two servers answer with different bytes:\n${shape.slice(0, 800)}\n\n${sameShape.slice(0, 800)}`,
      );
    }
    this.#measure(names.sameBytes, sameBytes);
    if (names.bodyOnly === undefined) return;
    this.#measure(names.bodyOnly, bodyOnly);
    this.notes.push(`header lines that ${names.bodyOnly} has not: ${lines.map(([name]) => name).join(", ")}`);
  }

  async close(): Promise<void> {
    for (const server of this.#servers) await server.stop();
  }

  #measure(name: string, { url, pid }: ServerProcess): void {
    const { httpClient, size, directory } = this.#context;
    this.runners[name] = () =>
      measureHttpLoad(httpClient, pid, {
        url,
        paths: [this.#path],
        connections: BARE_CONNECTIONS,
        until: loadEnd(size, SECONDS),
        directory,
      });
  }
}

/** Why nothing is measured on the build of 2023 beside the one that the service takes; undefined: it can be. */
function whyNoOldBuild(): string | undefined {
  const chosen = findUws();
  if (!("uws" in chosen)) return fullReason(chosen);
  if (chosen.packageName === OLD_PACKAGE) return "no newer build loads here: the service takes this one by itself";
  const old = findUws(OLD_PACKAGE);
  return "uws" in old ? undefined : fullReason(old);
}

/**
 * The service and uWebSockets.js alone, each in its own process, all asked for the same path again and again: one peer answers with equal
 * bytes, one with an equal body. Where no build of uWebSockets.js loads, the service is measured alone, on node:http.
 *
 * @param fill fills the service; gives the path
 * @param withOldBuild the service and a peer on the build of 2023 too, with the same store
 */
export async function openBesideBareServer(
  context: BenchmarkContext,
  fill: (service: ServiceProcess) => Promise<string>,
  withOldBuild = false,
): Promise<OpenBenchmark> {
  const store = join(context.directory, "store");
  const filling = await serveStore(context, store);
  const path = await fill(filling).finally(() => filling.stop());
  const hot = new HotPath(context, path);
  const missing: MissingContestant[] = [];
  const leaveOut = (names: Readonly<Record<string, string>>, why: string): void => {
    for (const name of Object.values(names)) missing.push({ name, why });
  };
  try {
    if (withOldBuild) {
      const why = whyNoOldBuild();
      if (why === undefined) {
        const copy = `${store}-2023`;
        cpSync(store, copy, { recursive: true });
        const answer = await hot.serve(ON_OLD_BUILD.service, copy, OLD_PACKAGE);
        await hot.startBare(answer, ON_OLD_BUILD, OLD_PACKAGE);
      } else {
        leaveOut(ON_OLD_BUILD, why);
      }
    }
    const answer = await hot.serve(BESIDE_BARE.service, store);
    const { sameBytes, bodyOnly } = BESIDE_BARE;
    const found = findUws();
    if ("uws" in found) await hot.startBare(answer, { sameBytes, bodyOnly });
    else leaveOut({ sameBytes, bodyOnly }, fullReason(found));
    hot.notes.push(`the body is ${answer.body.length} bytes, equal on all but for the service's address in links`);
    return { runners: hot.runners, missing, notes: hot.notes, close: () => hot.close() };
  } catch (error) {
    await hot.close().catch(() => {});
    throw error;
  }
}
