import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { openDataDirectory } from "../../../storage/disk/data-directory.js";
import { giveToOther, runAsOther, runsAsOther } from "../../helpers/process/other-account.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

const SEGMENT = "meta/0000000000000001.seg";
/** This month's folder: a run's first capture goes there, and would end the log if it failed. */
const MONTH = `captures/${new Date().toISOString().slice(0, 7).replace("-", "")}`;

async function madeStore(t: Test): Promise<string> {
  const folder = temporaryDirectory(t);
  const path = join(folder, "data");
  await (await openDataDirectory({ path, creates: true })).release();
  writeFileSync(join(path, SEGMENT), "");
  mkdirSync(join(path, MONTH));
  return path;
}

function namesIn(path: string): string {
  return readdirSync(path, { recursive: true }).sort().join();
}

t.test(
  "a data directory, a folder in it, or a segment, that this account may not write",
  { skip: runsAsOther() },
  async (t) => {
    const path = await madeStore(t);
    giveToOther(path);
    const before = namesIn(path);
    for (const name of ["", "meta", "captures", MONTH, "quarantine", "lock", SEGMENT]) {
      const at = join(path, name);
      const { mode } = statSync(at);
      chmodSync(at, 0o555);
      const { stdout } = await runAsOther("dist/test/helpers/disk/lock-holder-process.js", [path]);
      const message = `the data directory ${path} may not be read and written by this account (access ${at}: EACCES)`;
      t.match(JSON.parse(stdout), { code: "directory_unusable", message });
      chmodSync(at, mode);
      t.equal(namesIn(path), before, `${at}: nothing was made`);
    }
  },
);

t.test("what is of the wrong kind in the place of something of the store's", async (t) => {
  const path = await madeStore(t);
  const kinds = {
    "a file": (at: string) => writeFileSync(at, "x"),
    "a folder": (at: string) => mkdirSync(at),
    "a FIFO, a socket or a device": (at: string) => spawnSync("mkfifo", [at]),
  };
  const wrong: [string, (keyof typeof kinds)[]][] = [
    [SEGMENT, ["a folder", "a FIFO, a socket or a device"]],
    ["meta/0000000000000001.hint", ["a folder", "a FIFO, a socket or a device"]],
    ["ballast.bin", ["a folder", "a FIFO, a socket or a device"]],
    ["format.json", ["a folder", "a FIFO, a socket or a device"]],
    [MONTH, ["a file", "a FIFO, a socket or a device"]],
    ["captures", ["a file", "a FIFO, a socket or a device"]],
    ["quarantine", ["a file"]],
    ["meta", ["a file"]],
    ["lock", ["a file"]],
  ];
  for (const [name, found] of wrong) {
    for (const kind of found) {
      rmSync(join(path, name), { recursive: true, force: true });
      kinds[kind](join(path, name));
      const before = namesIn(path);
      const expected = name.includes(".") ? "a file" : "a folder";
      const message = `${join(path, name)} is ${kind}, but the store needs ${expected} there: move it away`;
      await t.rejects(openDataDirectory({ path, creates: true }), { code: "directory_unusable", message });
      t.equal(namesIn(path), before, "nothing was made");
      rmSync(join(path, name), { recursive: true });
    }
    if (!name.includes(".")) mkdirSync(join(path, name));
    else if (name === "format.json") writeFileSync(join(path, name), '{"format": 1, "release": "1.0"}');
  }
  await (await openDataDirectory({ path, creates: true })).release();
});
