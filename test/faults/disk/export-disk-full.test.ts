import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { mountDisk, mountsDisks } from "../../helpers/disk/small-disk.js";
import { nextId, PROGRAM_ID, programPut } from "../../helpers/link/link-messages.js";
import { RawProducer } from "../../helpers/link/raw-producer.js";
import { runCommand, ServiceProcess } from "../../helpers/process/service-process.js";

const MIB = 1024 * 1024;

t.test(
  "an export that meets a full disk says so in one line and leaves nothing that looks finished",
  { skip: mountsDisks() },
  async (t) => {
    const service = await ServiceProcess.startFor(t);
    const producer = await RawProducer.connect({ path: service.cellSocketPath }, "controller");
    const id = nextId();
    await producer.accept(programPut());
    await producer.accept({ type: "run.create", id, program_id: PROGRAM_ID });
    await producer.accept({ type: "run.start", id });
    const put = { type: "file.put", run_id: id, content_type: "application/pdf" };
    for (const name of ["a.pdf", "b.pdf", "c.pdf"])
      await producer.accept({ ...put, name }, new Uint8Array(MIB).fill(7));
    t.match(await service.end(), { code: 0 });
    const disk = mountDisk(t, "2m");
    const args = ["export", "--data", service.dataDirectory, "--run", id, "--to"];
    const to = join(disk, "run");
    for (const says of [/ENOSPC.*; the files written so far are in .*run\.incomplete$/, /run\.incomplete is left/]) {
      const { stderr, ...ended } = await runCommand([...args, to]);
      t.match(ended, { code: 1, stdout: "" });
      t.match(stderr, /^inspection-service: [^\n]*\n$/, "one line");
      t.match(stderr.trimEnd(), says);
      t.notOk(existsSync(to));
      t.same(readdirSync(disk), ["run.incomplete"]);
    }
    const whole = await runCommand([...args, join(mountDisk(t, "8m"), "run")]);
    t.match(whole, { code: 0, stderr: "", stdout: /3 files, 3145728 bytes/ });
  },
);
