import { execFile } from "node:child_process";
import { getPriority, setPriority } from "node:os";
import { basename } from "node:path";
import { promisify } from "node:util";
import { linkTarget, namesIn } from "../storage/file-system.js";

/**
 * Lowers the priority of the calling thread alone, so that where cores are short the threads that clients and producers wait for go first.
 * On Linux setpriority(2) means a thread by a thread's id, against POSIX, which is what makes this possible; elsewhere nothing is changed.
 *
 * @param nice 1 (hardly less than others) to 19 (only what nobody else wants); never higher than it is already
 * @returns whether it was lowered
 */
export function lowerThreadPriority(nice: number): boolean {
  if (process.platform !== "linux") return false;
  try {
    const threadId = Number(basename(linkTarget("/proc/thread-self")));
    setPriority(threadId, Math.max(getPriority(threadId), nice));
    return true;
  } catch {
    // Without /proc, or where a sandbox forbids it: everything works as before, only with equal turns.
    return false;
  }
}

/** Threads that V8 has for collections and compilations, unless the command line says otherwise (node --v8-pool-size). */
const V8_THREADS = 4;

/**
 * Lowers the priority of V8's own threads, which mark and sweep garbage of all isolates and compile: work that seldom has to be done now,
 * in stretches of milliseconds. Where cores are short, reads waited for them more than for anything else while captures came in.
 *
 * @param nice as of `lowerThreadPriority`
 * @returns how many were lowered
 */
export function lowerV8ThreadPriority(nice: number): number {
  return setV8ThreadPriority((own) => Math.max(own, nice));
}

/**
 * Raises it, for a thread that goes before all others: a collection of young garbage waits until whoever marks old garbage in the background has
 * stopped (`ConcurrentMarking::PauseScope` in V8's src/heap/scavenger.cc). Behind threads that are busy these came to it only after up to 107 ms, in
 * which the front stood still.
 *
 * @param nice -1 to -20
 * @returns how many were raised; 0 where the account may not (CAP_SYS_NICE, RLIMIT_NICE)
 */
export function raiseV8ThreadPriority(nice: number): number {
  return setV8ThreadPriority((own) => Math.min(own, nice));
}

/**
 * They are known by their age alone: at its start Node makes the platform's timer thread, then these, before any thread of libuv's.
 * (`WorkerThreadsTaskRunner` in Node's src/node_platform.cc.)
 */
function setV8ThreadPriority(niceOf: (own: number) => number): number {
  if (process.platform !== "linux") return 0;
  // Who says how many there are has settled what they are to have.
  if ([...process.execArgv, process.env.NODE_OPTIONS ?? ""].some((option) => option.includes("v8-pool-size"))) return 0;
  try {
    const [main, , ...others] = namesIn("/proc/self/task")
      .map(Number)
      .sort((a, b) => a - b);
    // Thread ids begin anew when the system runs out of them: their order says nothing then.
    if (main !== process.pid) return 0;
    const threads = others.slice(0, V8_THREADS);
    for (const id of threads) setPriority(id, niceOf(getPriority(id)));
    return threads.length;
  } catch {
    // As above.
    return 0;
  }
}

/** `real-time` goes before all threads that are not, as soon as it has something to do; `normal` has its turn among them. */
export type ThreadPolicy = "real-time" | "normal";

/** A command that hangs, on a machine without memory say, is not waited for. */
const COMMAND_TIMEOUT_MS = 10_000;

/**
 * Sets a thread's policy, by `chrt` of util-linux since Node has no call for it: `real-time` is SCHED_RR with the least priority (sched(7)).
 * Threads and processes that it starts later have the normal one.
 *
 * @throws {Error} where there is no `chrt`, or the system does not allow it (CAP_SYS_NICE, RLIMIT_RTPRIO)
 */
export async function setThreadPolicy(threadId: number, policy: ThreadPolicy): Promise<void> {
  if (process.platform !== "linux") throw new Error("only Linux has a policy for each thread");
  const [flag, priority] = policy === "real-time" ? ["--rr", "1"] : ["--other", "0"];
  // With the first flag in the normal policy as well: nobody may take it back who has no rights beyond the limit.
  const args = ["--reset-on-fork", flag, "--pid", priority, String(threadId)];
  await promisify(execFile)("chrt", args, { timeout: COMMAND_TIMEOUT_MS });
}
