import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Test } from "tap";

export interface ReceivedRequest {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

export interface Receiver {
  /** `http://127.0.0.1:port` */
  readonly url: string;
  readonly port: number;
  /** In the order their bodies were whole. */
  readonly requests: ReceivedRequest[];
  /** Resolves when at least so many requests have come. */
  received(count: number): Promise<void>;
  close(): Promise<void>;
}

/** Far longer than an attempt takes on busy cores. */
const RECEIVED_MS = 200_000;

/** A receiver of webhooks in this process: keeps what comes, and answers by `answer` (default 204). */
export async function startReceiver(
  answer: (request: ReceivedRequest, response: ServerResponse, socket: Socket) => void = (_, response) => {
    response.writeHead(204).end();
  },
  port = 0,
): Promise<Receiver> {
  const requests: ReceivedRequest[] = [];
  let waiting: { count: number; resolve: () => void }[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("error", () => {});
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      const received = { method, path: url, headers, body: Buffer.concat(chunks) };
      requests.push(received);
      answer(received, response, request.socket);
      waiting = waiting.filter(({ count, resolve }) => {
        if (requests.length < count) return true;
        resolve();
        return false;
      });
    });
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const address = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${address.port}`,
    port: address.port,
    requests,
    received(count) {
      if (requests.length >= count) return Promise.resolve();
      return new Promise((resolve, reject) => {
        const late = setTimeout(() => reject(new Error(`${requests.length} of ${count} requests came`)), RECEIVED_MS);
        waiting.push({ count, resolve: () => resolve(clearTimeout(late)) });
      });
    },
    async close() {
      server.close();
      server.closeAllConnections();
      if (server.listening) await once(server, "close");
    },
  };
}

/** As `startReceiver`; the end of the test closes it. */
export async function receiverFor(t: Test, ...args: Parameters<typeof startReceiver>): Promise<Receiver> {
  const receiver = await startReceiver(...args);
  t.teardown(() => receiver.close());
  return receiver;
}
