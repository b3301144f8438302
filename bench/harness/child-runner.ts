import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { BenchmarkJob, BenchmarkMessage } from "./benchmark-process.js";
import type { Measured } from "./result.js";

const PROGRAM = fileURLToPath(new URL("./benchmark-process.js", import.meta.url));
const LAST_WORDS = 4096;

/**
 * Runs one benchmark in a process group of its own, and ends whatever is left of the group afterwards: no server or load
 * generator outlives its benchmark, even if the benchmark fails, hangs or is interrupted.
 */
export async function runInProcess(
  job: BenchmarkJob,
  options: {
    timeoutSeconds: number;
    onLog: (line: string) => void;
    signal: AbortSignal;
    /** Another program that takes a job and sends the same messages. */
    program?: string;
  },
): Promise<Measured> {
  options.signal.throwIfAborted();
  const child = fork(options.program ?? PROGRAM, [JSON.stringify(job)], {
    detached: true,
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  const killGroup = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    } catch (error) {
      // ESRCH: no process of the group is left, as it should be.
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  };
  let lastWords = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", (chunk: Buffer) => {
      lastWords = (lastWords + chunk.toString()).slice(-LAST_WORDS);
    });
  }
  let measured: Measured | undefined;
  let why: string | undefined;
  child.on("message", (message) => {
    const received = message as BenchmarkMessage;
    if (received.type === "log") options.onLog(received.line);
    else measured = received.measured;
  });
  const timer = setTimeout(() => {
    why = `took more than ${options.timeoutSeconds} s`;
    killGroup();
  }, options.timeoutSeconds * 1000);
  const onAbort = (): void => {
    why = "was interrupted";
    killGroup();
  };
  options.signal.addEventListener("abort", onAbort, { once: true });
  try {
    // `close` may come while the last message is still being read; `disconnect` comes after it.
    const [[code, signal]] = (await Promise.all([once(child, "close"), once(child, "disconnect")])) as [
      [number | null, NodeJS.Signals | null],
      unknown,
    ];
    if (why === undefined && code !== 0) why = `ended with ${signal ?? `exit code ${code}`}`;
  } finally {
    clearTimeout(timer);
    options.signal.removeEventListener("abort", onAbort);
    killGroup();
  }
  if (why === undefined && measured === undefined) why = "ended without a result";
  if (why !== undefined || measured === undefined) {
    throw new Error(`${job.name} ${why}${lastWords === "" ? "" : `; its last words:\n${lastWords.trimEnd()}`}`);
  }
  return measured;
}
