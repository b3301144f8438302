import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** A process that a test started, by the lines that it prints. */
export interface ChildLines {
  readonly processId: number;
  readonly lines: readonly string[];
  /** Resolves with the line at this position; rejects when the process ends before it. */
  line(position: number): Promise<string>;
  /** Ends it by the signal, and resolves when it is gone and all its lines are read. */
  end(signal: NodeJS.Signals): Promise<void>;
  /** Sends a signal and goes on. */
  signal(signal: NodeJS.Signals): void;
}

/** Starts a compiled test helper (`dist/test/helpers/<name>.js`), with `env` beside the environment of this one. */
export function startHelper(name: string, args: readonly string[], env: Record<string, string> = {}): ChildLines {
  const child: ChildProcess = spawn(process.execPath, [`dist/test/helpers/${name}.js`, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...env },
  });
  const lines: string[] = [];
  let hasEnded = false;
  let wake = (): void => {};
  const reader = createInterface({ input: child.stdout! });
  reader.on("line", (line) => {
    lines.push(line);
    wake();
  });
  const ended = Promise.all([once(child, "exit"), once(reader, "close")]).then(() => {
    hasEnded = true;
    wake();
  });
  return {
    processId: child.pid ?? 0,
    lines,
    async line(position) {
      while (lines.length <= position) {
        if (hasEnded) throw new Error(`${name} ended after ${lines.length} lines`);
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      return lines[position]!;
    },
    async end(signal) {
      child.kill(signal);
      await ended;
    },
    signal: (signal) => {
      child.kill(signal);
    },
  };
}
