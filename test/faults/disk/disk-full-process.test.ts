import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import { mountDisk, mountsDisks, succeeds } from "../../helpers/disk/small-disk.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { until } from "../../helpers/until.js";

const MIB = 1024 * 1024;
const PROGRAM_ID = "019b76da-a800-7000-8000-000000000001";

/** False, or why it cannot be tried here. */
function limitsFiles(): string | false {
  return succeeds("prlimit", ["--pid", String(process.pid), "--fsize"]) ? false : "prlimit is not here";
}

/** Health's row of the disk, once it has this status. */
async function untilDisk(service: ServiceProcess, status: string): Promise<string> {
  let detail = "";
  await until(`a disk that is ${status}`, async () => {
    const response = await fetch(`http://127.0.0.1:${service.port}/health`);
    const { disk } = ((await response.json()) as { components: Record<string, { status: string; detail: string }> })
      .components;
    detail = disk?.detail ?? "";
    return disk?.status === status;
  });
  return detail;
}

/** A producer with a run, whose files fill the disk. */
async function startRun(t: Test, service: ServiceProcess) {
  const producer = new ProducerClient({ address: { path: service.cellSocketPath }, producer: "filler" });
  t.teardown(() => producer.destroy());
  await producer.welcomed();
  const runId = producer.nextRunId();
  await producer.deliver({ type: "program.put", program: { id: PROGRAM_ID, name: "P", status: "active", steps: [] } });
  await producer.deliver({ type: "run.create", id: runId, program_id: PROGRAM_ID });
  await producer.deliver({ type: "run.start", id: runId });
  return { producer, runId };
}

const filePut = (runId: string, name: string) => ({ type: "file.put", run_id: runId, name, content_type: "a/b" });

async function filesOf(service: ServiceProcess, runId: string): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${service.port}/runs/${runId}/files`);
  if (response.status !== 200) throw new Error(`GET /runs/${runId}/files: ${response.status}`);
  return ((await response.json()) as unknown[]).length;
}

/** Waits for at least so many files: an acknowledged one shows a moment later. */
async function untilFiles(service: ServiceProcess, runId: string, least: number): Promise<number> {
  let files = 0;
  await until(`${least} files`, async () => {
    files = await filesOf(service, runId);
    return files >= least;
  });
  return files;
}

// Side by side: each waits for a look at the disk.
t.jobs = 2;

t.test(
  "a real process whose files may grow no further (RLIMIT_FSIZE) waits, and goes on when they may",
  { skip: limitsFiles(), buffered: true },
  async (t) => {
    const service = await ServiceProcess.startFor(t);
    const { producer, runId } = await startRun(t, service);
    t.ok(succeeds("prlimit", ["--pid", String(service.pid), `--fsize=${4 * MIB}:unlimited`]));
    let acknowledged = 0;
    const deliveries = Array.from({ length: 12 }, (_, at) =>
      producer.deliver(filePut(runId, `f${at}`), new Uint8Array(MIB).fill(at)).then(() => {
        acknowledged++;
      }),
    );
    t.match(await untilDisk(service, "down"), /since .*no room \(write .*EFBIG\), all messages wait/);
    const before = acknowledged;
    t.ok(before < 12);
    // An acknowledgement may still be on its way; and what was acknowledged shows a moment later.
    const shown = await untilFiles(service, runId, before);
    t.ok(shown >= before && shown < 12, `reads go on: ${shown} files`);
    t.ok(succeeds("prlimit", ["--pid", String(service.pid), "--fsize=unlimited:unlimited"]));
    await Promise.all(deliveries);
    await untilDisk(service, "healthy");
    t.equal(await untilFiles(service, runId, 12), 12);
    t.comment(`${before} of 12 acknowledged before the limit, ${acknowledged} after it was lifted: lost 0`);
    await service.end();
    const check = spawnSync(process.execPath, ["dist/http/main.js", "check", "--data", service.dataDirectory]);
    t.equal(check.status, 0, check.stdout.toString());
  },
);

t.test(
  "a real process on a small disk that others fill: captures wait, then all does, then all resumes",
  { skip: mountsDisks(), buffered: true },
  async (t) => {
    const mount = mountDisk(t, "24m");
    const dataDirectory = join(mount, "data");
    mkdirSync(dataDirectory);
    const args = ["serve", "--disk-low-bytes", "6MiB", "--disk-critical-bytes", "1MiB"];
    const service = await ServiceProcess.startFor(t, { dataDirectory, args });
    const { producer, runId } = await startRun(t, service);
    let acknowledged = 0;
    const deliveries = Array.from({ length: 20 }, (_, at) =>
      producer.deliver(filePut(runId, `f${at}`), new Uint8Array(MIB).fill(at)).then(() => {
        acknowledged++;
      }),
    );
    await untilDisk(service, "degraded");
    const other = new ProducerClient({ address: { path: service.cellSocketPath }, producer: "other" });
    t.teardown(() => other.destroy());
    const event = { type: "event.add", run_id: runId, event_type: "note", data: {} };
    await other.deliver(event);
    t.ok(acknowledged < 20, `${acknowledged} captures of 20 before low water`);
    // Somebody else takes all the rest.
    const filler = join(mount, "filler");
    try {
      for (;;) writeFileSync(filler, new Uint8Array(64 * 1024), { flag: "a" });
    } catch (error) {
      t.equal((error as NodeJS.ErrnoException).code, "ENOSPC");
    }
    await untilDisk(service, "down");
    const late = other.deliver(event);
    const before = await filesOf(service, runId);
    // Room: the filler goes, and the disk grows.
    rmSync(filler);
    t.ok(succeeds("mount", ["-o", "remount,size=64m", mount]));
    await Promise.all([...deliveries, late]);
    await untilDisk(service, "healthy");
    t.equal(await untilFiles(service, runId, 20), 20);
    const lines = (await service.end()).stderr.match(/"the disk [^"]*"/g) ?? [];
    t.same(new Set(lines).size, 3, lines.join());
    t.comment(
      `${before} of 20 captures on the small disk, ${acknowledged} once there was room: lost 0; ${lines.length} lines`,
    );
    const check = spawnSync(process.execPath, ["dist/http/main.js", "check", "--data", dataDirectory]);
    t.equal(check.status, 0, check.stdout.toString());
  },
);
