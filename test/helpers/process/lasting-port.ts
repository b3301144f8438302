import { once } from "node:events";
import { createServer } from "node:net";

/** A free port for a service that starts anew on it. No client's connection gets it meanwhile: Linux gives those from 32768 on. */
export async function lastingPort(): Promise<number> {
  for (let port = 20_000 + (process.pid % 12_000); ; port++) {
    const server = createServer().listen(port, "127.0.0.1");
    const isFree = await once(server, "listening").then(Boolean, () => false);
    server.close();
    if (isFree) return port;
  }
}
