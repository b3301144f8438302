import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import type { BenchmarkContext } from "../../harness/benchmark.js";
import { type ServerProcess, startServer } from "./server-process.js";

const PROGRAM = fileURLToPath(new URL("../../../http/main.js", import.meta.url));

export interface ServiceProcess extends ServerProcess {
  /** Of the cell link. */
  socketPath: string;
  /** A producer on the service's cell link. The benchmark closes it before it stops the service. */
  connect(producer: string): Promise<ProducerClient>;
  /** Throws what the service refused since the last call: a benchmark's messages are all meant to be accepted. */
  assertNothingRefused(): void;
}

/** The service as it is shipped, in a process of its own, on a fresh data directory with default settings. */
export function startService(context: BenchmarkContext): Promise<ServiceProcess> {
  return serveStore(context, join(context.directory, "store"));
}

/** As `startService`, on a data directory that may hold a store; `options` are further ones of `serve`, `environment` further variables. */
export async function serveStore(
  context: BenchmarkContext,
  dataDirectory: string,
  options: readonly string[] = [],
  environment: Readonly<Record<string, string>> = {},
): Promise<ServiceProcess> {
  const socketPath = join(context.socketDirectory, "cell.sock");
  const refusals: string[] = [];
  const args = [PROGRAM, "serve", "--data", dataDirectory, "--port", "0", "--cell-socket", socketPath, ...options];
  const server = await startServer("the service", args, context.profileDirectory, environment);
  return {
    url: server.url,
    pid: server.pid,
    front: server.front,
    socketPath,
    async connect(producer) {
      const client = new ProducerClient({
        address: { path: socketPath },
        producer,
        onRefused: ({ code, message }) => refusals.push(`${code}: ${message}`),
      });
      await client.welcomed();
      return client;
    },
    assertNothingRefused() {
      const first = refusals[0];
      if (first !== undefined) throw new Error(`the service refused ${refusals.length} messages, the first: ${first}`);
    },
    stop: () => server.stop(),
  };
}
