import type { Socket } from "node:net";

type WriteDone = (error?: Error | null) => void;

/**
 * Lets a failed write end the connection only once all that came in before has been read. A receiver may answer before it has taken the
 * body, and close (RFC 9112, 9.6). The next write then fails, and Node would destroy the socket with the answer unread in it.
 *
 * A system that fails a write for the connection's sake ends reading too: behind what came, there is an end or an error.
 */
export function holdWriteErrors(socket: Socket): void {
  const held = (done: WriteDone): WriteDone => {
    return (error) => {
      if (error == null || socket.destroyed || socket.readableEnded) return done(error);
      // Destroyed for another reason meanwhile, the socket calls its writes back by itself.
      socket.once("end", () => done(error));
    };
  };
  const { _write: write, _writev: writeAll } = socket;
  socket._write = (chunk, encoding, done) => write.call(socket, chunk, encoding, held(done));
  if (writeAll !== undefined) socket._writev = (chunks, done) => writeAll.call(socket, chunks, held(done));
}
