import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { mountDisk, mountsDisks } from "../../helpers/disk/small-disk.js";
import { nextId, PROGRAM_ID, programPut } from "../../helpers/link/link-messages.js";
import { RawProducer } from "../../helpers/link/raw-producer.js";
import { runCommand, ServiceProcess } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { hashOfFolder } from "../../helpers/store/folder-content.js";

const MIB = 1024 * 1024;

/** A service that has a run with a file of this size. */
async function serving(t: Test, sizeBytes: number) {
  const service = await ServiceProcess.startFor(t);
  const producer = await RawProducer.connect({ path: service.cellSocketPath }, "controller");
  await producer.accept(programPut());
  const put = async (bytes: number): Promise<string> => {
    const id = nextId();
    await producer.accept({ type: "run.create", id, program_id: PROGRAM_ID });
    await producer.accept({ type: "run.start", id });
    const file = { type: "file.put", run_id: id, name: "a.pdf", content_type: "application/pdf" };
    await producer.accept(file, new Uint8Array(bytes).fill(7));
    await producer.accept({ type: "run.finish", id });
    return id;
  };
  return { data: service.dataDirectory, id: await put(sizeBytes), put };
}

t.test(
  "a backup onto a disk that is full: one line, and the backup of before stays",
  { skip: mountsDisks() },
  async (t) => {
    const { data, put } = await serving(t, MIB);
    const disk = mountDisk(t, "3m");
    const args = ["backup", "--data", data, "--to", join(disk, "backup")];
    t.match(await runCommand(args), { code: 0, stdout: /\nok\n$/ });
    const before = hashOfFolder(join(disk, "backup"));
    await put(3 * MIB);
    const { stderr, ...ended } = await runCommand(args);
    t.match(ended, { code: 1, stdout: "" });
    t.match(
      stderr,
      /^inspection-service: there is no room for the backup: [^\n]*ENOSPC[^\n]*; nothing of it was kept\n$/,
    );
    t.same(readdirSync(disk), ["backup"]);
    t.equal(hashOfFolder(join(disk, "backup")), before);
    const large = join(mountDisk(t, "12m"), "backup");
    t.match(await runCommand(["backup", "--data", data, "--to", large]), { code: 0, stdout: /\nok\n$/ });
    const onItself = await runCommand(["backup", "--data", data, "--to", join(large, "..")]);
    t.match(onItself, { code: 1, stderr: /holds other files, and no backup/ });
  },
);

t.test("check, inspect, export and backup of a copy on a read-only disk", { skip: mountsDisks() }, async (t) => {
  const { data, id } = await serving(t, 10_000);
  const disk = mountDisk(t, "12m");
  const copy = join(disk, "copy");
  t.match(await runCommand(["backup", "--data", data, "--to", copy]), { code: 0 });
  t.equal(spawnSync("mount", ["-o", "remount,ro", disk]).status, 0);
  const folder = temporaryDirectory(t);
  t.match(await runCommand(["check", "--data", copy]), { code: 0, stdout: /(^|\n)ok\n$/ });
  t.match(await runCommand(["inspect", "--data", copy, "--run", id]), { code: 0, stdout: /run_created/ });
  t.match(await runCommand(["export", "--data", copy, "--run", id, "--to", join(folder, "run")]), { code: 0 });
  t.ok(readdirSync(join(folder, "run")).includes("run.json"));
  t.match(await runCommand(["backup", "--data", copy, "--to", join(folder, "again")]), { code: 0, stdout: /\nok\n$/ });
  const onto = await runCommand(["backup", "--data", data, "--to", copy]);
  t.match(onto, { code: 1, stdout: "", stderr: /^inspection-service: [^\n]*EROFS[^\n]*\n$/ });
});
