import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { availableParallelism } from "node:os";
import t from "tap";
import { setThreadPolicy } from "../../workers/thread-priority.js";
import { ServiceProcess } from "../helpers/service-process.js";

const SCHED_OTHER = 0;
const SCHED_RR = 2;

/** proc(5), /proc/pid/stat, field 41: `policy`; the command's name before it may hold anything. */
function policyOf(processId: number, threadId = processId): number {
  const stat = readFileSync(`/proc/${processId}/task/${threadId}/stat`, "latin1");
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[38]);
}

function threadsOf(processId: number): number[] {
  return readdirSync(`/proc/${processId}/task`).map(Number);
}

/** Whether this account may have real-time threads here. */
async function mayGoFirst(): Promise<boolean> {
  const child = spawn("sleep", ["60"], { stdio: "ignore" });
  await once(child, "spawn");
  try {
    await setThreadPolicy(child.pid as number, "real-time");
    return policyOf(child.pid as number) === SCHED_RR;
  } catch {
    return false;
  } finally {
    child.kill();
  }
}

const skip =
  process.platform !== "linux"
    ? "only Linux has a policy for each thread"
    : availableParallelism() < 2 && "on one core nobody goes first";
const isAllowed = skip === false && (await mayGoFirst());
const skipUnlessAllowed = skip || (!isAllowed && "real-time threads are not allowed here");

t.test("the front's thread goes first where the account may have that, and no other thread", { skip }, async (t) => {
  t.comment(isAllowed ? "real-time threads are allowed" : "real-time threads are not allowed here");
  const service = await ServiceProcess.start({ args: ["serve", "--log-level", "info"] });
  t.teardown(() => service.dispose());
  t.equal(policyOf(service.pid), isAllowed ? SCHED_RR : SCHED_OTHER);
  const others = threadsOf(service.pid).filter((id) => id !== service.pid);
  t.ok(others.length > 6);
  for (const id of others) t.equal(policyOf(service.pid, id), SCHED_OTHER);
  const { stderr } = await service.end();
  t.match(stderr, isAllowed ? /has real-time priority/ : /"reason":".*no real-time priority/);
});

t.test("without chrt the service serves all the same, and says so", { skip }, async (t) => {
  const service = await ServiceProcess.start({
    args: ["serve", "--log-level", "info"],
    environment: { PATH: "/nowhere" },
  });
  t.teardown(() => service.dispose());
  t.equal(policyOf(service.pid), SCHED_OTHER);
  t.equal((await fetch(`http://127.0.0.1:${service.port}/livez`)).status, 200);
  const { stderr } = await service.end();
  t.match(stderr, /"reason":"spawn chrt ENOENT".*no real-time priority/);
});

t.test("a front that takes a core does not go first", { skip: skipUnlessAllowed }, async (t) => {
  const service = await ServiceProcess.start();
  t.teardown(() => service.dispose());
  t.equal(policyOf(service.pid), SCHED_RR);
  // Requests one behind the other on a connection cost the test next to nothing.
  const requests = Buffer.from("GET /version HTTP/1.1\r\nHost: x\r\n\r\n".repeat(100));
  const sockets = Array.from({ length: 8 }, () => connect(service.port, "127.0.0.1"));
  for (const socket of sockets) {
    socket.on("error", () => {});
    socket.on("connect", () => socket.write(requests));
    socket.on("data", () => socket.writableLength < requests.length && socket.write(requests));
  }
  while (policyOf(service.pid) === SCHED_RR) await new Promise((resolve) => setTimeout(resolve, 10));
  t.equal(policyOf(service.pid), SCHED_OTHER);
  for (const socket of sockets) socket.destroy();
});

t.test("a thread's policy: set and taken back; a thread that is not there", { skip: skipUnlessAllowed }, async (t) => {
  const child = spawn("sleep", ["60"], { stdio: "ignore" });
  t.teardown(() => child.kill());
  await once(child, "spawn");
  const id = child.pid as number;
  await setThreadPolicy(id, "real-time");
  t.equal(policyOf(id), SCHED_RR);
  await setThreadPolicy(id, "normal");
  t.equal(policyOf(id), SCHED_OTHER);
  child.kill();
  await once(child, "exit");
  await t.rejects(setThreadPolicy(id, "real-time"), /No such process/);
});

t.test("what a real-time thread starts is not real-time", { skip: skipUnlessAllowed }, async (t) => {
  const child = spawn("sh", ["-c", "read line; sleep 60 & echo $!; wait"], { stdio: ["pipe", "pipe", "ignore"] });
  t.teardown(() => child.kill());
  await once(child, "spawn");
  await setThreadPolicy(child.pid as number, "real-time");
  child.stdin.write("go\n");
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  const started = Number(line.toString());
  t.teardown(() => process.kill(started));
  t.equal(policyOf(child.pid as number), SCHED_RR);
  t.equal(policyOf(started), SCHED_OTHER);
});
