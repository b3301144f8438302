import { spawnSync } from "node:child_process";
import {
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
import { openDataDirectory } from "../../../storage/disk/data-directory.js";
import { encodeSegmentHeader } from "../../../storage/log/segment.js";
import { listOf } from "../../helpers/list-of.js";
import { runCommand, ServiceProcess } from "../../helpers/process/service-process.js";
import { RecorderHarness, temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { checkDirectory } from "../../helpers/store/checked-directory.js";
import { isFullSize } from "../../helpers/test-size.js";

const RUN_ID = "019bb000-0000-7000-8000-000000000002";

const COMMANDS: Record<string, (data: string) => string[]> = {
  serve: (data) => ["serve", "--data", data, "--port", "0"],
  demo: (data) => ["demo", "--data", data, "--port", "0", "--runs", "1"],
  check: (data) => ["check", "--data", data],
  inspect: (data) => ["inspect", "--data", data],
  export: (data) => ["export", "--data", data, "--run", RUN_ID, "--to", `${data}-exported`],
};

/** Each command ends with 1 and one line that says what is wrong. The service's own log lines stand above it. */
async function refusedByCommands(data: string, message: RegExp, commands: readonly string[], t: Test): Promise<void> {
  // One after the other: while one command has the directory, it is refused to the others for that reason.
  for (const command of commands) {
    const ended = await runCommand((COMMANDS[command] as (path: string) => string[])(data));
    t.match(ended, { code: 1, stdout: "" }, command);
    const lines = ended.stderr.split("\n").filter((line) => line !== "" && !line.startsWith("{"));
    t.match(lines, listOf(message), `${command}: ${ended.stderr}`);
  }
}

const SERVING = ["serve", "demo"];
const LOOKING = ["check", "inspect", "export"];

/**
 * The directory is refused to commands that serve, which may make a store, and to those that only look. All of them
 * open it by the same function, so in a commit's size only the first case starts them.
 */
async function refused(t: Test, data: string, message: RegExp, by = [...SERVING, ...LOOKING]): Promise<void> {
  for (const creates of [true, false]) {
    const commands = by.filter((command) => SERVING.includes(command) === creates);
    if (commands.length === 0) continue;
    await t.rejects(openDataDirectory({ path: data, creates }), { message }, `creates: ${creates}`);
    if (isFullSize) await refusedByCommands(data, message, commands, t);
  }
}

/** A store with an empty segment, that nobody has open. */
async function madeStore(t: Test): Promise<string> {
  const data = join(temporaryDirectory(t), "data");
  const recorder = await RecorderHarness.start(t, data);
  await recorder.stop();
  return data;
}

/** The content of all files but the ballast, which a service makes only after it has begun to serve. */
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
  const file = join(temporaryDirectory(t), "file");
  writeFileSync(file, "not a folder");
  const message = /the data directory .*file is not a folder \(/;
  await refused(t, file, message);
  if (!isFullSize) await refusedByCommands(file, message, ["serve", "check", "export"], t);
  for (const below of ["below", "below/further"]) {
    await refused(t, join(file, below), /below(\/further)? lies below \S+\/file, which is not a folder \(/);
  }
  t.equal(readFileSync(file, "utf8"), "not a folder");
});

t.test("a folder with somebody's files is left alone", async (t) => {
  const folder = temporaryDirectory(t);
  for (const name of ["a.txt", "b.txt", "c.txt", "d.txt"]) writeFileSync(join(folder, name), name);
  const message =
    /holds no store, but other files \(a\.txt, b\.txt, c\.txt, … \(4 in all\)\): give the store a folder of its own/;
  await refused(t, folder, message, SERVING);
  await refused(t, folder, /holds no store/, LOOKING);
  t.same(readdirSync(folder).sort(), ["a.txt", "b.txt", "c.txt", "d.txt"], "nothing was made in it");
  const captures = temporaryDirectory(t);
  mkdirSync(join(captures, "captures", "holiday"), { recursive: true });
  await refused(t, captures, /other files \(captures\)/, ["serve"]);
});

t.test(
  "what a first start left before it had made the store, and the root of a file system, are no other files",
  async (t) => {
    const folder = temporaryDirectory(t);
    for (const name of ["lock", "meta", "captures", "quarantine", "lost+found"]) mkdirSync(join(folder, name));
    writeFileSync(join(folder, "format.json.tmp"), "{");
    await (await openDataDirectory({ path: folder, creates: true })).release();
    t.match(await checkDirectory(folder), { ok: true });
  },
);

t.test("a store of a newer format, of another service, or of a segment of a newer format", async (t) => {
  const data = await madeStore(t);
  const format = join(data, "format.json");
  const own = readFileSync(format);
  const formats: [content: string, message: RegExp][] = [
    [
      '{"format": 2, "service": "inspection-results-service"}',
      /has format 2; this release reads format 1: open it with/,
    ],
    ['{"format": 1, "service": "another-service"}', /another-service/],
    // As development versions wrote it.
    ['{"format":1,"service":"inspection-results-service"}', /is older than the format of release 1\.0, the only one/],
    ["nonsense", /should name .* but holds "nonsense"\. Put that file back .*"release":"1\.0"/],
  ];
  for (const [content, message] of formats) {
    writeFileSync(format, content);
    await refused(t, data, message);
  }
  writeFileSync(format, own);
  const [segment] = readdirSync(join(data, "meta")) as [string];
  const path = join(data, "meta", segment);
  const bytes = readFileSync(path);
  const before = Buffer.from(bytes);
  bytes.set(encodeSegmentHeader({ version: 2, salt: 1, base: 1 }));
  writeFileSync(path, bytes);
  const message = /segment 0{15}1\.seg has format version 2, but this release reads version 1/;
  await t.rejects(RecorderHarness.start(t, data), { message });
  await refusedByCommands(data, message, isFullSize ? [...SERVING, "inspect", "export"] : ["inspect"], t);
  const found = await checkDirectory(data);
  t.match(found, { ok: false, findings: listOf({ code: "format_unsupported", message: /version 2/ }) });
  t.match(readFileSync(path), bytes, "nothing was changed");
  writeFileSync(path, before);
  t.match(await checkDirectory(data), { ok: true });
});

t.test("a log without format.json is not taken for this release's in silence", async (t) => {
  const data = await madeStore(t);
  const format = readFileSync(join(data, "format.json"), "utf8");
  rmSync(join(data, "format.json"));
  const before = contentOf(data);
  await refused(
    t,
    data,
    /holds the log of a store, but not the file format\.json.*Put that file back.*\{"format":1,"release":"1\.0","service":"inspection-results-service"\}/,
  );
  t.equal(contentOf(data), before);
  writeFileSync(join(data, "format.json"), format);
  t.match(await checkDirectory(data), { ok: true });
  rmSync(join(data, "meta"), { recursive: true });
  await refused(t, data, /has lost its log/);
  t.notOk(existsSync(join(data, "meta")), "nothing was created in its place");
});

t.test("a directory that another process has is refused, and so it is if somebody removes its lock", async (t) => {
  const service = await ServiceProcess.startFor(t);
  const message = new RegExp(
    `the data directory is in use by process ${service.pid} .*: stop that process, or wait until it ends`,
  );
  await refused(t, service.dataDirectory, message, SERVING);
  rmSync(join(service.dataDirectory, "lock"), { recursive: true });
  await service.untilStderr(/the lock of the data directory was removed: it was made again/);
  const before = contentOf(service.dataDirectory);
  await refused(t, service.dataDirectory, message, ["serve"]);
  t.equal(contentOf(service.dataDirectory), before);
  t.match(await service.end(), { code: 0 });
  t.match(await checkDirectory(service.dataDirectory), { ok: true });
});

t.test("links to a disk that is not mounted, and links that come back to themselves", async (t) => {
  const folder = temporaryDirectory(t);
  const at = (name: string): string => join(folder, name);
  symlinkSync(at("unmounted"), at("away"));
  const nowhere =
    /\/away is a symbolic link whose target does not exist: mount the target, or remove the link \(mkdir \S+away: EEXIST/;
  await refused(t, at("away"), nowhere, SERVING);
  await refused(t, at("away/below/it"), /below\/it lies below \S+\/away, which is a symbolic link whose target/, [
    "serve",
  ]);
  symlinkSync(at("loop"), at("loop"));
  for (const path of [at("loop"), at("loop/below")]) {
    await refused(t, path, /loop(\/below)? leads through a loop of symbolic links \(/);
  }
  t.strictSame(readdirSync(folder).sort(), ["away", "loop"], "nothing was made");

  const data = await madeStore(t);
  rmSync(join(data, "captures"), { recursive: true });
  symlinkSync(at("unmounted"), join(data, "captures"));
  await refused(t, data, /\/data\/captures is a symbolic link whose target does not exist: mount the target/);
  mkdirSync(at("unmounted"));
  await (await openDataDirectory({ path: data, creates: true })).release();
  const linked = join(temporaryDirectory(t), "linked");
  symlinkSync(data, linked);
  t.match(await checkDirectory(linked), { ok: true }, "once it is mounted; the directory itself may be a link");
});

t.test(
  "a directory where none can be made",
  { skip: existsSync("/proc/self") ? false : "only Linux has /proc" },
  async (t) => {
    for (const path of ["/proc/inspection", "/proc/inspection/data"]) {
      await refused(
        t,
        path,
        /^(inspection-service: )?the data directory \S+ cannot be made at this place; give another folder \(mkdir \S+: ENOENT/,
        SERVING,
      );
    }
  },
);

function succeeds(command: string, args: string[]): boolean {
  return spawnSync(command, args, { stdio: "ignore" }).status === 0;
}

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
  await (await openDataDirectory({ path: data, creates: true })).release();
  t.ok(succeeds("mount", ["-o", "remount,ro", mount]));
  const message = /the data directory .* is on a read-only file system.*EROFS/;
  await refused(t, data, message, SERVING);
  await refused(t, join(mount, "new"), message, SERVING);
  t.match(await runCommand(["check", "--data", data]), { code: 0, stdout: /\nok\n$/ }, "it can be checked there");
  t.ok(succeeds("mount", ["-o", "remount,rw", mount]));
  t.match(await checkDirectory(data), { ok: true });
});
