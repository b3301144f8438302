import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { getPriority } from "node:os";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import t from "tap";
import { ServiceProcess } from "../helpers/service-process.js";

const skip = process.platform === "linux" ? false : "only Linux has a priority for each thread";
const V8_PROGRAM = fileURLToPath(new URL("../helpers/v8-thread-priority.js", import.meta.url));

t.test("a thread lowers its own priority, and no other's", { skip }, async (t) => {
  const before = getPriority();
  const nice = Math.min(19, before + 7);
  const worker = new Worker(new URL("../helpers/low-priority-thread.js", import.meta.url), { workerData: { nice } });
  const [told] = await once(worker, "message");
  t.same(told, { isLowered: true, own: nice, main: before });
  await worker.terminate();
});

t.test("V8's threads are lowered: those that collect garbage, and none of libuv's", { skip }, (t) => {
  // Of these two alone: another pool of V8's, or none of its threads, may be set for whoever runs the tests.
  const env = { ...process.env, NODE_OPTIONS: "" };
  const told = JSON.parse(execFileSync(process.execPath, [V8_PROGRAM], { encoding: "utf8", env }));
  t.equal(told.lowered, 4);
  t.ok(told.ofLibuv.othersMs > 4 * told.ofLibuv.loweredMs, `libuv's work: ${JSON.stringify(told.ofLibuv)} `);
  t.ok(told.ofV8.loweredMs > 4 * told.ofV8.othersMs, `V8's work: ${JSON.stringify(told.ofV8)}`);
  t.end();
});

t.test("whoever says how many threads V8 has, has settled what they are to have", { skip }, (t) => {
  const args = ["--v8-pool-size=2", V8_PROGRAM];
  const env = { ...process.env, NODE_OPTIONS: "" };
  t.match(JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8", env })), { lowered: 0 });
  t.end();
});

/** Of the main thread, of the platform's timer thread and of V8's. */
function firstNices(processId: number): number[] {
  const ids = readdirSync(`/proc/${processId}/task`).map(Number);
  return ids
    .sort((a, b) => a - b)
    .slice(0, 6)
    .map((id) => getPriority(id));
}

t.test(
  "a service whose main thread has its turn among others lowers V8's threads and leaves that one",
  { skip },
  async (t) => {
    // Without chrt it has no real-time priority, whatever the account may.
    const service = await ServiceProcess.start({ environment: { PATH: "/nowhere" } });
    t.teardown(() => service.dispose());
    const own = getPriority();
    t.same(firstNices(service.pid), [own, own, ...Array(4).fill(Math.max(own, 10))]);
  },
);

t.test(
  "beside a main thread that goes first V8's threads, which it waits for, go before all that do not",
  { skip },
  async (t) => {
    const service = await ServiceProcess.start({ args: ["serve", "--log-level", "info"] });
    t.teardown(() => service.dispose());
    const own = getPriority();
    const nices = firstNices(service.pid);
    const { stderr } = await service.end();
    const goesFirst = /has real-time priority/.test(stderr);
    const mayRaise =
      goesFirst && execFileSync("nice", ["-n", "-10", "nice"], { encoding: "utf8" }).trim() === String(own - 10);
    t.comment(`real-time priority: ${goesFirst}; a priority may be raised: ${mayRaise}`);
    const raised = mayRaise ? Math.min(own, -10) : own;
    t.same(nices, [own, own, ...Array(4).fill(goesFirst ? raised : Math.max(own, 10))]);
  },
);
