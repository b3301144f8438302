import { once } from "node:events";
import { readdirSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { getPriority } from "node:os";
import t from "tap";
import { startTestDispatcher } from "../../helpers/dispatcher-bench.js";

const skip = process.platform === "linux" ? false : "only Linux has a priority for each thread";

for (const isFrontFirst of [false, true]) {
  const what = isFrontFirst ? "has its turn beside a front that goes first" : "gives way to a front that does not";
  t.test(`the dispatcher ${what}`, { skip }, async (t) => {
    const receiver = createServer((_, response) => response.end()).listen(0, "127.0.0.1");
    await once(receiver, "listening");
    t.teardown(() => receiver.close());
    const before = new Set(readdirSync("/proc/self/task"));
    const { deliver, end } = startTestDispatcher(t, {}, undefined, isFrontFirst);
    // What it was told before has been done when it has made a delivery.
    const [report] = await end(deliver(`http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`));
    t.match(report, { next: { kind: "delivered" } });
    const own = getPriority();
    const others = readdirSync("/proc/self/task").filter((id) => !before.has(id));
    t.ok(others.length > 0);
    const lowered = others.map((id) => getPriority(Number(id))).filter((nice) => nice !== own);
    t.same(lowered, isFrontFirst || own >= 10 ? [] : [10]);
  });
}
