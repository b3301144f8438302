// Says on stderr what is being done, and how long it took.
import { spawn } from "node:child_process";

/** Runs it below a line such as `compiling … 12 s`; on a terminal the seconds count while it lasts. */
export async function stage(name, work) {
  const beginMs = performance.now();
  const text = () => `${name} … ${Math.round((performance.now() - beginMs) / 1000)} s`;
  const { isTTY } = process.stderr;
  if (!isTTY) process.stderr.write(`${name} … `);
  const tick = isTTY ? setInterval(() => process.stderr.write(`\r${text()}`), 1000) : undefined;
  if (isTTY) process.stderr.write(text());
  try {
    return await work();
  } finally {
    clearInterval(tick);
    process.stderr.write(isTTY ? `\r${text()}\n` : `${text().slice(name.length + 3)}\n`);
  }
}

/** Resolves with what the command wrote, to be shown when it failed. */
export function runQuietly(command, args, options = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text) => {
        output += text;
      });
    }
    child.once("error", (error) => resolve({ ok: false, output: `${error.message}\n` }));
    child.once("close", (code) => resolve({ ok: code === 0, output }));
  });
}
