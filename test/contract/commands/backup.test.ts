import {
  appendFileSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import { FileSystemError } from "../../../storage/disk/file-system-error.js";
import { IMAGE, runWithCaptures } from "../../helpers/captures/kept-captures.js";
import { nextId, PROGRAM_ID } from "../../helpers/link/link-messages.js";
import { RawProducer } from "../../helpers/link/raw-producer.js";
import { runCommand, ServiceProcess } from "../../helpers/process/service-process.js";
import { RecorderHarness, temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { backupOn, checkedCopy, recordsOfRuns } from "../../helpers/store/backup-state.js";

const backupArgs = (data: string, to: string) => ["backup", "--data", data, "--to", to];

/** Each file with its content and its inode, by name in the folder. */
function filesIn(folder: string): Map<string, { bytes: string; inode: number }> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(
    files.map(({ parentPath, name }) => {
      const path = join(parentPath, name);
      const { ino: inode } = statSync(path);
      return [path.slice(folder.length + 1), { bytes: readFileSync(path, "hex"), inode }];
    }),
  );
}

/** A store that nobody has open, with so many ended runs that have captures. */
async function madeStore(t: Test, runs = 2): Promise<string> {
  const data = join(temporaryDirectory(t), "data");
  const recorder = await RecorderHarness.start(t, data);
  const producer = await recorder.connect("controller");
  for (let nth = 0; nth < runs; nth++) {
    const { id } = await runWithCaptures(producer, nth + 1);
    await producer.accept({ type: "run.finish", id });
  }
  await producer.close();
  await recorder.stop();
  return data;
}

t.test("a backup while the service runs: what is finished is linked, and later writes do not change it", async (t) => {
  const script = new URL("../../helpers/process/small-segments-service.js", import.meta.url).pathname;
  const service = await ServiceProcess.startFor(t, { script });
  const data = service.dataDirectory;
  const producer = await RawProducer.connect({ path: service.cellSocketPath }, "controller");
  const ids: string[] = [];
  const play = async (runs: number): Promise<void> => {
    for (let nth = 0; nth < runs; nth++) {
      const { id } = await runWithCaptures(producer, nth + 1);
      await producer.accept({ type: "run.finish", id });
      ids.push(id);
    }
  };
  await play(40);
  const growing = await runWithCaptures(producer, 5);
  const to = join(temporaryDirectory(t), "backup");
  const made = await runCommand(backupArgs(data, to));
  t.match(made, { code: 0, stdout: /records up to \d+, \d+ files linked, .*\nok\n$/ }, made.stderr);
  t.match(await runCommand(["check", "--data", to]), { code: 0, stdout: /\nok\n$/ });
  t.strictSame(
    readdirSync(join(to, "..")).filter((name) => name !== "backup"),
    [],
    "nothing else is left beside it",
  );
  const before = filesIn(to);
  const ofStore = filesIn(data);
  const shared = [...before].filter(([name, { inode }]) => ofStore.get(name)?.inode === inode).map(([name]) => name);
  t.ok(
    shared.some((name) => name.endsWith(".seg")),
    "sealed segments are linked",
  );
  t.ok(
    shared.some((name) => name.endsWith(".hint")),
    "so are hint files",
  );
  t.ok(
    shared.some((name) => name.endsWith(".rep")),
    "and files of ended runs",
  );
  const newest = [...before.keys()]
    .filter((name) => name.endsWith(".seg"))
    .sort()
    .at(-1);
  t.notOk(shared.includes(newest ?? ""), "the newest segment is a copy");
  t.notOk(
    shared.some((name) => name.includes(growing.id)),
    "so is what a run may still write to",
  );

  const check = await runCommand(["check", "--data", data]);
  t.match(check, { code: 0, stdout: new RegExp(`process ${service.pid} has the store: it was checked up to record`) });
  t.match(await runCommand(["inspect", "--data", data, "--run", growing.id, "--limit", "1"]), { code: 0, stderr: "" });
  await producer.accept({ type: "run.finish", id: growing.id });
  await play(40);
  t.same(filesIn(to), before, "no byte of the backup has changed");
  const again = await runCommand(backupArgs(data, to));
  t.match(again, { code: 0 }, again.stderr);
  const runs = await recordsOfRuns(to);
  t.same(
    ids.filter((id) => !runs.has(id)),
    [],
  );
  for (const [name, { inode }] of filesIn(to)) {
    if (name.endsWith(".hint") && before.has(name))
      t.equal(inode, before.get(name)?.inode, `${name} is not copied again`);
  }
  await service.end();
});

t.test("where nothing can be linked to the store, a second backup takes what the first one has", async (t) => {
  const data = await madeStore(t, 3);
  const to = join(temporaryDirectory(t), "backup");
  const otherDisk = (from: string, place: string): Promise<void> =>
    from.startsWith(data)
      ? Promise.reject(new FileSystemError("EXDEV", "link", from))
      : nodeFileSystem.link(from, place);
  const first = await backupOn({ link: otherDisk }, data, to);
  t.equal(first.linkedFiles, 0);
  const second = await backupOn({ link: otherDisk }, data, to);
  t.match(second, { linkedFiles: 3, check: { ok: true } }, "reports; formats of the captures are still to be made");
  t.ok(second.copiedFiles < first.copiedFiles);
  const [damaged = ""] = [...filesIn(to).keys()].filter((name) => name.endsWith(".rep"));
  const { length } = readFileSync(join(to, damaged));
  writeFileSync(join(to, damaged), Buffer.alloc(length));
  const third = await backupOn({ link: otherDisk }, data, to);
  t.match(third, { linkedFiles: 0, check: { ok: true } }, "what is damaged there is copied anew");
  t.match(await checkedCopy(to), { ok: true });
});

t.test("a full disk: one line, nothing is left, and the backup of before stays", async (t) => {
  const data = await madeStore(t);
  const to = join(temporaryDirectory(t), "backup");
  let left = 2;
  const full = (from: string, place: string): Promise<void> =>
    left-- > 0 ? nodeFileSystem.copyFile(from, place) : Promise.reject(new FileSystemError("ENOSPC", "copy", place));
  const noLinks = (from: string): Promise<void> => Promise.reject(new FileSystemError("EPERM", "link", from));
  const refusal = {
    name: "BackupError",
    message: /^there is no room for the backup: .*ENOSPC; nothing of it was kept$/,
  };
  await t.rejects(backupOn({ copyFile: full, link: noLinks }, data, to), refusal);
  t.same(readdirSync(join(to, "..")), []);
  await backupOn({}, data, to);
  const before = filesIn(to);
  left = 2;
  await t.rejects(backupOn({ copyFile: full, link: noLinks }, data, to), refusal);
  t.same(readdirSync(join(to, "..")), ["backup"]);
  t.same(filesIn(to), before);
});

t.test("a backup where none belongs is refused, and changes nothing", async (t) => {
  const data = await madeStore(t);
  const other = await madeStore(t);
  const folder = temporaryDirectory(t);
  const to = join(folder, "backup");
  const refused = async (from: string, place: string, message: RegExp): Promise<void> => {
    const ended = await runCommand(backupArgs(from, place));
    t.match(ended, { code: 1, stdout: "", stderr: message });
    t.equal(ended.stderr.trim().split("\n").length, 1, "one line");
  };
  await refused(data, data, /is the store itself, or in it/);
  await refused(data, join(data, "backup"), /is the store itself, or in it/);
  await refused(data, other, /is a store that was in use, and no backup/);
  mkdirSync(join(folder, "mine"));
  writeFileSync(join(folder, "mine", "notes.txt"), "mine");
  await refused(data, join(folder, "mine"), /holds other files, and no backup/);
  await refused(data, join(folder, "mine", "notes.txt"), /is not a folder/);
  await refused(join(folder, "none"), to, /holds no store/);
  t.match(await runCommand(backupArgs(data, to)), { code: 0 });
  await refused(other, to, /is the backup of another store/);
  t.match(await checkedCopy(to), { ok: true });
  t.match(await runCommand(["backup", "--data", data]), { code: 1, stderr: /--to is required/ });

  const served = await ServiceProcess.start({ dataDirectory: to });
  await served.end();
  await refused(data, to, /is a store that was in use/);
});

t.test("a damaged store is copied only on demand, and the copy is called damaged", async (t) => {
  const data = await madeStore(t);
  const to = join(temporaryDirectory(t), "backup");
  t.match(await runCommand(backupArgs(data, to)), { code: 0 });
  const [report = ""] = [...filesIn(data).keys()].filter((name) => name.endsWith(".rep"));
  const broken = readFileSync(join(data, report)).fill(0);
  await nodeFileSystem.unlink(join(data, report));
  writeFileSync(join(data, report), broken);
  const before = filesIn(to);
  const refused = await runCommand(backupArgs(data, to));
  t.match(refused, {
    code: 1,
    stderr: /the store has 1 piece of damage, the first: capture_damaged: captures.*--with-damage/,
  });
  t.same(filesIn(to), before, "the backup of before is still the good one");
  const made = await runCommand([...backupArgs(data, to), "--with-damage"]);
  t.match(made, { code: 1, stdout: /DAMAGED as the store is: 1 piece of damage/ });
  t.match(await checkedCopy(to), { ok: false });
});

t.test("what a backup left that was killed is removed, or used", async (t) => {
  const data = await madeStore(t);
  const to = join(temporaryDirectory(t), "backup");
  t.match(await backupOn({}, data, to), { check: { ok: true } });
  const before = filesIn(to);
  // It was killed between its two last renames, and the next one is killed while it copies.
  renameSync(to, `${to}.previous`);
  const killed = () => Promise.reject(new Error("killed"));
  await t.rejects(backupOn({ copyFile: killed, link: killed }, data, to), { message: "killed" });
  t.same(filesIn(to), before, "the backup of before has its name again");
  mkdirSync(`${to}.incomplete`);
  copyFileSync(join(to, "backup.json"), join(`${to}.incomplete`, "backup.json"));
  writeFileSync(join(`${to}.incomplete`, "rest"), "x");
  await backupOn({}, data, to);
  t.same(readdirSync(join(to, "..")), ["backup"]);
  t.notOk(filesIn(to).has("rest"));
  mkdirSync(`${to}.incomplete`);
  writeFileSync(join(`${to}.incomplete`, "letter.txt"), "dear");
  await t.rejects(backupOn({}, data, to), { message: /backup\.incomplete is needed .* but holds other files/ });
  t.same(readdirSync(`${to}.incomplete`), ["letter.txt"], "a folder of somebody else stays");
});

t.test("good backups beside it stay: of another store, and of another folder", async (t) => {
  const [data, other] = [await madeStore(t), await madeStore(t)];
  const to = join(temporaryDirectory(t), "backup");
  for (const beside of [`${to}.previous`, `${to}.incomplete`]) {
    for (const store of [other, data]) {
      await backupOn({}, store, beside);
      const before = filesIn(beside);
      await t.rejects(backupOn({}, data, to), {
        message: /is needed for the backup, but is another backup: move it away/,
      });
      t.same(filesIn(beside), before);
      rmSync(beside, { recursive: true });
    }
  }
});

t.test("a backup that was renamed is put back under its new name after a kill", async (t) => {
  const data = await madeStore(t);
  const folder = temporaryDirectory(t);
  const [old, to] = [join(folder, "old"), join(folder, "monday")];
  await backupOn({}, data, old);
  renameSync(old, to);
  const rename = (from: string, place: string): Promise<void> =>
    from.endsWith(".incomplete") ? Promise.reject(new Error("killed")) : nodeFileSystem.rename(from, place);
  await t.rejects(backupOn({ rename }, data, to), { message: "killed" });
  t.same(readdirSync(folder), ["monday.previous"]);
  t.match(await backupOn({}, data, to), { check: { ok: true } });
  t.same(readdirSync(folder), ["monday"]);
});

t.test("an empty folder is taken, and stays as it is where no backup is made", async (t) => {
  const data = await madeStore(t);
  const to = join(temporaryDirectory(t), "backup");
  mkdirSync(to, { mode: 0o710 });
  const { ino } = statSync(to);
  const killed = () => Promise.reject(new Error("killed"));
  await t.rejects(backupOn({ copyFile: killed, link: killed }, data, to), { message: "killed" });
  t.match(statSync(to), { ino, mode: 0o40710 });
  const isMount = (from: string, place: string): Promise<void> =>
    from === to ? Promise.reject(new FileSystemError("EBUSY", "rename", from)) : nodeFileSystem.rename(from, place);
  await t.rejects(backupOn({ rename: isMount }, data, to), {
    message: /cannot be replaced .*EBUSY.*: name a folder in it/,
  });
  t.match(await backupOn({}, data, to), { check: { ok: true } });
  t.same(readdirSync(join(to, "..")), ["backup"]);
  const far = join(to, "..", "not-mounted", "backup");
  await t.rejects(backupOn({}, data, far), { message: /there is no folder .*not-mounted: make it, or mount its disk/ });
});

t.test("of two backups to one place at a time, one is made", async (t) => {
  const data = await madeStore(t);
  const to = join(temporaryDirectory(t), "backup");
  const results = await Promise.allSettled([backupOn({}, data, to), backupOn({}, data, to)]);
  t.ok(results.some(({ status }) => status === "fulfilled"));
  for (const result of results) if (result.status === "rejected") t.match(result.reason, { code: "directory_locked" });
  t.match(await checkedCopy(to), { ok: true });
});

t.test("a backup that begins while another takes its place is refused, and changes nothing", async (t) => {
  const data = await madeStore(t);
  const to = join(temporaryDirectory(t), "backup");
  await backupOn({}, data, to);
  let second: unknown;
  const rename = async (from: string, place: string): Promise<void> => {
    await nodeFileSystem.rename(from, place);
    // The backup of before has its other name now, and the new one has not taken its place yet.
    if (place === `${to}.previous`) second = await backupOn({}, data, to).catch((error) => error);
  };
  t.match(await backupOn({ rename }, data, to), { check: { ok: true } });
  t.match(second, { code: "directory_locked" });
  t.same(readdirSync(join(to, "..")), ["backup"]);
  t.match(await checkedCopy(to), { ok: true });
});

t.test("of captures that still grow, the copy has what the log names, in each pass", async (t) => {
  const data = join(temporaryDirectory(t), "data");
  const to = join(temporaryDirectory(t), "backup");
  const recorder = await RecorderHarness.start(t, data);
  const producer = await recorder.connect("controller");
  const ended = await runWithCaptures(producer, 1);
  await producer.accept({ type: "run.finish", id: ended.id });
  const growing = await runWithCaptures(producer, 2);
  const named = growing.captures.length;
  const [report, captures] = [`${ended.id}-000.rep`, `${growing.id}-000.cap`];
  let [passes, copies] = [0, 0];
  const torn = Buffer.alloc(IMAGE.length, 7);
  const result = await backupOn(
    {
      // The first pass misses a file, so there is another one.
      sizeOf: (path) =>
        path.startsWith(data) && path.endsWith(report) && passes++ === 0
          ? Promise.reject(new FileSystemError("ENOENT", "stat", path))
          : nodeFileSystem.sizeOf(path),
      copyFile: async (from, place) => {
        if (!from.endsWith(captures) || copies++ > 0) return await nodeFileSystem.copyFile(from, place);
        // Bytes that a service was about to write when it was killed. It writes others when it is back.
        appendFileSync(from, torn);
        await nodeFileSystem.copyFile(from, place);
        truncateSync(from, named);
        await producer.accept(
          { type: "file.put", run_id: growing.id, name: "more.png", content_type: "image/png" },
          IMAGE,
        );
      },
    },
    data,
    to,
  );
  t.match(result, { check: { ok: true } });
  t.ok(passes > 1 && copies > 1, "two passes");
  const [copy = ""] = [...filesIn(to).keys()].filter((name) => name.endsWith(captures));
  t.same(readFileSync(join(to, copy)), Buffer.concat([growing.captures, IMAGE]));
  appendFileSync(join(data, copy), torn);
  await backupOn({}, data, to);
  t.equal(statSync(join(to, copy)).size, named + IMAGE.length, "nothing behind it");
  await producer.close();
  await recorder.stop();
});

t.test("what retention removes after it was copied needs no other pass; what is lost is told as that", async (t) => {
  const data = join(temporaryDirectory(t), "data");
  const to = join(temporaryDirectory(t), "backup");
  const recorder = await RecorderHarness.start(t, data);
  const producer = await recorder.connect("controller");
  const [gone, late] = [await runWithCaptures(producer, 1), await runWithCaptures(producer, 2)];
  for (const { id } of [gone, late]) await producer.accept({ type: "run.finish", id });
  const pathOf = (id: string) =>
    join(data, [...filesIn(data).keys()].find((name) => name.endsWith(`${id}-000.rep`)) ?? "");
  const [gonePath, latePath] = [pathOf(gone.id), pathOf(late.id)];
  let passes = 0;
  const sizeOf = async (path: string): Promise<number> => {
    if (path !== latePath) return await nodeFileSystem.sizeOf(path);
    // The log grows all the time.
    await producer.accept({ type: "run.create", id: nextId(), program_id: PROGRAM_ID });
    if (passes++ > 0) return await nodeFileSystem.sizeOf(path);
    await nodeFileSystem.unlink(gonePath);
    throw new FileSystemError("ENOENT", "stat", path);
  };
  t.match(await backupOn({ sizeOf }, data, to), { check: { ok: true } });
  t.equal(passes, 2);
  await t.rejects(backupOn({ sizeOf }, data, `${to}-2`), { message: /the store has 1 piece of damage, the first: / });
  t.ok(passes < 6, `${passes} passes`);
  await producer.close();
  await recorder.stop();
});

t.test("a backup is put back, and goes on as a store", async (t) => {
  const data = await madeStore(t);
  const to = join(temporaryDirectory(t), "backup");
  await backupOn({}, data, to);
  const recorder = await RecorderHarness.start(t, to);
  const producer = await recorder.connect("controller");
  await producer.accept({ type: "run.create", id: nextId(), program_id: PROGRAM_ID });
  await producer.close();
  await recorder.stop();
  t.equal(recorder.runs.size, 3);
  t.match(await checkedCopy(data), { ok: true }, "the store that it was made from is as it was");
});
