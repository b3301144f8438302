/**
 * Lowers V8's threads, has libuv's work and then V8's, and prints how long the lowered threads and the others, the main one apart, ran for either.
 */
import { pbkdf2 } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { promisify } from "node:util";
import { lowerV8ThreadPriority } from "../../workers/thread-priority.js";

const NICE = 7;

interface RunTimes {
  loweredMs: number;
  othersMs: number;
}

function runTimes(): RunTimes {
  const times = { loweredMs: 0, othersMs: 0 };
  for (const id of readdirSync("/proc/self/task").filter((id) => Number(id) !== process.pid)) {
    // Nice is the 19th field of proc(5)'s stat; the name before it may hold blanks. The first of schedstat is the time on a core, in ns.
    const stat = readFileSync(`/proc/self/task/${id}/stat`, "utf8");
    const nice = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[16]);
    const runMs = Number(readFileSync(`/proc/self/task/${id}/schedstat`, "utf8").split(" ")[0]) / 1e6;
    times[nice === NICE ? "loweredMs" : "othersMs"] += runMs;
  }
  return times;
}

async function timesOf(work: () => unknown): Promise<RunTimes> {
  const before = runTimes();
  await work();
  const after = runTimes();
  return { loweredMs: after.loweredMs - before.loweredMs, othersMs: after.othersMs - before.othersMs };
}

const lowered = lowerV8ThreadPriority(NICE);
const derive = promisify(pbkdf2);
const ofLibuv = await timesOf(() =>
  Promise.all(Array.from({ length: 40 }, () => derive("word", "salt", 5_000, 32, "sha512"))),
);
// Nothing is awaited in it, so that no thread of libuv's has anything to do.
const ofV8 = await timesOf(() => {
  let kept: object[] = [];
  for (let turn = 0; turn < 40; turn++) kept = Array.from({ length: 200_000 }, (_, index) => ({ index, turn }));
  if (kept.length === 0) throw new Error("nothing was kept");
});
console.log(JSON.stringify({ lowered, ofLibuv, ofV8 }));
