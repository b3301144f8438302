import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { BenchmarkContext } from "../../harness/benchmark.js";

/** How long each chunk that a cell sends is held back, at most 64 KiB at a time. */
const DELAY_MS = 200;

/** A link to a NATS server that is as slow as this. @returns its address */
export async function slowLink(context: Pick<BenchmarkContext, "onClose">, url: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    near.on("error", () => far.destroy());
    far.on("error", () => near.destroy());
    far.pipe(near);
    const forward = async (): Promise<void> => {
      for await (const chunk of near as AsyncIterable<Buffer>) {
        await sleep(DELAY_MS);
        far.write(chunk);
      }
      far.end();
    };
    forward().catch(() => far.destroy());
    context.onClose(() => near.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  context.onClose(() => server.close());
  return `nats://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
