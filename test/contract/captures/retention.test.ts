import { existsSync, readdirSync, readlinkSync, rmSync, statSync } from "node:fs";
import { get, type IncomingMessage } from "node:http";
import { join } from "node:path";
import t, { type Test } from "tap";
import type { components } from "../../../http/client/interface-types.js";
import { capturePath } from "../../../storage/captures/capture-path.js";
import {
  digest,
  PROCESSED_FORMATS as FORMATS,
  type KeptRun,
  PROCESSED_BYTES,
  REPORT,
  runWithCaptures,
} from "../../helpers/captures/kept-captures.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { RawProducer } from "../../helpers/link/raw-producer.js";
import { listOf } from "../../helpers/list-of.js";
import { runCommand, ServiceProcess } from "../../helpers/process/service-process.js";
import { checkDirectory } from "../../helpers/store/checked-directory.js";
import { until } from "../../helpers/until.js";

/** More than what sockets hold between the service and a client that does not read. */
const BIG = Buffer.alloc(48 * 1024 * 1024, "the image of a whole part ");

type Run = components["schemas"]["ProgramRunResponse"];

/** A download that begins and then is not read. */
function begin(port: number, path: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    get({ port, path, agent: false }, resolve).on("error", reject);
  });
}

async function bytesOf(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** What a descriptor is open on; empty for one that is closed meanwhile. */
function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

function captureFiles(dataDirectory: string): string[] {
  const months = readdirSync(join(dataDirectory, "captures"), { withFileTypes: true });
  return months.flatMap(({ name }) =>
    readdirSync(join(dataDirectory, "captures", name)).filter((file) => file.endsWith(".cap")),
  );
}

t.test(
  "retention as a client sees it: 410 and 404, what stays, the sync, a download under way, a restart",
  async (t) => {
    let service = await ServiceProcess.start({
      args: ["serve", "--retain-bytes", String(BIG.length + 2 * PROCESSED_BYTES)],
    });
    t.teardown(() => service.dispose());
    let client = new ContractClient(t, service.port);
    const producer = await RawProducer.connect({ path: service.cellSocketPath }, "controller");
    const first = await runWithCaptures(producer, 1);
    const put = { type: "file.put", run_id: first.id, name: "big.png", content_type: "image/png" };
    await producer.accept(put, BIG);
    await producer.accept({ type: "run.finish", id: first.id });
    const firstRun = { path: { run_id: first.id } };
    const before = await client.until("/runs/{run_id}", ({ status }) => status === "completed", firstRun);
    t.same(
      before.files?.map(({ name, deleted_at }) => [name, deleted_at]).sort(),
      [...FORMATS.map((format) => `frame-${first.frameId}.${format}`), "big.png", "marked.png", "report.pdf"]
        .map((name) => [name, null])
        .sort(),
    );
    const download = await begin(service.port, `/runs/${first.id}/files/big.png`);
    t.equal(download.statusCode, 200);

    const second = await runWithCaptures(producer, 2);
    await producer.accept({ type: "run.finish", id: second.id });
    const third = await runWithCaptures(producer, 3);
    await producer.accept({ type: "run.finish", id: third.id });
    const runs = [first, second, third] as const;
    const isRemoved = ({ files }: Run) => files?.some(({ deleted_at }) => deleted_at !== null) === true;
    const after = await client.until("/runs/{run_id}", isRemoved, firstRun);

    await showsRemoval(t, client, runs, before, after);
    const firstFile = join(service.dataDirectory, "captures", capturePath(first.id, "capture"));
    await until("the first run's file is gone", () => !existsSync(firstFile));
    let metrics = "";
    await until("one run removed", async () => {
      metrics = (await client.raw("GET", "/metrics")).body.toString();
      return /^inspection_retention_runs_total 1$/m.test(metrics);
    });
    // One file of the run is left, that of its report.
    t.match(metrics, /^inspection_retention_files_total 1$/m);
    const freed = Number(/^inspection_retention_bytes_total (\d+)$/m.exec(metrics)?.[1]);
    t.ok(freed > BIG.length && freed < 2 * BIG.length, `${freed} bytes freed`);
    t.equal(digest(await bytesOf(download)), digest(BIG), "a download under way has its bytes to the last");
    if (existsSync("/proc/self/fd")) {
      const folder = `/proc/${service.pid}/fd`;
      const links = () => readdirSync(folder).map((fd) => linkOf(join(folder, fd)));
      const isHeld = () => links().some((path) => path.includes(first.id) && path.includes(".cap"));
      await until("nothing holds the space any more", () => !isHeld());
    }
    t.match((await client.get("/health")) as object, { status: /healthy|degraded/ });

    await service.end("SIGKILL");
    service = await ServiceProcess.start({ dataDirectory: service.dataDirectory });
    client = new ContractClient(t, service.port);
    await showsRemoval(t, client, runs, before, after);
    t.match(await service.end(), { code: 0 });
    t.match(await checkDirectory(service.dataDirectory), { ok: true, summary: { damages: 0 } });
    rmSync(service.dataDirectory, { recursive: true, force: true });
  },
);

/** What a client is shown of the first run, whose captures are removed, and of the younger ones. */
async function showsRemoval(
  t: Test,
  client: ContractClient,
  [first, second, third]: readonly [KeptRun, KeptRun, KeptRun],
  before: Run,
  after: Run,
): Promise<void> {
  const runPath = `/runs/${first.id}`;
  const manifest = await client.get("/runs/{run_id}/files", { path: { run_id: first.id } });
  t.same(
    after.files?.map(({ name, deleted_at }) => [name, deleted_at === after.updated_at]),
    before.files?.map(({ name }) => [name, name !== "report.pdf"]),
  );
  t.same(manifest, after.files, "the manifest keeps every entry");
  t.same({ ...after, files: null, updated_at: null }, { ...before, files: null, updated_at: null }, "all else stays");
  const made = FORMATS.map((format) => `frame-${first.frameId}.${format}`);
  for (const name of [...made, "marked.png", "big.png"]) {
    t.match(await client.rawRefusal(`${runPath}/files/${name}`, 410, "file_removed"), { params: { value: name } });
  }
  t.same((await client.raw("GET", `${runPath}/files/report.pdf`)).body, REPORT);
  for (const format of FORMATS) {
    await client.rawRefusal(`/sensor/frames/${first.frameId}/file.${format}`, 404, "format_not_available");
  }
  const listed = await client.get("/sensor/frames/{frame_id}/files", { path: { frame_id: first.frameId } });
  t.strictSame([listed.available_formats, listed.files], [[], {}]);
  t.match(await client.get("/sensor/frames/{frame_id}", { path: { frame_id: first.frameId } }), {
    id: first.frameId,
  });
  const sync = await client.get("/runs", { query: { updated_since: before.updated_at } });
  t.match(
    sync.runs.find(({ id }) => id === first.id),
    { updated_at: after.updated_at, status: "completed" },
    "a sync sees the change",
  );
  t.equal((await client.raw("GET", `/runs/${second.id}/files/marked.png`)).status, 200, "what is younger is all there");
  t.equal((await client.raw("GET", `/sensor/frames/${third.frameId}/file.npy`)).status, 200);
  await client.get("/health");
}

t.test("the log says what was removed; bytes that are missing without a tombstone are an error, not 410", async (t) => {
  let service = await ServiceProcess.start({ environment: { INSPECTION_RETAIN_BYTES: String(PROCESSED_BYTES) } });
  t.teardown(() => service.dispose());
  const folder = service.dataDirectory;
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const producer = await RawProducer.connect({ path: service.cellSocketPath }, "controller");
  const first = await runWithCaptures(producer, 1);
  await producer.accept({ type: "run.finish", id: first.id });
  const second = await runWithCaptures(producer, 2);
  await producer.accept({ type: "run.finish", id: second.id });
  await until("one file of captures is left", () => captureFiles(folder).length === 1);
  const ended = await service.end();
  const lines = ended.stderr.split("\n").filter((line) => line.includes("retention removed captures"));
  t.match(
    lines.map((line) => JSON.parse(line)),
    listOf({ level: 30, runs: 1, bytes: Number, kept_runs: 1 }),
  );
  const path = join(folder, "captures", capturePath(second.id, "capture"));
  const [{ kept_bytes }] = lines.map((line) => JSON.parse(line)) as [{ kept_bytes: number }];
  t.equal(statSync(path).size, kept_bytes, "what is counted is what is on the disk, with what was made of captures");
  rmSync(path);
  service = await ServiceProcess.start({ dataDirectory: folder });
  const client = new ContractClient(t, service.port);
  await client.rawRefusal(`/runs/${second.id}/files/marked.png`, 500, "internal_error");
  await client.refusal("get", "/sensor/frames/{frame_id}/file.npy", 500, "internal_error", {
    path: { frame_id: second.frameId },
  });
  await client.rawRefusal(`/runs/${first.id}/files/marked.png`, 410, "file_removed");
  await service.end();
  t.match(await runCommand(["check", "--data", folder]), { code: 1, stdout: /capture_missing: captures\/.*DAMAGED/s });
});
