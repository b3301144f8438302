import { stat } from "node:fs/promises";
import t from "tap";
import { hasNoCompiler, preloadedLibrary } from "../../../helpers/preload/preloaded-library.js";
import { startTestDispatcher } from "../../../helpers/webhooks/dispatcher-harness.js";
import { receiverFor } from "../../../helpers/webhooks/receiver.js";

const DEAD = 40;
const DELIVERIES = 50;

t.test(
  "names that never resolve hold up no other name, no address, no file and no stop",
  { skip: hasNoCompiler },
  async (t) => {
    // For the process that looks names up. The library does not hold look-ups of this process, which already runs.
    process.env.LD_PRELOAD = preloadedLibrary(t, "stuck-names");
    t.teardown(() => {
      delete process.env.LD_PRELOAD;
    });
    const receiver = await receiverFor(t);
    const { handle, deliver, end, hasEnded } = startTestDispatcher(t);
    const dead = Array.from({ length: DEAD }, (_, nth) =>
      deliver(`http://dead${nth}.test:${receiver.port}/`, { timeoutMs: 9_900 }),
    );
    const named = Array.from({ length: DELIVERIES }, (_, nth) => deliver(`http://fine.test:${receiver.port}/${nth}`));
    const addressed = Array.from({ length: DELIVERIES }, (_, nth) => deliver(`${receiver.url}/${nth}`));
    for (const id of [...named, ...addressed]) t.match(await end(id), { error: null });
    t.equal(receiver.requests.length, 2 * DELIVERIES);
    t.equal(receiver.requests[0]?.headers["content-length"], receiver.requests.at(-1)?.headers["content-length"]);
    // Another name can be looked up, and threads for files are free.
    t.match(await end(deliver(`http://fine-too.test:${receiver.port}/`)), { error: null });
    await stat(".");
    t.notOk(dead.some(hasEnded), `all ${DEAD} dead names are still looked up`);
    t.match(await end(deliver(`http://dead0.test:${receiver.port}/`, { timeoutMs: 200 })), {
      error: "no answer within 0.2 s",
    });
    await handle.stop(0);
    t.notOk(dead.some(hasEnded), "cut short");
  },
);

t.test("names resolve as the system has them", async (t) => {
  const receiver = await receiverFor(t);
  const { deliver, end } = startTestDispatcher(t);
  // This name comes from the hosts file.
  t.match(await end(deliver(`http://localhost:${receiver.port}/`)), { error: null });
  t.match(await end(deliver("http://no-such-host.invalid/")), {
    error: /^the host name does not resolve( now)? \((ENOTFOUND|EAI_AGAIN)\)$/,
  });
});
