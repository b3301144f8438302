import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import type { BenchmarkContext } from "../../harness/benchmark.js";
import { type ServerProcess, startServer } from "./server-process.js";

const PROGRAM = fileURLToPath(new URL("../../../http/main.js", import.meta.url));

export interface ServiceProcess extends ServerProcess {
  /** Path of the socket of the cell link. */
  socketPath: string;
  /** A producer on the service's cell link; it is closed before the service is stopped. */
  connect(): Promise<ProducerClient>;
  /** Throws what the service refused: a benchmark's messages are all meant to be accepted. */
  assertNothingRefused(): void;
}

/**
 * The service as it is shipped, in a process of its own, with default settings and these further ones. Without a directory it starts with fresh
 * data. A second service of a benchmark needs another name.
 */
export async function startService(
  context: BenchmarkContext,
  dataDirectory = join(context.directory, "store"),
  { name = "cell", settings = [] }: { name?: string; settings?: readonly string[] } = {},
): Promise<ServiceProcess> {
  const socketPath = join(context.socketDirectory, `${name}.sock`);
  const refusals: string[] = [];
  const args = [PROGRAM, "serve", "--data", dataDirectory, "--port", "0", "--cell-socket", socketPath];
  args.push(...settings);
  const server = await startServer(context, "the service", args);
  const assertNothingRefused = (): void => {
    const first = refusals[0];
    if (first !== undefined) throw new Error(`the service refused ${refusals.length} messages, the first: ${first}`);
  };
  context.onClose(assertNothingRefused);
  return {
    ...server,
    socketPath,
    async connect() {
      const client = new ProducerClient({
        address: { path: socketPath },
        producer: "bench",
        onRefused: ({ code, message }) => refusals.push(`${code}: ${message}`),
      });
      context.onClose(() => client.close());
      await client.welcomed();
      return client;
    },
    assertNothingRefused,
  };
}
