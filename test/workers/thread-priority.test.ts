import { readdirSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { getPriority } from "node:os";
import { fileURLToPath } from "node:url";
import t from "tap";
import { ArtefactPool } from "../../workers/artefacts/pool/artefact-pool.js";
import { ServiceProcess } from "../helpers/process/service-process.js";

const skip = process.platform === "linux" ? false : "only Linux has a priority for each thread";
const NICE = 10;
const TASK_TIMEOUT_MS = 60_000;

interface ThreadScheduling {
  nice: number;
  /** 0 is SCHED_OTHER. */
  policy: number;
}

/** The scheduling of each thread of a process, by id: fields 19 and 41 of proc(5)'s stat. */
function schedulingOf(processId: number): Map<string, ThreadScheduling> {
  return new Map(
    readdirSync(`/proc/${processId}/task`).map((id) => {
      const stat = readFileSync(`/proc/${processId}/task/${id}/stat`, "latin1");
      // The thread's name before them is in parentheses and may hold blanks.
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return [id, { nice: Number(fields[16]), policy: Number(fields[38]) }];
    }),
  );
}

t.test("a service that has started leaves all its threads the priority that it was given", { skip }, async (t) => {
  const service = await ServiceProcess.startFor(t);
  const threads = [...schedulingOf(service.pid).values()];
  t.ok(threads.length > 8, `${threads.length} threads: main, V8's, libuv's, recorder, dispatcher`);
  const own = getPriority();
  t.same(
    threads.filter(({ nice, policy }) => nice !== own || policy !== 0),
    [],
  );
});

t.test("a thread of the artefact pool lowers its own priority, and no other's", { skip }, async (t) => {
  // libuv starts its own threads at the first use, with the priority of who uses them: in a service, when the store is opened.
  await readFile(fileURLToPath(import.meta.url));
  const before = schedulingOf(process.pid);
  const pool = new ArtefactPool({
    threads: 1,
    queueLimit: 1,
    taskTimeoutMs: () => TASK_TIMEOUT_MS,
    report: (message) => t.fail(message),
  });
  t.teardown(() => pool.close());
  await pool.run("verify", { path: fileURLToPath(import.meta.url), extents: [] }, { priority: "client" });
  const after = schedulingOf(process.pid);
  const own = getPriority();
  for (const [id, { nice }] of before) t.equal(after.get(id)?.nice ?? nice, nice, `thread ${id} was there before`);
  const lowered = [...after].filter(([id, { nice }]) => !before.has(id) && nice !== own);
  t.same(
    lowered.map(([, { nice }]) => nice),
    own < NICE ? [NICE] : [],
  );
});
