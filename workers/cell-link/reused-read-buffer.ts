import { type OnReadOpts, Socket, type SocketConstructorOpts } from "node:net";

/** Of Node's, which its types do not tell of: what `net.createServer` gives the sockets that it makes. */
interface WithHandle {
  /** What the socket does with the system: `_handle` of a socket, and an option of its constructor. */
  _handle?: object | null;
}

/**
 * The connection as a socket whose chunks lie in `buffer`, each until the listeners of its "data" return. Without it Node makes a buffer of
 * 64 KiB for every read, none of which a collection of young objects takes: while captures came in V8 collected everything that the recorder
 * holds each 64 MB, some 10 ms of two cores a time. Clients may say so themselves (`onread` of net.connect); for a connection that a server has
 * accepted only the constructor takes it, with the handle of the socket that the server made.
 *
 * @param accepted of a server with `pauseOnConnect`: nothing of it is read yet. Not to be used on, but by the server, which waits for its end.
 * @returns the same socket where Node has come to keep its handle elsewhere
 */
export function readInto(buffer: Uint8Array, accepted: Socket): Socket {
  const { _handle: handle } = accepted as WithHandle;
  if (typeof handle !== "object" || handle === null) {
    accepted.resume();
    return accepted;
  }
  (accepted as WithHandle)._handle = null;
  const options: SocketConstructorOpts & { handle: object; onread: OnReadOpts } = {
    handle,
    allowHalfOpen: accepted.allowHalfOpen,
    onread: {
      buffer,
      callback(lengthBytes) {
        socket.emit("data", Buffer.from(buffer.buffer, buffer.byteOffset, lengthBytes));
        // Whether it goes on is said by pause and resume.
        return true;
      },
    },
  };
  const socket = new Socket(options);
  socket.on("close", () => accepted.destroy());
  return socket;
}
