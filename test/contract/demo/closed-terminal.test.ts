import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { untilGone } from "../../helpers/process/until-gone.js";

// Of util-linux: runs a command on a terminal of its own, which closes when it is killed.
const hasScript = spawnSync("script", ["--version"]).status === 0;

t.test("a terminal that closes ends the demo with 0", { skip: !hasScript && "script is absent" }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "inspection-terminal-"));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const demo = `"${process.execPath}" dist/http/main.js demo --data ${folder}/data --port 0 --runs 1`;
  // The shell hands the signal on, as one that a person types in does, and says how the demo ended.
  const forward = `trap 'kill -HUP $child' HUP; ${demo} & child=$!; wait $child; wait $child; echo $? >&3`;
  const command = `exec 3>${folder}/code; echo $$ >${folder}/shell; ${forward}`;
  const terminal = spawn("script", ["-qc", command, "/dev/null"], { stdio: ["pipe", "pipe", "inherit"] });
  t.teardown(() => terminal.kill("SIGKILL"));
  let shown = "";
  terminal.stdout.on("data", (chunk: Buffer) => (shown += chunk));
  while (!shown.includes("producer connected")) await once(terminal.stdout, "data");
  terminal.kill("SIGKILL");
  await untilGone(Number(readFileSync(`${folder}/shell`, "utf8")));
  t.equal(readFileSync(`${folder}/code`, "utf8"), "0\n");
});
