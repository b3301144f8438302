import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";

export interface DemoReceiver {
  readonly url: string;
  close(): void;
}

const HEAD_END = "\r\n\r\n";
/** No head of the dispatcher's is as large. */
const MAXIMUM_HEAD_BYTES = 16 * 1024;

/**
 * A receiver of webhooks that takes every event, on a free port of the loopback: what `npm start` delivers to. It reads as much of HTTP as
 * the dispatcher sends: a head with a Content-Length, and the body.
 */
export async function startDemoReceiver(): Promise<DemoReceiver> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    // The dispatcher went away: there is nothing to answer any more.
    socket.on("error", () => socket.destroy());
    answerRequests(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/demo-receiver`,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

function answerRequests(socket: Socket): void {
  let head = "";
  let bodyBytesLeft = 0;
  socket.setEncoding("latin1");
  socket.on("data", (chunk: string) => {
    for (let rest = chunk; rest !== ""; ) {
      if (bodyBytesLeft === 0) {
        head += rest;
        const end = head.indexOf(HEAD_END);
        if (end < 0) {
          if (head.length > MAXIMUM_HEAD_BYTES) socket.destroy();
          return;
        }
        bodyBytesLeft = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
        rest = head.slice(end + HEAD_END.length);
        head = "";
      }
      const taken = Math.min(bodyBytesLeft, rest.length);
      bodyBytesLeft -= taken;
      rest = rest.slice(taken);
      if (bodyBytesLeft === 0) socket.write("HTTP/1.1 204 No Content\r\n\r\n");
    }
  });
}
