import { setImmediate as eventLoopTurn } from "node:timers/promises";
import t from "tap";
import { type Connection, followRuns } from "../../../http/client/follow-runs.js";
import { ManualTimers } from "../../helpers/recorder/manual-timers.js";

const READY = Buffer.from('id: 2026-01-31T12:00:00.000000Z\nevent: ready\ndata: {"service_version":"x"}\n\n');

t.test("a connection over which nothing comes for 45 s counts as broken", async (t) => {
  const timers = new ManualTimers();
  const { setTimeout, clearTimeout } = globalThis;
  t.teardown(() => Object.assign(globalThis, { setTimeout, clearTimeout }));
  Object.assign(globalThis, { setTimeout: timers.set.bind(timers), clearTimeout: timers.clear.bind(timers) });
  let connections = 0;
  const fetch: Connection["fetch"] = async (_, { signal }) => {
    connections++;
    const start = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
      controller.enqueue(READY);
      signal?.addEventListener("abort", () => controller.error(signal.reason));
    };
    return new Response(new ReadableStream({ start }));
  };
  let breaks = 0;
  const changes = followRuns({ baseUrl: "", headers: {}, fetch }, { onBreak: () => void breaks++ });
  t.match((await changes.next()).value, { type: "ready" });
  const next = changes.next();
  timers.advance(44_999);
  await eventLoopTurn();
  t.equal(breaks, 0);
  timers.advance(1);
  while (breaks === 0) await eventLoopTurn();
  timers.advance(2_000);
  t.match((await next).value, { type: "ready" });
  t.equal(connections, 2);
  await changes.return();
  t.equal(timers.armed, 0);
});
