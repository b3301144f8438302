import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { BenchmarkContext } from "../../harness/benchmark.js";

export interface ServerProcess {
  /** `http://host:port`, without a slash at its end. */
  url: string;
  pid: number;
  /** The name of the HTTP server, as the service prints it; undefined for other servers. */
  front: string | undefined;
  /** Ends it by SIGTERM, after 15 s by SIGKILL. Rejects if it did not end cleanly. The end of the benchmark does the same. */
  stop(): Promise<void>;
}

/** The server may have to read a whole store of a million runs on a busy machine. */
const START_TIMEOUT_MS = 180_000;
const STOP_TIMEOUT_MS = 15_000;

/** Starts `node <arguments>` and waits for its line `listening on http://…` on stdout. */
export async function startServer(
  context: Pick<BenchmarkContext, "onClose">,
  name: string,
  args: readonly string[],
): Promise<ServerProcess> {
  const child: ChildProcess = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  let lastOutput = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    lastOutput = (lastOutput + chunk.toString()).slice(-4096);
  });
  const ended = once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]>;
  const { url, front } = await new Promise<Pick<ServerProcess, "url" | "front">>((resolve, reject) => {
    const fail = (why: string): void => {
      child.kill("SIGKILL");
      reject(new Error(`${name} ${why}; its last words:\n${lastOutput}`));
    };
    const timer = setTimeout(() => fail(`did not listen within ${START_TIMEOUT_MS / 1000} s`), START_TIMEOUT_MS);
    child.once("error", (error) => fail(`did not start: ${error.message}`));
    child.once("exit", (code, signal) => {
      clearTimeout(timer);
      fail(`ended with ${signal ?? code} before it listened`);
    });
    if (child.stdout === null) return fail("has no stdout");
    createInterface(child.stdout).on("line", (line) => {
      const match = /listening on (http:\/\/\S+?)\/?(?: \(front: (.*)\))?$/.exec(line);
      if (match === null) return;
      clearTimeout(timer);
      resolve({ url: match[1] as string, front: match[2] });
    });
  });
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
    const [code, signal] = await ended;
    clearTimeout(timer);
    if (code !== 0) throw new Error(`${name} ended with ${signal ?? code}; its last words:\n${lastOutput}`);
  };
  context.onClose(stop);
  return { url, front, pid: child.pid as number, stop };
}
