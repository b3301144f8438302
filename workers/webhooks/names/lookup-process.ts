import type { ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import { forkProgram } from "../../fork-program.js";
import { type LookupAnswer, type LookupProcess, PLACES } from "./name-lookups.js";

const PROGRAM = fileURLToPath(new URL("./name-lookup-process.js", import.meta.url));
/** libuv gives look-ups half of its threads at most (`slow_work_thread_threshold` in its threadpool.c). */
const THREADS = 2 * PLACES;

/** Starts the process that looks names up; some 8 MB of its own (measured: Node 20, 256 threads), and none before a name is needed. */
export function startLookupProcess(onAnswer: (answer: LookupAnswer) => void, onExit: () => void): LookupProcess {
  let hasEnded = false;
  const end = (): void => {
    if (hasEnded) return;
    hasEnded = true;
    onExit();
  };
  let child: ChildProcess;
  try {
    child = forkProgram(PROGRAM, [], {
      // Whoever reads the service's output must not wait for this process.
      stdio: ["ignore", "ignore", "ignore", "ipc"],
      // A debugger's port is taken by the service.
      execArgv: ["--max-semi-space-size=1"],
      env: { ...process.env, UV_THREADPOOL_SIZE: String(THREADS) },
    });
  } catch {
    // Without memory for it, say; what is asked meanwhile is told by its end, as below.
    setImmediate(end);
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
  child.once("exit", end);
  // It could not be started, or not be reached.
  child.on("error", () => {
    child.kill("SIGKILL");
    end();
  });
  child.unref();
  child.channel?.unref();
  return {
    // What could not be sent is told by its end. With too many files open there is no channel, and not even `send`.
    ask(hostname) {
      if (child.connected) child.send(hostname, () => {});
    },
    kill() {
      hasEnded = true;
      child.kill("SIGKILL");
    },
  };
}
