import type { Server, Socket } from "node:net";
import { connectionBounds } from "../service/descriptor-room.js";
import type { HttpServerOptions } from "./server-options.js";

/** Closes connections above the limits at once: Node accepts every connection and cannot leave one in the system's queue. */
export function boundConnections(server: Server, { maxConnections, pipeline }: HttpServerOptions): void {
  if (maxConnections === undefined) return;
  const { total, ofOneAddress } = connectionBounds(maxConnections);
  const counts = new Map<string, number>();
  let open = 0;
  server.maxConnections = total;
  server.on("drop", (peer) => pipeline.connectionRefused(peer?.remoteAddress ?? "", open));
  server.on("connection", (socket: Socket) => {
    const address = socket.remoteAddress ?? "";
    const count = (counts.get(address) ?? 0) + 1;
    counts.set(address, count);
    open++;
    socket.once("close", () => {
      open--;
      const left = (counts.get(address) as number) - 1;
      if (left === 0) counts.delete(address);
      else counts.set(address, left);
    });
    if (count <= ofOneAddress) return;
    pipeline.connectionRefused(address, open);
    socket.destroy();
  });
}
