import { spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t, { type Test } from "tap";
import { encodeSegmentHeader } from "../../../storage/log/segment.js";
import { giveToOther, runAsOther, runsAsOther } from "../../helpers/process/other-account.js";
import { runCommand, ServiceProcess } from "../../helpers/process/service-process.js";
import { isFullSize } from "../../helpers/test-size.js";

const RUN_ID = "019bb000-0000-7000-8000-000000000002";

function temporaryFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), "inspection-bad-data-"));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const COMMANDS: Record<string, (data: string) => string[]> = {
  serve: (data) => ["serve", "--data", data, "--port", "0"],
  demo: (data) => ["demo", "--data", data, "--port", "0", "--runs", "1"],
  check: (data) => ["check", "--data", data],
  inspect: (data) => ["inspect", "--data", data],
  export: (data) => ["export", "--data", data, "--run", RUN_ID, "--to", `${data}-exported`],
};

/** In a commit's size one that serves or one that looks takes a case, in turn: each start of a process costs. */
const SOME = ["serve", "check", "demo", "inspect", "export"];
let cases = 0;

/** Every command ends with 1 and one line that says what is wrong. The service's own log lines stand above it. */
async function refusedByAll(t: Test, data: string, message: RegExp, commands = Object.keys(COMMANDS)): Promise<void> {
  const turn = SOME[cases++ % SOME.length];
  const tried = commands.filter((command) => isFullSize || command === turn);
  // One after the other: a directory that one of them has is refused to the others for that.
  for (const command of tried.length === 0 ? commands.slice(0, 1) : tried) {
    const ended = await runCommand((COMMANDS[command] as (path: string) => string[])(data));
    t.equal(ended.code, 1, command);
    t.equal(ended.stdout, "", command);
    const lines = ended.stderr.split("\n").filter((line) => line !== "" && !line.startsWith("{"));
    t.equal(lines.length, 1, `${command}: ${ended.stderr}`);
    t.match(lines[0], message, command);
  }
}

/** A store with a segment, that no process has. */
async function madeStore(t: Test): Promise<string> {
  const data = join(temporaryFolder(t), "data");
  cpSync(await firstStore(), data, { recursive: true, filter: (path) => !/(lock|cell\.sock)$/.test(path) });
  return data;
}

let made: string | undefined;

/** The one that the others are copies of. */
async function firstStore(): Promise<string> {
  if (made === undefined) {
    made = join(mkdtempSync(join(tmpdir(), "inspection-bad-data-")), "data");
    const service = await ServiceProcess.start({ dataDirectory: made });
    t.teardown(() => rmSync(join(service.dataDirectory, ".."), { recursive: true }));
    t.match(await service.end(), { code: 0 });
  }
  return made;
}

/** Of all files but the ballast, which a service makes while it serves already. */
function contentOf(folder: string): string {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter(
    (entry) => entry.isFile() && !entry.name.startsWith("ballast.bin"),
  );
  const texts = files.map(
    ({ parentPath, name }) => `${join(parentPath, name)} ${readFileSync(join(parentPath, name), "hex")}`,
  );
  return texts.sort().join("\n");
}

