import type { Socket } from "node:net";

/**
 * Ends a connection by RST, unless its end is under way already, as when the peer has closed. A socket that is reset while it shuts down is lost by Node 20
 * (TCPWrap::Reset takes libuv's EINVAL for done): its handle stays open, and the process spins in its own end for ever.
 */
export function resetConnection(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}
