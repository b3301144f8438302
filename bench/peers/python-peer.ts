import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** Debian's modules belong to its own Python, which need not be the first on the path. */
const INTERPRETERS = ["/usr/bin/python3", "python3"];

/** A Python process that answers each line with one of its own; it times what it does itself, so that no pipe is measured. */
export interface PythonPeer {
  ask(line: string): Promise<string>;
  close(): Promise<void>;
}

/** @param loop Python that reads lines from sys.stdin and prints one for each, flushed */
export function startPython(modules: readonly string[], loop: string): PythonPeer | { why: string } {
  const python = INTERPRETERS.find((name) => {
    const found = spawnSync(name, ["-c", `import ${modules.join(", ")}`], { timeout: 120_000 });
    return found.error === undefined && found.status === 0;
  });
  if (python === undefined)
    return { why: `no Python with ${modules.join(" and ")} (Debian: apt-get install python3-…)` };
  const child: ChildProcessWithoutNullStreams = spawn(python, ["-c", loop], {
    env: { ...process.env, OMP_NUM_THREADS: "1" },
  });
  let errors = "";
  child.stderr.on("data", (chunk: Buffer) => {
    errors += chunk.toString();
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async ask(line) {
      child.stdin.write(`${line}\n`);
      const { value, done } = await lines.next();
      if (done) throw new Error(`${python} ended: ${errors}`);
      return value;
    },
    async close() {
      const closed = once(child, "close");
      child.stdin.end();
      await closed;
    },
  };
}
