import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import type { BenchmarkJob } from "../../bench/harness/benchmark-process.js";
import { runInProcess } from "../../bench/harness/child-runner.js";
import { untilGone } from "../helpers/process/until-gone.js";
import { temporaryDirectory } from "../helpers/recorder/recorder-harness.js";

function job(name: string): BenchmarkJob {
  return {
    name,
    size: "smoke",
    directory: tmpdir(),
    socketDirectory: tmpdir(),
    storesDirectory: tmpdir(),
    seed: 1,
    rounds: { warmup: 0, measured: 1, again: 0 },
  };
}

t.test("the process of a benchmark: its failure, its time limit", async (t) => {
  const directory = temporaryDirectory(t);
  const program = (name: string, source: string): string => {
    const path = join(directory, `${name}.mjs`);
    writeFileSync(path, source);
    return path;
  };
  const { signal } = new AbortController();
  const run = (source: string, timeoutSeconds = 30, onLog = (_line: string) => {}) =>
    runInProcess(job("x"), { timeoutSeconds, onLog, signal, program: program(`p${Math.random()}`, source) });
  await t.rejects(run(`throw new Error("no disk");`), /x ended with exit code 1; its last words:[\s\S]*no disk/);
  await t.rejects(run("process.disconnect();"), /x ended without a result/);

  // The grandchild's pid comes by the log; it must be gone with its parent.
  const hang = `import { spawn } from "node:child_process";
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
    process.send({ type: "log", line: String(child.pid) });
    setInterval(() => {}, 1000);`;
  let grandchild = 0;
  await t.rejects(
    run(hang, 2, (line) => {
      grandchild = Number(line);
    }),
    /took more than 2 s/,
  );
  if (grandchild > 0) await untilGone(grandchild);
});
