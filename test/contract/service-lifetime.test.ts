import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import t, { type Test } from "tap";
import { npyHeader } from "../../core/npy-header.js";
import { ContractClient } from "../helpers/contract-client.js";
import { FRONTS_HERE, type FrontHere, frontsHere } from "../helpers/fronts-here.js";
import { nextId, PROGRAM_ID, programPut } from "../helpers/link-messages.js";
import { readGreyPng } from "../helpers/png-reader.js";
import { RawConnection, rawRequest } from "../helpers/raw-http.js";
import { RawProducer } from "../helpers/raw-producer.js";
import { type ProcessOptions, runCommand, ServiceProcess } from "../helpers/service-process.js";

type Tap = { teardown(undo: () => unknown): unknown };

async function start(t: Tap, options?: ProcessOptions): Promise<ServiceProcess> {
  const service = await ServiceProcess.start(options);
  t.teardown(() => service.dispose());
  return service;
}

function temporaryFolder(t: Tap): string {
  const folder = mkdtempSync(join(tmpdir(), "inspection-command-"));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const [PREFERRED] = FRONTS_HERE as [FrontHere];
for (const [signal, { name, environment }] of [
  ...frontsHere(t).map((here) => ["SIGTERM", here] as const),
  ["SIGINT", PREFERRED] as const,
]) {
  t.test(`${signal} ends it cleanly with 0, and its directory is free (${name})`, async (t) => {
    const service = await start(t, { args: ["serve"], environment });
    const idle = await RawConnection.open(service.port);
    idle.send("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
    t.equal((await idle.response())?.status, 200);
    const ended = await service.end(signal);
    t.match(ended, { code: 0, signal: null });
    await idle.closed;
    const again = await start(t, { dataDirectory: service.dataDirectory });
    t.match(await again.end(), { code: 0 });
  });
}

t.test(
  "a stop with clients that take nothing, and others that never stop asking, ends with 0 within 10 s",
  async (t) => {
    const stop = async ({ name, environment }: FrontHere) => {
      const service = await start(t, { args: ["serve"], environment });
      const producer = await RawProducer.connect({ path: service.cellSocketPath }, "controller");
      const id = nextId();
      await producer.accept(programPut());
      await producer.accept({ type: "run.create", id, program_id: PROGRAM_ID, serial_number: "SN" });
      const put = { type: "file.put", run_id: id, name: "large.bin", content_type: "application/octet-stream" };
      await producer.accept(put, Buffer.alloc(12_000_000, 7));
      const ask = (client: RawConnection, path: string) => client.send(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
      const stalled = await RawConnection.open(service.port);
      t.teardown(async () => stalled.close());
      ask(stalled, `/runs/${id}/files/large.bin`);
      // Its head has come: the rest is on its way, more than the buffers of both sides take.
      await new Promise((resolve) => stalled.socket.once("data", resolve));
      stalled.socket.pause();
      const busy = await RawConnection.open(service.port);
      t.teardown(async () => busy.close());
      const asking = (async () => {
        let status: number | undefined;
        do {
          ask(busy, `/runs/${id}/files/large.bin`);
          status = (await busy.response())?.status;
        } while (status === 200);
      })();
      const startedMs = performance.now();
      t.match(await service.end(), { code: 0, signal: null }, name);
      const tookMs = performance.now() - startedMs;
      t.ok(tookMs < 10_000, `${name}: ${Math.round(tookMs)} ms`);
      await asking;
    };
    await Promise.all(FRONTS_HERE.map(stop));
  },
);

t.test("a second service on the directory ends with 1 and says who holds it, also right after a kill -9", async (t) => {
  const service = await start(t);
  const args = ["serve", "--data", service.dataDirectory, "--port", "0"];
  const second = await runCommand(args);
  t.equal(second.code, 1);
  t.match(second.stderr, new RegExp(`\\b${service.pid}\\b`), "names the process");
  t.notMatch(second.stderr, /^\s+at /m);
  t.equal(second.stdout, "");
  for (const command of ["check", "inspect"]) {
    const other = await runCommand([command, "--data", service.dataDirectory]);
    t.equal(other.code, 1, `${command} of a served store is refused`);
    t.match(other.stderr, new RegExp(`\\b${service.pid}\\b`));
  }
  t.match(await service.end("SIGKILL"), { signal: "SIGKILL" });
  const third = await start(t, { dataDirectory: service.dataDirectory });
  const fourth = await runCommand(args);
  t.equal(fourth.code, 1);
  t.match(fourth.stderr, new RegExp(`\\b${third.pid}\\b`));
});

t.test("a port in use ends it with 1, and leaves the directory free", async (t) => {
  const service = await start(t);
  const folder = temporaryFolder(t);
  const second = await runCommand(["serve", "--data", folder, "--port", String(service.port)]);
  t.equal(second.code, 1);
  t.match(second.stderr, new RegExp(`cannot listen on 127.0.0.1 port ${service.port}`));
  await start(t, { dataDirectory: folder });
});

/** Content type of what is at a path that the demo prints. */
function typeOf(path: string): string {
  if (/^\/runs\/[^/]+\/files\/./.test(path) || path.endsWith("/file.npy")) return "application/octet-stream";
  if (path.endsWith(".ply")) return "application/x-ply";
  if (path.endsWith(".png")) return "image/png";
  return path.endsWith(".csv") ? "text/csv" : "application/json";
}

/** What the demo prints of a frame's formats and of the sweep, sorted. */
function downloadsOf(runId: string, frameId: string, formats: readonly string[], sweepStep: number): string[] {
  const names = [...formats.map((format) => `frame-${frameId}.${format}`), `step-${sweepStep}-cl_sweep.csv`];
  return [
    ...formats.map((format) => `/sensor/frames/${frameId}/file.${format}`),
    `/runs/${runId}/steps/${sweepStep}/cl_sweep.csv`,
    ...names.map((name) => `/runs/${runId}/files/${name}`),
  ].sort();
}

/** The URLs that the demo prints: all of them answer at once, with bytes of the right kind. */
async function printedUrls(t: Test, service: ServiceProcess) {
  const [, list] = await service.untilStdout(/try:\n((?: {2}curl (?:-OJ )?http:\S+\n)+)/);
  const urls = (list as string).match(/http:\S+/g) as string[];
  const paths = urls.map((url) => new URL(url).pathname);
  const bodies = new Map<string, Buffer>();
  for (const path of paths) {
    const answer = await rawRequest(service.port, `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
    t.equal(answer?.status, 200, path);
    t.equal(answer?.headers["content-type"], typeOf(path), path);
    t.ok(answer !== undefined && answer.body.length > 0, path);
    bodies.set(path, answer?.body ?? Buffer.alloc(0));
  }
  const idIn = (pattern: RegExp) => String(paths.flatMap((path) => pattern.exec(path)?.[1] ?? [])[0]);
  const runId = idIn(/^\/runs\/([^/]+)\/quality-report$/);
  const frameId = idIn(/^\/sensor\/frames\/([^/]+)\/files$/);
  const downloads = paths.filter((path) => /file\.|\.csv$|\/files\/(frame|step)-/.test(path)).sort();
  return { urls, downloads, bodies, runId, frameId };
}

t.test("demo: runs, URLs that answer, a store that check finds whole, and damaged after one bit", async (t) => {
  const service = await start(t, { args: ["demo", "--runs", "1", "--seed", "7"] });
  const { urls, downloads, runId, frameId } = await printedUrls(t, service);
  const formats = ["npy", "ply", "raw.ply", "png", "luminance.png"];
  t.same(downloads, downloadsOf(runId, frameId, formats, 6), "every format of the frame, and the sweep");
  const [, webhookId] = urls.join("\n").match(/\/webhooks\/(\S+)\/deliveries$/m) as RegExpMatchArray;
  await untilDelivered(t, new ContractClient(t, service.port), String(webhookId), 2);
  t.match(await service.end("SIGINT"), { code: 0 });
  const check = await runCommand(["check", "--data", service.dataDirectory]);
  t.match(check, { code: 0, stdout: /\nok\n$/ });
  const inspect = await runCommand(["inspect", "--data", service.dataDirectory, "--from", "1", "--limit", "5"]);
  t.equal(inspect.code, 0);
  const records = inspect.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  t.strictSame(
    records.map((record) => record.sequence),
    [1, 2, 3, 4, 5],
  );
  t.match(records[0], { type: "webhook", content: { origin: null } }, "of the receiver");
  const changes = records.find(({ type }) => type === "cellChanges");
  t.match(changes, { content: { origin: { producer: "demo-cell", sequence: 1 } } });
  const cut = await promisify(execFile)("/bin/sh", [
    "-c",
    `"${process.execPath}" dist/http/main.js inspect --data "${service.dataDirectory}" | head -n 1`,
  ]);
  t.match(cut, { stdout: /^\{.*\}\n$/, stderr: /^$/ }, "a reader that leaves early ends it quietly");

  const [month] = readdirSync(join(service.dataDirectory, "captures")) as [string];
  const folder = join(service.dataDirectory, "captures", month);
  const capture = readdirSync(folder).find((name) => name.endsWith(".cap")) as string;
  const bytes = readFileSync(join(folder, capture));
  bytes.writeUInt8(bytes.readUInt8(1000) ^ 1, 1000);
  writeFileSync(join(folder, capture), bytes);
  const damaged = await runCommand(["check", "--data", service.dataDirectory]);
  t.equal(damaged.code, 1);
  t.match(damaged.stdout, new RegExp(`capture_damaged: captures/${month}/${capture}`));
  t.match(damaged.stdout, /\nDAMAGED\n$/);
});

t.test("demo: of a recorded capture without luminance it prints every format that there is", async (t) => {
  const folder = temporaryFolder(t);
  const [rows, columns] = [40, 60];
  const heights = Uint16Array.from({ length: rows * columns }, (_, at) => (at % 53 === 0 ? 0 : 1_000 + (at % columns)));
  const npy = Buffer.concat([npyHeader("u16", rows, columns), new Uint8Array(heights.buffer)]);
  writeFileSync(join(folder, "plate.npy"), npy);
  const pitches = { x_pitch_mm: 0.1, y_pitch_mm: 0.1, z_scale_mm_per_count: 0.01, z_offset_mm: 0 };
  const capture = { name: "plate", sensor: "made", height_file: "plate.npy", rows, cols: columns, ...pitches };
  writeFileSync(join(folder, "index.json"), JSON.stringify([{ ...capture, invalid: [0] }]));
  const service = await start(t, { args: ["demo", "--runs", "1", "--seed", "7", "--captures", folder] });
  const { downloads, bodies, runId, frameId } = await printedUrls(t, service);
  t.same(downloads, downloadsOf(runId, frameId, ["npy", "ply", "raw.ply", "png"], 5));
  t.ok(bodies.get(`/sensor/frames/${frameId}/file.npy`)?.equals(npy), "the capture as it was recorded");
  const png = readGreyPng(bodies.get(`/runs/${runId}/files/frame-${frameId}.png`) ?? npy);
  t.same([...png.samples], [...heights]);
  t.match(await service.end(), { code: 0 });
});

/** Waits until so many deliveries are listed and all are taken. */
async function untilDelivered(t: Test, client: ContractClient, webhookId: string, count: number): Promise<void> {
  const list = await client.until(
    "/webhooks/{webhook_id}/deliveries",
    (listed) => listed.length >= count && listed.every(({ status }) => status !== "pending"),
    { path: { webhook_id: webhookId } },
  );
  t.same([...new Set(list.map(({ status }) => status))], ["delivered"]);
}

t.test(
  "demo: its receiver of webhooks, again at the next start, and none where the interface wants a key",
  async (t) => {
    const args = ["demo", "--runs", "1", "--seed", "7"];
    const first = await start(t, { args });
    await first.untilStdout(/\/deliveries\n/);
    const client = new ContractClient(t, first.port);
    const [webhook] = await client.get("/webhooks");
    t.match(webhook, { name: "demo receiver" });
    await untilDelivered(t, client, String(webhook?.id), 2);
    t.match(await first.end(), { code: 0 });
    const second = await start(t, { args, dataDirectory: first.dataDirectory });
    await second.untilStdout(/\/deliveries\n/);
    const secondClient = new ContractClient(t, second.port);
    const again = await secondClient.get("/webhooks");
    t.same(
      again.map(({ id }) => id),
      [webhook?.id],
      "the same one",
    );
    t.not(again[0]?.url, webhook?.url, "at its new port");
    await untilDelivered(t, secondClient, String(webhook?.id), 4);
    t.match(await second.end(), { code: 0 });

    const keys = join(temporaryFolder(t), "keys.json");
    t.match(await runCommand(["keys", "add", "--file", keys, "--scope", "manage"]), { code: 0 });
    const closed = await start(t, { args: [...args, "--api-keys", keys] });
    await closed.untilStdout(/no receiver of webhooks is registered: GET \/webhooks answered 401\n/);
    await closed.untilStdout(/try:\n/);
    t.notMatch(closed.stdout, /\/deliveries/);
    t.match(await closed.end(), { code: 0 });
  },
);

t.test("demo: a cell that cannot start ends both with 1, saying why, and leaves the directory free", async (t) => {
  const folder = temporaryFolder(t);
  const absent = join(folder, "absent");
  const data = join(folder, "data");
  const ended = await runCommand(["demo", "--data", data, "--port", "0", "--captures", absent]);
  t.equal(ended.code, 1);
  t.match(ended.stderr, /inspection-service: the demo cell ended with 1: .*absent/);
  t.match(await runCommand(["check", "--data", data]), { code: 0 });
});