t.test("a data directory that is a file, or below one", async (t) => {
  const file = join(temporaryFolder(t), "file");
  writeFileSync(file, "not a folder");
  await refusedByAll(t, file, /the data directory .*file is not a folder \(/);
  for (const below of ["below", "below/further"]) {
    await refusedByAll(t, join(file, below), /below(\/further)? lies below \S+\/file, which is not a folder \(/);
  }
  t.equal(readFileSync(file, "utf8"), "not a folder");
});

t.test("a folder with somebody's files is left alone", async (t) => {
  const folder = temporaryFolder(t);
  for (const name of ["a.txt", "b.txt", "c.txt", "d.txt"]) writeFileSync(join(folder, name), name);
  const message =
    /holds no store, but other files \(a\.txt, b\.txt, c\.txt, … \(4 in all\)\): give the store a folder of its own/;
  await refusedByAll(t, folder, message, ["serve", "demo"]);
  await refusedByAll(t, folder, /holds no store/, ["check", "inspect", "export"]);
  t.same(readdirSync(folder).sort(), ["a.txt", "b.txt", "c.txt", "d.txt"], "nothing was made in it");
  const captures = temporaryFolder(t);
  mkdirSync(join(captures, "captures", "holiday"), { recursive: true });
  await refusedByAll(t, captures, /other files \(captures\)/, ["serve"]);
});

t.test(
  "what a first start left before it had made the store, and the root of a file system, are no other files",
  async (t) => {
    const folder = temporaryFolder(t);
    for (const name of ["lock", "meta", "captures", "quarantine", "lost+found"]) mkdirSync(join(folder, name));
    writeFileSync(join(folder, "format.json.tmp"), "{");
    const service = await ServiceProcess.start({ dataDirectory: folder });
    t.teardown(() => service.dispose());
    t.match(await service.end(), { code: 0 });
  },
);

t.test("a store of a newer format, of another service, or of a segment of a newer format", async (t) => {
  const data = await madeStore(t);
  const format = join(data, "format.json");
  const own = readFileSync(format);
  writeFileSync(format, '{"format": 2, "service": "inspection-results-service"}');
  await refusedByAll(t, data, /has format 2; this release reads format 1: open it with the release that wrote it/);
  writeFileSync(format, own);
  const [segment] = readdirSync(join(data, "meta")) as [string];
  const path = join(data, "meta", segment);
  const bytes = readFileSync(path);
  const before = Buffer.from(bytes);
  bytes.set(encodeSegmentHeader({ version: 2, salt: 1, base: 1 }));
  writeFileSync(path, bytes);
  await refusedByAll(t, data, /segment 0{15}1\.seg has format version 2, but this release reads version 1/, [
    "serve",
    "demo",
    "inspect",
    "export",
  ]);
  const check = await runCommand(["check", "--data", data]);
  t.match(check, { code: 1, stdout: /^format_unsupported: .*version 2/m });
  t.match(readFileSync(path), bytes, "nothing was changed");
  writeFileSync(path, before);
  t.match(await runCommand(["check", "--data", data]), { code: 0 });
});

t.test("a log without format.json is not taken for this release's in silence", async (t) => {
  const data = await madeStore(t);
  const format = readFileSync(join(data, "format.json"), "utf8");
  rmSync(join(data, "format.json"));
  const before = contentOf(data);
  await refusedByAll(
    t,
    data,
    /holds the log of a store, but no format\.json.*Put that file back.*\{"format":1,"release":"1\.0","service":"inspection-results-service"\}/,
  );
  t.equal(contentOf(data), before);
  writeFileSync(join(data, "format.json"), format);
  t.match(await runCommand(["check", "--data", data]), { code: 0 });
});

t.test("a directory that another process has", async (t) => {
  const service = await ServiceProcess.start();
  t.teardown(() => service.dispose());
  await refusedByAll(t, service.dataDirectory, new RegExp(`the data directory is in use by process ${service.pid} `));
  t.match(await service.end(), { code: 0 });
});

t.test("a directory whose lock somebody removed is locked again, and refused before anything is touched", async (t) => {
  const service = await ServiceProcess.start();
  t.teardown(() => service.dispose());
  rmSync(join(service.dataDirectory, "lock"), { recursive: true });
  await service.untilStderr(/the lock of the data directory was removed: it was made again/);
  const before = contentOf(service.dataDirectory);
  const message = new RegExp(`the data directory is in use by process ${service.pid} `);
  await refusedByAll(t, service.dataDirectory, message, ["serve", "check"]);
  t.equal(contentOf(service.dataDirectory), before);
  t.match(await service.end(), { code: 0 });
  t.match(await runCommand(["check", "--data", service.dataDirectory]), { code: 0 });
});

function succeeds(command: string, args: string[]): boolean {
  return spawnSync(command, args, { stdio: "ignore" }).status === 0;
}

t.test("a data directory that this account may not write", { skip: runsAsOther() }, async (t) => {
  const data = await madeStore(t);
  giveToOther(data);
  chmodSync(data, 0o555);
  const before = contentOf(data);
  const message = `the data directory ${data} may not be read and written by this account (access ${data}: EACCES)`;
  for (const command of [["serve", "--port", "0"], ["check"]]) {
    const { code, stdout, stderr } = await runAsOther("dist/http/main.js", [...command, "--data", data]);
    t.match({ code, stdout }, { code: 1, stdout: "" });
    t.equal(stderr, `inspection-service: ${message}\n`);
  }
  t.equal(contentOf(data), before, "nothing was changed");
  chmodSync(data, 0o755);
});

t.test("links to a disk that is not mounted, and links that come back to themselves", async (t) => {
  const folder = temporaryFolder(t);
  const at = (name: string): string => join(folder, name);
  symlinkSync(at("unmounted"), at("away"));
  const nowhere =
    /\/away is a symbolic link whose target does not exist: mount the target, or remove the link \(mkdir \S+away: EEXIST/;
  await refusedByAll(t, at("away"), nowhere, ["serve", "demo"]);
  await refusedByAll(t, at("away/below/it"), /below\/it lies below \S+\/away, which is a symbolic link whose target/, [
    "serve",
  ]);
  symlinkSync(at("loop"), at("loop"));
  for (const path of [at("loop"), at("loop/below")]) {
    await refusedByAll(t, path, /loop(\/below)? leads through a loop of symbolic links \(/);
  }
  t.strictSame(readdirSync(folder).sort(), ["away", "loop"], "nothing was made");

  const data = await madeStore(t);
  rmSync(join(data, "captures"), { recursive: true });
  symlinkSync(at("unmounted"), join(data, "captures"));
  await refusedByAll(t, data, /\/data\/captures is a symbolic link whose target does not exist: mount the target/);
  mkdirSync(at("unmounted"));
  const mounted = await ServiceProcess.start({ dataDirectory: data });
  t.teardown(() => mounted.dispose());
  t.match(await mounted.end(), { code: 0 }, "once it is mounted");
  const linked = join(temporaryFolder(t), "linked");
  symlinkSync(data, linked);
  t.match(await runCommand(["check", "--data", linked]), { code: 0 }, "the directory itself may be a link");
});

t.test(
  "a directory where none can be made ends a start with one line",
  { skip: existsSync("/proc/self") ? false : "only Linux has /proc" },
  async (t) => {
    for (const path of ["/proc/inspection", "/proc/inspection/data"]) {
      await refusedByAll(
        t,
        path,
        /^inspection-service: the data directory \S+ cannot be made there \(mkdir \S+: ENOENT/,
        ["serve", "demo"],
      );
    }
  },
);

t.test("a FIFO in place of a segment", async (t) => {
  const data = await madeStore(t);
  const [segment] = readdirSync(join(data, "meta")) as [string];
  const path = join(data, "meta", segment);
  rmSync(path);
  t.ok(succeeds("mkfifo", [path]));
  await refusedByAll(t, data, /\.seg is a FIFO, a socket or a device, but the store needs a file there: move it away$/);
});

function mountsDisks(): string | false {
  const mount = mkdtempSync(join(tmpdir(), "read-only-"));
  const isMounted = succeeds("mount", ["-t", "tmpfs", "tmpfs", mount]) && succeeds("umount", [mount]);
  rmdirSync(mount);
  return isMounted ? false : "no file system can be mounted here";
}

t.test("a read-only file system, with a store and without", { skip: mountsDisks() }, async (t) => {
  const mount = mkdtempSync(join(tmpdir(), "read-only-"));
  t.ok(succeeds("mount", ["-t", "tmpfs", "-o", "size=64m", "tmpfs", mount]));
  t.teardown(() => {
    succeeds("umount", [mount]);
    rmdirSync(mount);
  });
  const data = join(mount, "data");
  const service = await ServiceProcess.start({ dataDirectory: data });
  t.teardown(() => service.dispose());
  t.match(await service.end(), { code: 0 });
  t.ok(succeeds("mount", ["-o", "remount,ro", mount]));
  const message = /the data directory .* is on a read-only file system.*EROFS/;
  await refusedByAll(t, data, message);
  await refusedByAll(t, join(mount, "new"), message, ["serve", "demo"]);
  t.ok(succeeds("mount", ["-o", "remount,rw", mount]));
  t.match(await runCommand(["check", "--data", data]), { code: 0 });
});
