import { once } from "node:events";
import { getPriority } from "node:os";
import { Worker } from "node:worker_threads";
import t from "tap";

t.test(
  "a thread lowers its own priority, and no other's",
  { skip: process.platform === "linux" ? false : "only Linux has a priority for each thread" },
  async (t) => {
    const before = getPriority();
    const nice = Math.min(19, before + 7);
    const worker = new Worker(new URL("../helpers/low-priority-thread.js", import.meta.url), { workerData: { nice } });
    const [told] = await once(worker, "message");
    t.same(told, { isLowered: true, own: nice, main: before });
    await worker.terminate();
  },
);
