import { setImmediate as eventLoopTurn } from "node:timers/promises";
import t from "tap";
import { refusedSocket } from "../../../http/live/run-socket.js";
import type { MessagePart } from "../../../http/replies/reply.js";
import { LiveSockets } from "../../../http/server/live/live-sockets.js";

t.test("a client stays while it takes a part; then it must answer pings, whatever it is sent", async (t) => {
  let give: (part: MessagePart) => void = () => {};
  let take = (): void => {};
  let pings = 0;
  let drops = 0;
  const live = {
    ...refusedSocket("x"),
    cut: new AbortController().signal,
    next: () => new Promise<MessagePart>((resolve) => (give = resolve)),
  };
  const send = () => new Promise<void>((resolve) => (take = resolve));
  const native = { send, ping: () => void pings++, close() {}, drop: () => void drops++ };
  const onFailure = () => {
    throw new Error("no read fails");
  };
  const socket = new LiveSockets().open(native, live, onFailure);
  t.teardown(() => socket.gone());
  const part = async (): Promise<void> => {
    give({ bytes: new Uint8Array(1), isLast: false });
    await eventLoopTurn();
  };
  for (let ping = 0; ping < 3; ping++) {
    await part();
    socket.ping();
    t.strictSame([pings, drops], [0, 0], "it takes parts slowly");
    take();
    await eventLoopTurn();
  }
  socket.ping();
  t.strictSame([pings, drops], [1, 0]);
  await part();
  take();
  await eventLoopTurn();
  socket.ping();
  t.strictSame([pings, drops], [1, 1], "a part that went out is no answer");
  socket.pong();
  await part();
  socket.ping();
  t.equal(drops, 1);
  socket.ping();
  t.strictSame([pings, drops], [1, 2], "it takes nothing of a part from one ping to the next");
});
