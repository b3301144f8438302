import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import t, { type Test } from "tap";
import { SCENES } from "../../../workers/demo-cell/scenes.js";
import { QUICK_NODE_OPTIONS } from "../../helpers/process/demo-results.js";
import { untilGone } from "../../helpers/process/until-gone.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

// `script` of util-linux runs a command on a terminal of its own, which closes when it is killed.
const hasScript = spawnSync("script", ["--version"]).status === 0;
/** As `runLine` writes it. */
const RUN_LINE = /^run +\d+ {2}/;
const options = { skip: !hasScript && "script is absent" };

/** How Node ends with these arguments when its terminal closes after it has shown `line`. */
async function codeAfterClosing(t: Test, args: (folder: string) => string, line: string): Promise<string> {
  const folder = temporaryDirectory(t);
  // The shell passes the signal on, like one that a person types in, and says how Node ended.
  const node = `"${process.execPath}" ${args(folder)}`;
  const forward = `trap 'kill -HUP $child' HUP; ${node} & child=$!; wait $child; wait $child; echo $? >&3`;
  const command = `exec 3>${folder}/code; echo $$ >${folder}/shell; ${forward}`;
  const terminal = spawn("script", ["-qc", command, "/dev/null"], { stdio: ["pipe", "pipe", "inherit"] });
  t.teardown(() => terminal.kill("SIGKILL"));
  let shown = "";
  terminal.stdout.on("data", (chunk: Buffer) => (shown += chunk));
  while (!shown.includes(line)) await once(terminal.stdout, "data");
  terminal.kill("SIGKILL");
  await untilGone(Number(readFileSync(`${folder}/shell`, "utf8")));
  return readFileSync(`${folder}/code`, "utf8");
}

t.test("a terminal that closes ends the demo with 0", options, async (t) => {
  const demo = (folder: string) => `dist/http/main.js demo --data ${folder}/data --port 0 --runs 1`;
  t.equal(await codeAfterClosing(t, demo, "producer connected"), "0\n");
});

t.test("on a terminal the demo shows its first runs, no JSON, and ends by Ctrl-C", options, async (t) => {
  const folder = temporaryDirectory(t);
  // exec: a shell in between gets Ctrl-C too, and some (dash) then end with 130, whatever the demo ends with.
  const command = `exec "${process.execPath}" dist/http/main.js demo --data ${folder}/data --port 0`;
  const terminal = spawn("script", ["-qec", command, "/dev/null"], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, NODE_OPTIONS: QUICK_NODE_OPTIONS },
  });
  const ended = once(terminal, "exit");
  t.teardown(() => terminal.kill("SIGKILL"));
  let shown = "";
  terminal.stdout.on("data", (chunk: Buffer) => (shown += chunk));
  while (!shown.includes("further runs are shown in the console only")) await once(terminal.stdout, "data");
  terminal.stdin.write("\x03");
  t.strictSame(await ended, [0, null]);
  const lines = shown.split(/\r?\n/);
  t.equal(lines.filter((line) => RUN_LINE.test(line)).length, SCENES.length, "a line for each of the first runs");
  t.strictSame(
    lines.filter((line) => line.startsWith("{")),
    [],
  );
  t.equal(lines.filter((line) => line.startsWith("open http://")).length, 1);
});

t.test("a line for a terminal that has closed is no error", options, async (t) => {
  const script = (folder: string) => {
    const path = join(folder, "late-line.mjs");
    writeFileSync(
      path,
      `import { standardOutput } from "${pathToFileURL("dist/http/log/standard-error.js")}";
       import { onHangUp } from "${pathToFileURL("dist/workers/hang-up.js")}";
       const say = standardOutput(() => {});
       const alive = setInterval(() => {}, 60_000);
       onHangUp(() => (say("too late"), clearInterval(alive)));
       say("shown");`,
    );
    return path;
  };
  t.equal(await codeAfterClosing(t, script, "shown"), "0\n");
});
