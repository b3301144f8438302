import { setImmediate as eventLoopTurn } from "node:timers/promises";
import t from "tap";
import { refusedSocket } from "../../../http/live/run-socket.js";
import type { MessagePart } from "../../../http/replies/reply.js";
import { LiveSockets } from "../../../http/server/live/live-sockets.js";

t.test("a client that takes parts stays, however late it gets to a ping; one that takes none must go", async (t) => {
  let give: (part: MessagePart) => void = () => {};
  let drops = 0;
  const live = {
    ...refusedSocket("x"),
    cut: new AbortController().signal,
    next: () => new Promise<MessagePart>((resolve) => (give = resolve)),
  };
  const native = { send: async () => {}, ping() {}, close() {}, drop: () => void drops++ };
  const onFailure = () => {
    throw new Error("no read fails");
  };
  const socket = new LiveSockets().open(native, live, onFailure);
  t.teardown(() => socket.gone());
  for (let ping = 0; ping < 3; ping++) {
    socket.ping();
    t.equal(drops, 0);
    give({ bytes: new Uint8Array(1), isLast: false });
    await eventLoopTurn();
  }
  socket.ping();
  t.equal(drops, 0, "the last part was its answer");
  socket.ping();
  t.equal(drops, 1);
});
