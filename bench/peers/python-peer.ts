import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { BenchmarkContext } from "../harness/benchmark.js";

/** Debian's modules belong to its own Python, which need not be the first on the path. */
const INTERPRETERS = ["/usr/bin/python3", "python3"];

/** A Python process that answers each line with one of its own; it times what it does itself, so that no pipe is measured. */
export interface PythonPeer {
  ask(line: string): Promise<string>;
}

/** One thread; undefined when it ends before its first line, which says that it is ready. */
async function start(python: string, program: string): Promise<(PythonPeer & { close(): Promise<void> }) | undefined> {
  const child = spawn(python, ["-c", program], { env: { ...process.env, OMP_NUM_THREADS: "1" } });
  const closed = once(child, "close");
  // There is no such interpreter, so there is no first line either.
  closed.catch(() => {});
  child.stdin.on("error", () => {});
  let errors = "";
  child.stderr.on("data", (chunk: Buffer) => {
    errors = (errors + chunk.toString()).slice(-2000);
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  if ((await lines.next()).done) return undefined;
  return {
    async ask(line) {
      child.stdin.write(`${line}\n`);
      const { value, done } = await lines.next();
      if (done) throw new Error(`${python} ended: ${errors}`);
      return value;
    },
    async close() {
      child.stdin.end();
      await closed;
    },
  };
}

/** @param program prints a line when it is ready, then reads lines from sys.stdin and prints one for each, flushed */
export async function startPython(
  { onClose }: BenchmarkContext,
  modules: readonly string[],
  program: string,
): Promise<PythonPeer | { why: string }> {
  for (const interpreter of INTERPRETERS) {
    const peer = await start(interpreter, program);
    if (peer === undefined) continue;
    onClose(() => peer.close());
    return peer;
  }
  return { why: `no Python with ${modules.join(" and ")} (Debian: apt-get install python3-…)` };
}
