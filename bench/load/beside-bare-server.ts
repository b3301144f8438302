import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { BenchmarkContext, OpenBenchmark } from "../harness/benchmark.js";
import { getBody, measureHttpLoad } from "./http-load.js";
import { startServer } from "./server-process.js";
import { type ServiceProcess, startService } from "./service-process.js";

const BARE_SERVER = fileURLToPath(new URL("../peers/bare-http-server.js", import.meta.url));
/** Of the load, for what a benchmark says of itself. */
export const BARE_CONNECTIONS = 32;
const SECONDS = { smoke: 1, full: 3 };

/**
 * The service and uWebSockets.js alone, each in its own process, both asked for the same path again and again: they answer with equal bytes.
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
    const body = await getBody(service.url + path);
    const file = join(context.directory, "body.json");
    writeFileSync(file, body);
    const bare = await startServer("the bare server", [BARE_SERVER, file], context.profileDirectory);
    closers.push(() => bare.stop());
    if (!body.equals(await getBody(bare.url + path))) throw new Error("the two servers answer with different bytes");
    const measure = (url: string, pid: number) => () =>
      measureHttpLoad(context.httpClient, pid, {
        url,
        paths: [path],
        connections: BARE_CONNECTIONS,
        seconds: SECONDS[context.size],
        directory: context.directory,
      });
    return {
      runners: { service: measure(service.url, service.pid), "bare-uws": measure(bare.url, bare.pid) },
      notes: [
        `load by ${context.httpClient}, ${BARE_CONNECTIONS} connections; the body is ${body.length} bytes, equal on both`,
      ],
      close,
    };
  } catch (error) {
    await close().catch(() => {});
    throw error;
  }
}
