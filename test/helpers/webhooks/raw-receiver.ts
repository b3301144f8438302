import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import type { Test } from "tap";

/** A receiver that speaks what it likes; gives its address. */
export async function rawReceiver(t: Test, onConnection: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    onConnection(socket);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, "close");
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}
