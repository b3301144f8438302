import type { Socket } from "node:net";

type WriteDone = (error?: Error | null) => void;

/**
 * Lets a failed write end the connection only when everything received before it was read. A receiver may answer before it has taken the
 * body, and close (RFC 9112, 9.6). The next write then fails, and Node would destroy the socket with the answer unread.
 *
 * This does not wait for ever: when the system fails a write because of the connection, reading ends too, with an end or an error.
 */
export function holdWriteErrors(socket: Socket): void {
  const held = (done: WriteDone): WriteDone => {
    return (error) => {
      if (error == null || socket.destroyed || socket.readableEnded) return done(error);
      // A socket that is destroyed for another reason meanwhile calls its writes back by itself.
      socket.once("end", () => done(error));
    };
  };
  const { _write: write, _writev: writeAll } = socket;
  socket._write = (chunk, encoding, done) => write.call(socket, chunk, encoding, held(done));
  if (writeAll !== undefined) socket._writev = (chunks, done) => writeAll.call(socket, chunks, held(done));
}
