import type { ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import { forkProgram } from "../../fork-program.js";
import type { LookupAnswer, LookupProcess } from "./name-lookups.js";

const PROGRAM = fileURLToPath(new URL("./name-lookup-process.js", import.meta.url));
/** So 128 names are looked up at a time: libuv gives look-ups at most half of its threads (`slow_work_thread_threshold` in its threadpool.c). */
const THREADS = 256;

/** Starts the process that looks names up. It takes about 8 MB (measured: Node 20, 256 threads), and is started when a name is needed. */
export function startLookupProcess(
  onAnswer: (answer: LookupAnswer) => void,
  onExit: (error?: Error) => void,
): LookupProcess {
  let hasEnded = false;
  const end = (error?: Error): void => {
    if (hasEnded) return;
    hasEnded = true;
    onExit(error);
  };
  let child: ChildProcess;
  try {
    child = forkProgram(PROGRAM, [], {
      // If it had the service's output open, whoever reads that output would wait for this process to end.
      stdio: ["ignore", "ignore", "ignore", "ipc"],
      // It starts without the service's own options, because the service has the debugger's port already.
      execArgv: ["--max-semi-space-size=1"],
      env: { ...process.env, UV_THREADPOOL_SIZE: String(THREADS) },
    });
  } catch (error) {
    // For example, there is no memory. Look-ups that are asked for until then fail when this end is reported, as after an exit below.
    setImmediate(end, error as Error);
    return {
      ask() {},
      kill() {
        hasEnded = true;
      },
    };
  }
  child.on("message", (answer: LookupAnswer) => {
    if (!hasEnded) onAnswer(answer);
  });
  child.once("exit", () => end());
  // The process could not be started or reached.
  child.on("error", (error) => {
    child.kill("SIGKILL");
    end(error);
  });
  child.unref();
  child.channel?.unref();
  return {
    // If a name cannot be sent, the process ends, which fails the look-up. With too many open files there is no channel, and no `send`.
    ask(hostname) {
      if (child.connected) child.send(hostname, () => {});
    },
    kill() {
      hasEnded = true;
      child.kill("SIGKILL");
    },
  };
}
