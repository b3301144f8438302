import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import t from "tap";
import type { BenchmarkJob } from "../../bench/harness/benchmark-process.js";
import { runInProcess } from "../../bench/harness/child-runner.js";
import { untilGone } from "../helpers/process/until-gone.js";
import { temporaryDirectory } from "../helpers/recorder/recorder-harness.js";
import { exampleResult, OURS, PEER } from "./example-run.js";

const MEASURED = exampleResult(OURS, PEER);

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

t.test("the process of a benchmark: its result, its failure, its time limit, its interruption", async (t) => {
  const directory = temporaryDirectory(t);
  const program = (name: string, source: string): string => {
    const path = join(directory, `${name}.mjs`);
    writeFileSync(path, source);
    return path;
  };
  const run = (
    source: string,
    timeoutSeconds = 30,
    signal = new AbortController().signal,
    onLog = (_line: string) => {},
  ) => runInProcess(job("x"), { timeoutSeconds, onLog, signal, program: program(`p${Math.random()}`, source) });
  const result = JSON.stringify({ type: "measured", measured: MEASURED });

  const lines: string[] = [];
  const log = `process.send({ type: "log", line: JSON.parse(process.argv[2]).name });`;
  const good = await run(`${log} process.send(${result}, () => process.disconnect());`, 30, undefined, (line) =>
    lines.push(line),
  );
  t.strictSame(good, MEASURED);
  t.strictSame(lines, ["x"]);

  // As large as the histograms of many rounds: longer than a pipe holds, so that it is under way when the process ends.
  const channel = pathToFileURL(resolve("dist/bench/harness/runner-channel.js"));
  const large = await run(`import { sendToRunner } from "${channel}";
    const message = ${result};
    message.measured.notes = Array.from({ length: 400_000 }, (_, i) => "note " + i);
    await sendToRunner(message);
    process.disconnect();`);
  t.equal(large.notes.length, 400_000);
  t.equal(large.notes.at(-1), "note 399999");

  await t.rejects(run(`throw new Error("no disk");`), /x ended with exit code 1; its last words:[\s\S]*no disk/);
  await t.rejects(run("process.disconnect();"), /x ended without a result/);

  // The grandchild's pid comes by the log; it must be gone with its parent.
  const hang = `import { spawn } from "node:child_process";
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
    process.send({ type: "log", line: String(child.pid) });
    setInterval(() => {}, 1000);`;
  let grandchild = 0;
  await t.rejects(
    run(hang, 2, undefined, (line) => {
      grandchild = Number(line);
    }),
    /took more than 2 s/,
  );
  if (grandchild > 0) await untilGone(grandchild);

  const interruption = new AbortController();
  await t.rejects(
    run(hang, 30, interruption.signal, (line) => {
      grandchild = Number(line);
      interruption.abort();
    }),
    /was interrupted/,
  );
  await untilGone(grandchild);
  t.pass("nothing is left of the process group");
});
